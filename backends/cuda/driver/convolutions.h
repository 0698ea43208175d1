// SPDX-License-Identifier: Apache-2.0
// Convolutions through cuDNN.
#pragma once

#include <mutex>

#include "backplane/sdk/once.hpp"
#include "driver/convolution_plan.h"
#include "driver/devices.h"
#include "driver/queue.h"

namespace backplane::cuda {

// A handle of cuDNN for a CUDA context.
class DnnHandle {
 public:
  explicit DnnHandle(SharedContext context);
  DnnHandle(const DnnHandle&) = delete;
  DnnHandle& operator=(const DnnHandle&) = delete;
  ~DnnHandle();
  PlanTarget target() const { return {.handle = handle_}; }
  // Thread-safe. The context must be current on the calling thread.
  void execute(CUstream stream, const dnn::Descriptor& plan, const dnn::Descriptor& pack, std::string_view what) const;

 private:
  SharedContext context_;
  dnn::Handle handle_ = nullptr;
  mutable std::mutex mutex_;  // the handle has one stream at a time
};

class Convolutions final : public gpu::ConvolutionLibrary {
 public:
  Convolutions(const FoundDevice& device, SharedContext context) : major_(device.major), context_(std::move(context)) {}

  std::string identity() const override;
  uint32_t compute_types(bp_dtype_t dtype) const override;
  std::vector<gpu::LibraryAlgorithm> algorithms(const gpu::ConvolutionProblem& problem, size_t most,
                                                std::string& why_none) const override;
  gpu::Kernel kernel(const gpu::ConvolutionProblem& problem, const gpu::LibraryAlgorithm& algorithm) const override;

 private:
  // The handle, or NULL with the reason in `why_none_`. Created by the first call.
  std::shared_ptr<const DnnHandle> handle() const;

  const int major_;  // of the device's compute capability
  const SharedContext context_;
  mutable sdk::Once opened_;
  mutable std::shared_ptr<const DnnHandle> handle_;
  mutable std::string why_none_;
};

}  // namespace backplane::cuda
