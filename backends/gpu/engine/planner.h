// SPDX-License-Identifier: Apache-2.0
// Visits an island's nodes in order and builds a plan for concrete extents. Emit is the interface for operators:
//
//   void emit_relu(Emit& e) { e.elementwise("fmax($0, 0.0f)"); }                      a formula
//   void emit_flatten(Emit& e) { e.alias(0, e.input(0), …); }                         the same bytes, other extents
//   void emit_pool(Emit& e) {                                                         a kernel of kernels/pool.cl
//     const Tensor x = e.input(0), y = e.output(0, shape);
//     e.launch("pool", "pool", "-DTYPE=" + e.type(x)).in(x).out(y).arg(height).range(width, height, n);
//   }
//
// A launch that has one result and reads only constants runs once, when the plan is prepared, so packing weights needs
// no special code.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>

#include "backplane/sdk/coverage.hpp"
#include "engine/device_caps.h"
#include "engine/expression.h"
#include "engine/library_choices.h"
#include "engine/plan.h"
#include "engine/row.h"

namespace backplane::gpu {

class Planner;

// Fills in a launch that Emit::launch began. Add the arguments in the order of the kernel's parameters.
class LaunchBuilder {
 public:
  LaunchBuilder(Planner& planner, size_t launch) : planner_(planner), launch_(launch) {}
  LaunchBuilder& in(const Tensor& tensor);
  LaunchBuilder& out(const Tensor& tensor);
  LaunchBuilder& none();  // a placeholder for a LibraryArgument that the problem does not have
  template <class T>
  LaunchBuilder& arg(T value) {
    return bytes(&value, sizeof value);
  }
  LaunchBuilder& arg(int64_t value);  // passed as int: throws if it does not fit
  // Adds the arguments `GLOBAL int* fault, int node`, where `node` is 1 + the node's index: a kernel that finds an
  // index out of range writes fault[0] = node, and the run ends with an error.
  LaunchBuilder& fault();
  // Starts x × y × z work items, rounded up along x and y to whole groups of a size that suits the device, so kernels
  // must check these bounds. Groups extend along x first, up to `widest` items.
  void range(int64_t x, int64_t y = 1, int64_t z = 1, size_t widest = SIZE_MAX);
  // Starts exactly `count` groups of `local` work items.
  void groups(std::array<int64_t, 3> count, std::array<size_t, 3> local);
  void range(const Ranges& ranges);
  // Declares that a formula can be fused into the end of the launch: its kernel has an EPILOGUE (kernels/gemm.cl), or a
  // library computes it. `y`, the result, is [.., rows, columns]. If a formula is the only reader of `y` and the kernel
  // or library supports that formula, it becomes the launch's last step. Call this after setting the arguments and the
  // range.
  void allow_epilogue(const Tensor& y, int64_t rows, int64_t columns);

 private:
  LaunchBuilder& bytes(const void* value, uint32_t size);
  Launch& launch() const;
  Planner& planner_;
  size_t launch_;
};

// An operand of a formula: a view, or an input of the node. An input that is a pending formula may be fused.
struct Operand {
  Operand(uint32_t slot) : slot(slot) {}
  Operand(View view) : view(std::move(view)) {}
  uint32_t slot = BP_NONE;
  View view;
};

class Emit {
 public:
  Emit(Planner& planner, const sdk::Node& node) : node(node), planner_(planner) {}
  const sdk::Node node;
  const DeviceCaps& caps() const;

  bool has_input(uint32_t slot) const { return static_cast<bool>(node.input(slot)); }
  bool has_output(uint32_t slot) const { return static_cast<bool>(node.output(slot)); }
  Tensor input(uint32_t slot);       // in memory; adds the launch of a pending formula
  Shape shape(uint32_t slot) const;  // of an input, even if it is not computed yet
  // If the input is a tensor with its last two dimensions exchanged, and the exchange is still pending: that tensor's
  // memory, with the input's extents. Otherwise empty.
  Tensor transposed_input(uint32_t slot) const;
  bool constant(uint32_t slot) const;         // whether the input is a weight
  bool constant(const Tensor& tensor) const;  // whether it is constant, or computed once from constants
  // The elements of an input that known_on_host (ops/row.h) accepts: a weight, or an input of the island. With an input
  // of the island, the plan is valid only for these elements. `ints` reads int32 and int64, `numbers` all types except
  // 16-bit floats. Empty if the input is omitted.
  std::vector<int64_t> ints(uint32_t slot) const;
  std::vector<double> numbers(uint32_t slot) const;
  std::optional<float> scalar(uint32_t slot) const;  // a float weight's only element, else nullopt

  Tensor output(uint32_t slot, Shape shape);                     // returns the tensor to write output `slot` to
  void alias(uint32_t slot, const Tensor& source, Shape shape);  // output `slot` is `source` with other extents
  Tensor scratch(bp_dtype_t dtype, Shape shape);
  // A constant that this operator computes on the host, such as a table of positions and weights.
  template <class T>
  Tensor table(bp_dtype_t dtype, Shape shape, const std::vector<T>& elements) {
    return table(dtype, std::move(shape), std::as_bytes(std::span(elements)));
  }
  Tensor table(bp_dtype_t dtype, Shape shape, std::span<const std::byte> bytes);
  // `source` with other extents, for the kernels of this node.
  Tensor view(const Tensor& source, Shape shape);

  // Sets output 0 to a formula over inputs, all broadcast together; $k is input `slots[k]`, or input k without `slots`.
  // `dtype` is the result's type.
  void elementwise(std::string code, bp_dtype_t dtype, const std::vector<uint32_t>& slots);
  void elementwise(std::string code);  // over all inputs; the result has input 0's type
  // Sets output 0 to a formula over views with one stride for each dimension of `shape`: $k is operands[k].
  void formula(std::string code, bp_dtype_t dtype, const Shape& shape, const std::vector<Operand>& operands);
  // Like `formula`, but adds the launch now instead of deferring it. The result is scratch memory of this node.
  Tensor computed(std::string code, bp_dtype_t dtype, const Shape& shape, const std::vector<View>& operands);
  // Like `computed`, but writes the result to a part of a tensor: `target` has one stride for each dimension of
  // `shape`.
  void compute(std::string code, const Shape& shape, const std::vector<View>& operands, const View& target);
  // Sets output `slot` to a view of another tensor, such as a transposed, sliced or repeated one.
  void moved(uint32_t slot, Shape shape, const View& source);
  // Output 0, with a copy of input 0's elements to be updated. Where the framework binds both to the same memory,
  // nothing is copied (Row::in_place).
  Tensor updated_input();
  // Adds a launch that copies the elements of `source` to `target`. Both views have one stride for each dimension of
  // `shape`.
  void move(const Shape& shape, const View& source, const View& target);

  LaunchBuilder launch(std::string_view file, std::string entry, std::string options, std::string code = {});
  // A product or convolution that the driver's library computes. Add all LibraryArguments in their order.
  LaunchBuilder launch(const ProductProblem& problem);
  LaunchBuilder launch(const ConvolutionProblem& problem);
  // The driver's libraries, as far as the options let the engine use them.
  const Libraries& libraries() const;
  uint32_t compute_types() const;           // BP_COMPUTE_* that the session allows
  void log(const std::string& line) const;  // about this node, at level debug
  // The name of the tensor's type in kernels: "f32".
  static std::string type(const Tensor& tensor) { return std::string(type_name(tensor.dtype)); }

 private:
  Planner& planner_;
};

// Returns the bytes of the island's input `slot`.
using ReadInput = std::function<std::vector<std::byte>(uint32_t slot)>;
// Thrown if a plan depends on an input's bytes and they cannot be read.
struct InputsUnknown {};

// What a plan depends on besides the island and its inputs.
struct PlanContext {
  const Table& table;
  const DeviceCaps& caps;
  const sdk::Host& host;
  uint32_t compute_types;  // BP_COMPUTE_* that the session allows
  Libraries libraries;
};

class Planner {
 public:
  // `inputs` are the extents of the island's inputs; `read` may be empty.
  Planner(const PlanContext& context, const sdk::Graph& graph, const std::vector<Shape>& inputs, ReadInput read);
  // Emits every node; may be called once. The plan's kernels are not built yet, and its arena is not packed. Throws
  // InputsUnknown, or an sdk::Error that names the node.
  Plan make();
  // The extents of the island's outputs. May be called once, instead of `make`. Reads no bytes of inputs: for a node
  // that depends on some, takes the extents that the model declares, which must be static.
  std::vector<Shape> output_shapes();

 private:
  friend class Emit;
  friend class LaunchBuilder;

  struct State {
    Tensor tensor;                      // empty until a launch computes the value
    std::optional<Expression> pending;  // a formula for the value, of which no launch exists yet
    std::optional<HostValue> host;      // the value's elements, if the host computed them
    std::vector<std::byte> bytes;       // the elements of `host` as a tensor has them in memory
    bool known() const { return tensor || pending || host; }
    const Shape& shape() const { return pending ? pending->shape : tensor ? tensor.shape : host->shape; }
  };

  // A launch that can take an epilogue (a formula fused into its last step); it writes [.., rows, columns].
  struct Open {
    size_t launch;
    int64_t rows, columns;
  };

  void add_inputs(const std::vector<Shape>& inputs);
  void add_node();  // emits node `node_`
  void emit(const sdk::Node& node);
  void finish_outputs();
  void mark_constants();
  bool is_constant(uint32_t storage) const;
  std::string key_of(const Launch& launch) const;

  // Computes the node on the host if it can be; returns whether it did.
  bool compute_on_host(const sdk::Node& node, const HostRule& rule);
  // The bytes of a weight, of an input of the island, or of what the host computed. Throws for other values, and names
  // the node's input `operand`.
  std::span<const std::byte> host_bytes(const sdk::Value& value, uint32_t operand);
  State& state(const sdk::Value& value);
  Tensor tensor(const sdk::Value& value);  // in memory; adds the launch of a pending formula
  Tensor add_tensor(bp_dtype_t dtype, Shape shape, Storage storage);
  Tensor add_result(const sdk::Value& value, Shape shape);
  void set_pending(const sdk::Value& value, Expression expression);
  // If possible, fuses the formula into the launch that computes one of its operands, so that the launch writes `y`,
  // and returns true (engine/epilogue.cpp).
  bool fuse_epilogue(const Expression& expression, const Tensor& y);
  bool fuse_into_call(const Expression& expression, const View& sum, const Open& open, const Tensor& y);
  const View* open_leaf(const Expression& expression, const Tensor& y, Open& out_open) const;
  // Moves a launch to the end of the plan and lets it write `y` instead of `sum`.
  Launch& move_to_end(const Open& open, const Tensor& sum, const Tensor& y);
  void materialize(const sdk::Value& value);
  void check_extents(const sdk::Value& value, const Shape& shape) const;
  size_t begin_launch(KernelSource source);

  const PlanContext context_;
  const sdk::Graph graph_;
  const ReadInput read_;
  Plan plan_;
  std::vector<State> states_;         // indexed by value
  std::vector<uint32_t> storage_of_;  // indexed by tensor id
  // Launches that can still take an epilogue, by the id of the tensor that they write. No launch has read that tensor
  // yet.
  std::map<uint32_t, Open> open_;
  uint32_t node_ = 0;
  Tensor fault_;
};

}  // namespace backplane::gpu
