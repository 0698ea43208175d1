// SPDX-License-Identifier: Apache-2.0
// A convolution as a graph of cuDNN's operations, and the plans that compute it.
#pragma once

#include <array>

#include "driver/descriptor.h"
#include "engine/convolution_library.h"

namespace backplane::cuda {

// What plans are made for: the GPU of a cuDNN handle, or, if that is NULL, a GPU that is only described (since cuDNN
// 9.8).
struct PlanTarget {
  dnn::Handle handle = nullptr;
  const dnn::Descriptor* device = nullptr;  // from `described_device`, if `handle` is NULL
};

// The properties of a GPU, from JSON text in cuDNN's own form: compute capability, sizes and clocks.
dnn::Descriptor described_device(const std::string& json);

// A plan's tensors have gpu::LibraryArguments as ids.
struct ConvolutionPlan {
  dnn::Descriptor plan;
  uint64_t workspace_bytes;
};

// At most `most` plans that use at most `workspace` bytes, best first by cuDNN's own estimate, for tensors at addresses
// that are multiples of `alignment` bytes. Plans that round more than the problem allows, or differently from run to
// run, are left out. The result is never empty: throws sdk::Error if there is no plan, with cuDNN's reason if it gave
// one.
std::vector<ConvolutionPlan> convolution_plans(const PlanTarget& target, const gpu::ConvolutionProblem& problem,
                                               size_t most, uint64_t workspace, int64_t alignment);

// Whether cuDNN computes convolutions of this type.
bool has_convolutions_of(bp_dtype_t dtype);

}  // namespace backplane::cuda
