// SPDX-License-Identifier: Apache-2.0
// How an operator is implemented, in three steps, each of which knows more than the one before:
//
//   row in the table   the operator: says yes or no to a node (`supports`), and makes a Kernel of one it accepted
//   Kernel             a node: its attributes are read; immutable, shared by all plans of a program
//   Step               a node with concrete extents: output extents, strides, primitives, scratch size; immutable,
//   shared by all
//                      threads that run the plan; `run` does the work
//
// A plan is made for each set of input extents that a program meets. While planning, the values of some inputs are
// known (weights, results of Shape and of everything computed from known values alone). A kernel whose output extents
// depend on a value that is not known yet returns `deferred()`; it is then planned during the run, when the value is
// there.
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
  // Computes. `inputs` and `outputs` have the node's slots, with the extents that the plan was made for; `scratch` has
  // `scratch_bytes` bytes, aligned to 64. Outputs do not overlap inputs unless `inplace` allowed it. Thread-safe. A
  // failure is a text.
  virtual std::optional<std::string> run(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                         void* scratch) const = 0;
  virtual int64_t scratch_bytes() const { return 0; }
  // The input whose memory output 0 may reuse when nothing else reads it, or -1. Element types must have the same size.
  virtual int inplace() const { return -1; }
  // The input whose bytes are output 0's bytes as they are (Reshape, Identity), or -1: the runtime then needs no run at
  // all.
  virtual int alias() const { return -1; }
  // Whether output 0's bytes are those of all inputs, one after another (Concat of the first dimension): the runtime
  // then has the inputs written there, where it can, and needs no run.
  virtual bool concat_in_place() const { return false; }
  // Whether equal inputs lead to equal outputs in each run; not so for a draw without a seed.
  virtual bool pure() const { return true; }
};

// What a plan answers.
struct Plan {
  std::unique_ptr<Step> step;             // null: see `deferred` and `error`
  std::vector<Shape> shapes;              // of each output
  std::vector<Format> input_formats;      // of each input; empty: all dense
  Format output_format = Format::kDense;  // of output 0; all others are dense
  int packed = -1;                        // the input of which the kernel made its own copy, or -1
  const char* family = nullptr;  // the list of implementations that it comes from (runtime/implementations.h), or null
  const char* implementation = nullptr;  // its name there
  std::string refused;                   // "NAME: why; …" of those before it, where choices are reported
  bool deferred = false;                 // a value is needed that is not known yet
  std::string error;                     // the inputs cannot be: names what was seen
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

// Makes a step that copies input 0 into output 0 of the other format; one of the two is dense.
using MakeReorder = std::unique_ptr<Step> (*)(const Shape& shape, Format from, Format to);

class Choices;

// What a plan depends on other than its inputs.
struct PlanContext {
  int threads = 1;  // that `parallel` will have
  bool reference =
      false;  // plan what the operator's definition says: no blocked tensors, no oneDNN where there is plain code
  MakeReorder make_reorder = nullptr;
  const Choices* choices = nullptr;  // of implementations (runtime/choices.h); null: the best ones, unreported
  int64_t max_bytes = INT64_MAX;     // of one tensor
};

// A node whose attributes were read.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // `inputs` have extents, the format in which they are there already, and data where the value is known. Thread-safe.
  // Throws sdk::Error where sizes are beyond what there is memory for.
  virtual Plan plan(const PlanContext& context, std::span<const Tensor> inputs) const = 0;
  // Whether it makes its own copy of this input where the values are known, and reads them wherever they lie: files
  // guarantee no alignment. What a plan does not name as `packed` is aligned all the same.
  virtual bool packs(size_t) const { return false; }
  // Whether its steps read this input as bytes: it then stays wherever it lies.
  virtual bool reads_bytes(size_t) const { return false; }
  // While compiling: from now on does this to its result as well. False: it does not do that.
  virtual bool append(PostOp) { return false; }  // NOLINT(performance-unnecessary-value-param): others keep it
};

}  // namespace backplane::cpu
