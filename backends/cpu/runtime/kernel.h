// SPDX-License-Identifier: Apache-2.0
// How an operator is implemented, on three levels:
//
//   row in the table   for an operator: accepts or refuses a node (`supports`), creates a Kernel for an accepted one
//   Kernel             for a node: has read its attributes; immutable, shared by all plans of a program
//   Step               for a node with concrete extents: has output extents, strides, primitives, scratch size;
//                      immutable, shared by all threads that run the plan; `run` does the work
//
// A plan is created for each set of input extents that occurs. While planning, the values of some inputs are known:
// weights, extents as tensors, and results computed from known values before the run (folding). A kernel whose output
// extents depend on a value that is not known yet returns `deferred()`, and is planned during the run, when the value
// is known. Data-dependent shapes need no other mechanism.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace backplane::cpu {

struct PostOp;  // defined in kernels/post_op/; the runtime only passes it on

// A node with concrete extents.
class Step {
 public:
  virtual ~Step() = default;
  // Computes the node. `inputs` and `outputs` are the node's, with the planned extents. `scratch` has `scratch_bytes`
  // bytes, aligned to 64. Outputs do not overlap inputs unless `inplace` allows it. Thread-safe. Returns an error
  // message, or nullopt on success. Throws if the thread's watch ends the run, or if memory cannot be allocated.
  virtual std::optional<std::string> run(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                         void* scratch) const = 0;
  virtual int64_t scratch_bytes() const { return 0; }
  // The input whose memory output 0 may reuse if no other reader needs it, or -1. The element types of the two must
  // have the same size.
  virtual int inplace() const { return -1; }
  // The input whose bytes output 0 shares unchanged, or -1. The runtime then skips `run`.
  virtual int alias() const { return -1; }
  // Whether output 0 consists of the bytes of all inputs in order. If possible, the runtime then has the inputs written
  // directly into the output and skips `run`.
  virtual bool concat_in_place() const { return false; }
  // Whether equal inputs always result in equal outputs; false for random numbers without a seed.
  virtual bool pure() const { return true; }
};

// The result of planning a node for concrete extents.
struct Plan {
  std::unique_ptr<Step> step;             // null if planning was deferred or failed
  std::vector<Shape> shapes;              // extents of each output
  std::vector<Format> input_formats;      // format of each input; empty: all are dense
  Format output_format = Format::kDense;  // format of output 0; all other outputs are dense
  int packed = -1;                        // an input that the kernel has packed into its own copy, or -1
  const char* family = nullptr;           // list of implementations that was used (runtime/implementations.h), or null
  const char* implementation = nullptr;   // name of the chosen one in that list
  std::string refused;                    // why those before it refused: "NAME: reason; …"; empty without `choices`
  bool deferred = false;                  // planning needs an input's value that is not known yet
  std::string error;                      // error message if planning failed
  bp_status_t status = BP_TYPE_MISMATCH;  // status of that error
};
inline Plan deferred() {
  Plan p;
  p.deferred = true;
  return p;
}
inline Plan fail(std::string error, bp_status_t status = BP_TYPE_MISMATCH) {
  Plan p;
  p.error = std::move(error);
  p.status = status;
  return p;
}

// Creates a step that copies input 0 in format `from` to output 0 in format `to`; one of the two is dense.
using MakeReorder = std::unique_ptr<Step> (*)(const Shape& shape, Format from, Format to);

class Choices;
class TableAllowance;

// Everything that a plan depends on, apart from the inputs.
struct PlanContext {
  int threads = 1;  // number of threads that `parallel` (runtime/parallel.h) uses during the run
  // Compute operators as they are defined: without blocked tensors, and without oneDNN where there is plain code.
  bool reference = false;
  MakeReorder make_reorder = nullptr;
  // The implementations that are requested by name; null: none are, and the choices are not logged.
  const Choices* choices = nullptr;
  int64_t max_bytes = INT64_MAX;  // limit for one tensor
  TableAllowance* tables =
      nullptr;        // allowance shared by the plans of a schedule (runtime/tables.h); null: none is shared
  bool bf16 = false;  // whether products may round their operands to bf16; sums stay in fp32
};

// A node whose attributes have been read.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // `inputs` have their extents and current format, and data if their value is known. Throws sdk::Error for sizes that
  // do not fit in memory. Thread-safe.
  virtual Plan plan(const PlanContext& context, std::span<const Tensor> inputs) const = 0;
  // Whether the kernel may pack this input into its own copy if the value is known. It then reads unaligned data too,
  // such as weights in files. If the plan does not name this input as `packed`, the runtime aligns it for the step.
  virtual bool packs(size_t) const { return false; }
  // Whether the kernel's steps read this input as bytes, so that its address need not be aligned.
  virtual bool reads_bytes(size_t) const { return false; }
  // Called during compilation: fuses a post-operation into the kernel. Returns false if it is not supported.
  virtual bool append(PostOp&&) { return false; }
};

}  // namespace backplane::cpu
