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
// depend on a value that is not known yet answers `Later`; it is then planned during the run, when the value is there.
// Nothing else is needed for data-dependent shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/graph.h"
#include "backplane/plugin.h"
#include "runtime/format.h"
#include "runtime/post_op.h"
#include "runtime/shape.h"

namespace backplane::cpu {

// A tensor as kernels see it: host memory, dense row-major unless the kernel asked otherwise. `data` is null where the
// value is not known (while planning) or where an optional input or output is absent (then dtype is
// BP_DTYPE_UNDEFINED).
struct Tensor {
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  Shape shape;
  void* data = nullptr;
  Format format = Format::kDense;
  bool passing = false;  // known to one plan alone: at this address others may find other data

  int64_t stored() const { return stored_elements(format, shape); }
  bool present() const { return dtype != BP_DTYPE_UNDEFINED; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Bytes of `elements` elements of a type; sub-byte types are packed. String tensors are not handled here.
int64_t bytes_of(bp_dtype_t dtype, int64_t elements);

// Why a node is refused, or that it is not.
struct Verdict {
  uint32_t reason = BP_REASON_NONE;
  std::string detail;
  explicit operator bool() const { return reason == BP_REASON_NONE; }
};
inline Verdict yes() {
  return {};
}
inline Verdict no(uint32_t reason, std::string detail) {
  return {reason, std::move(detail)};
}

// A node of the ABI's graph with convenient access. Cheap to make; borrows the graph.
class Body;
class Program;
class Node {
 public:
  // `program`: that which is being made of the graph, or null while only asking about the node.
  Node(const bp_graph_t& graph, uint32_t index, Program* program = nullptr)
      : graph_(&graph), index_(index), node_(bp_graph_node(&graph, index)), program_(program) {}

  const bp_graph_t& graph() const { return *graph_; }
  uint32_t index() const { return index_; }
  uint64_t id() const { return node_->id; }
  std::string_view op_type() const { return {node_->op_type.data, node_->op_type.size}; }
  std::string_view domain() const { return {node_->domain.data, node_->domain.size}; }
  std::string_view name() const { return {node_->name.data, node_->name.size}; }
  uint32_t since_version() const { return node_->since_version; }

  uint32_t input_count() const { return node_->input_count; }
  uint32_t output_count() const { return node_->output_count; }
  bool has_input(uint32_t slot) const { return bp_node_input(graph_, node_, slot) != BP_NONE; }
  bool has_output(uint32_t slot) const { return bp_node_output(graph_, node_, slot) != BP_NONE; }
  // The type of an input or output; kind 0, dtype 0 and rank -1 where it is omitted or unknown.
  bp_type_t input_type(uint32_t slot) const;
  bp_type_t output_type(uint32_t slot) const;
  // An extent of an input, or -1 where it is not a number.
  int64_t input_extent(uint32_t slot, int dim) const;
  bool input_is_constant(uint32_t slot) const;

  // Attributes. Absent ones give the default passed.
  int64_t attr(std::string_view name, int64_t fallback) const;
  float attr(std::string_view name, float fallback) const;
  std::string attr(std::string_view name, const char* fallback) const;
  std::vector<int64_t> ints(std::string_view name) const;       // empty when absent
  std::vector<float> floats(std::string_view name) const;       // empty when absent
  std::vector<std::string> texts(std::string_view name) const;  // empty when absent
  const bp_attribute_t* find(std::string_view name) const;      // null when absent
  // A graph that an attribute holds; null when absent. Its program, while the node's own is being made.
  const bp_graph_t* graph_in(std::string_view name) const;
  const Body& body(std::string_view name) const;

  // The same node as one that moves numbers about: its string tensors are of type INT64.
  Node with_texts_as_numbers() const;

 private:
  const bp_graph_t* graph_;
  bp_type_t type_of(uint32_t value) const;

  uint32_t index_;
  const bp_node_t* node_;
  Program* program_;
  bool texts_are_numbers_ = false;
};

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
  // The input whose memory output 0 may reuse when nobody else needs it, or -1. Element types must have the same size.
  virtual int inplace() const { return -1; }
  // The input whose bytes are output 0's bytes as they are (Reshape, Identity), or -1: the engine then needs no run at
  // all.
  virtual int alias() const { return -1; }
  // Whether output 0's bytes are those of all inputs, one after another (Concat of the first dimension): the engine
  // then has the inputs written there, where it can, and needs no run.
  virtual bool joins() const { return false; }
  // Whether equal inputs give equal outputs in each run: a draw without a seed does not.
  virtual bool pure() const { return true; }
};

// What a plan answers.
struct Plan {
  std::unique_ptr<Step> step;     // null: see `later` and `error`
  std::vector<Shape> shapes;      // of each output
  std::vector<Format> takes;      // of each input; empty: all dense
  Format gives = Format::kDense;  // of output 0; all others are dense
  int packed = -1;                // the input of which the kernel made its own copy, or -1
  bool later = false;             // a value is needed that is not known yet
  std::string error;              // the inputs cannot be: names what was seen
};
inline Plan later() {
  Plan p;
  p.later = true;
  return p;
}
inline Plan fail(std::string error) {
  Plan p;
  p.error = std::move(error);
  return p;
}

// A node whose attributes were read.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // `inputs` have extents, the format in which they are there already, and data where the value is known. Thread-safe.
  virtual Plan plan(std::span<const Tensor> inputs) const = 0;
  // Whether it makes its own copy of this input where the values are known, and reads them wherever they lie: files
  // align as they please. What a plan does not name as `packed` is aligned all the same.
  virtual bool packs(size_t) const { return false; }
  // Whether its steps read this input as bytes: it then stays wherever it lies.
  virtual bool reads_bytes(size_t) const { return false; }
  // While compiling: from now on does this to its result as well. False: it does not do that.
  virtual bool append(PostOp) { return false; }  // NOLINT(performance-unnecessary-value-param): others keep it
  // While compiling, after `append`: from now on the channels of input 0 come as they were before a shuffle of so many
  // groups (kernels/conv/channel_shuffle.h). Those of the result stay in that order (`through`), or are the same as
  // ever. False: it does not do that.
  virtual bool skip_shuffle(int64_t, bool) { return false; }
};

// What a row takes beside tensors of numbers.
inline constexpr uint32_t kTexts = 1;
inline constexpr uint32_t kContainers = 2;

// One row of the table: an operator from one version of its operator set on (until a later row of the same operator).
struct Row {
  std::string_view domain;
  std::string_view op_type;
  uint32_t since_version;
  Verdict (*supports)(const Node& node);
  std::unique_ptr<Kernel> (*create)(const Node& node);  // only after `supports` said yes
  uint32_t takes = 0;
};

// All operators, sorted for nobody: the order in which a reader wants to see them (table.cpp concatenates the
// families).
std::span<const Row> table();
// The row for a node, or null. Rows for numbers alone come first where there is nothing else.
const Row* find_row(const Node& node);

// Runs body(begin, end) over [0, count) in pieces of at least `grain` on the backend's threads; the caller takes part.
void parallel(int64_t count, int64_t grain, const auto& body);
void parallel_erased(int64_t count, int64_t grain, void (*body)(void* self, int64_t begin, int64_t end), void* self);
void parallel(int64_t count, int64_t grain, const auto& body) {
  parallel_erased(
      count, grain, [](void* self, int64_t b, int64_t e) { (*static_cast<decltype(&body)>(self))(b, e); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace backplane::cpu
