// SPDX-License-Identifier: Apache-2.0
// How an operator is implemented, in three steps, each of which knows more than the one before:
//
//   row in the table   the operator: accepts or refuses a node (`supports`), and creates a Kernel for an accepted one
//   Kernel             a node: its attributes are read; immutable, shared by all plans of a program
//   Step               a node with concrete extents: output extents, strides, primitives, scratch size; immutable,
//                      shared by all threads that run the plan; `run` does the work
//
// A plan is created for each set of input extents that a program meets. While planning, the values of some inputs are
// known (weights, results of Shape, and everything computed from known values only). A kernel whose output extents
// depend on a value that is not known yet returns `deferred()`; it is planned during the run, when the value is known.
// Nothing else is needed for data-dependent shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/post_op.h"
#include "runtime/tensor.h"

namespace backplane::cpu {

// A node with concrete extents.
class Step {
 public:
  virtual ~Step() = default;
  // Computes the node. `inputs` and `outputs` have its slots, with the extents that were planned; `scratch` has
  // `scratch_bytes` bytes, aligned to 64. Outputs do not overlap inputs unless `inplace` allows it. Thread-safe.
  // Returns a message if it fails, else nullopt.
  virtual std::optional<std::string> run(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                         void* scratch) const = 0;
  virtual int64_t scratch_bytes() const { return 0; }
  // The input whose memory output 0 may reuse when nothing else reads it, or -1. Element types must have the same size.
  virtual int inplace() const { return -1; }
  // The input whose bytes output 0 shares unchanged (Reshape, Identity), or -1. The runtime then skips `run`.
  virtual int alias() const { return -1; }
  // Whether output 0's bytes are those of all inputs, one after another (Concat of the first dimension): if possible,
  // the runtime has the inputs written there and skips `run`.
  virtual bool concat_in_place() const { return false; }
  // Whether equal inputs always have equal outputs; false for random numbers without a seed.
  virtual bool pure() const { return true; }
};

// A node planned for concrete extents.
struct Plan {
  std::unique_ptr<Step> step;             // null: see `deferred` and `error`
  std::vector<Shape> shapes;              // of each output
  std::vector<Format> input_formats;      // of each input; empty: all dense
  Format output_format = Format::kDense;  // of output 0; all others are dense
  int packed = -1;                        // the input that the kernel has packed into its own copy, or -1
  const char* family = nullptr;  // the list of implementations that it comes from (runtime/implementations.h), or null
  const char* implementation = nullptr;  // its name in the list
  std::string refused;                   // "NAME: why; …" of those before it, if `choices` is set
  bool deferred = false;                 // planning needs a value that is not known yet
  std::string error;                     // if the inputs are invalid: what is wrong
};
inline Plan deferred() {
  Plan p;
  p.deferred = true;
  return p;
}
inline Plan fail(std::string error) {
  Plan p;
  p.error = std::move(error);
  return p;
}

// Creates a step that copies input 0 in format `from` to output 0 in format `to`; one of the two is dense.
using MakeReorder = std::unique_ptr<Step> (*)(const Shape& shape, Format from, Format to);

class Choices;

// Everything except its inputs that a plan depends on.
struct PlanContext {
  int threads = 1;  // of `parallel` in the run
  bool reference =
      false;  // compute operators as they are defined: no blocked tensors, and no oneDNN if there is plain code
  MakeReorder make_reorder = nullptr;
  const Choices* choices =
      nullptr;  // requested implementations (runtime/choices.h); null: the best ones, without a report
  int64_t max_bytes = INT64_MAX;  // of one tensor
};

// A node whose attributes were read.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // `inputs` have extents, the format that they already have, and data if the value is known. Thread-safe. Throws
  // sdk::Error for sizes that do not fit in memory.
  virtual Plan plan(const PlanContext& context, std::span<const Tensor> inputs) const = 0;
  // Whether it packs this input into its own copy if the values are known, reading them at any address: weights in
  // files may be unaligned. If a plan does not name the input as `packed`, it is aligned for the step.
  virtual bool packs(size_t) const { return false; }
  // Whether its steps read this input as bytes, so that it need not be aligned.
  virtual bool reads_bytes(size_t) const { return false; }
  // Called while compiling: fuses a post-operation. Returns false if it is not supported.
  virtual bool append(PostOp) { return false; }  // NOLINT(performance-unnecessary-value-param): overrides store it
};

}  // namespace backplane::cpu
