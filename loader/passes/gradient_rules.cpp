// SPDX-License-Identifier: Apache-2.0
#include "passes/gradient_rules.h"

#include <algorithm>

namespace backplane::model {
namespace {

Attribute flag(const char* name) {
  return Attribute::of(name, int64_t{1});
}

bool same_extent(const bp_dim_t& a, const bp_dim_t& b) {
  return a.extent >= 0 ? a.extent == b.extent : b.extent < 0 && a.symbol == b.symbol && a.symbol != BP_NONE;
}

// Elementwise operators with one input x and output y. A comment next to a rule is the derivative.

Status abs(Step& s) {
  s.set_gradient(0, s.r.emit("Mul", {s.g, s.r.emit("Sign", {s.x()})}));
  return {};
}

Status cos(Step& s) {
  s.set_gradient(0, s.r.emit("Neg", {s.r.emit("Mul", {s.g, s.r.emit("Sin", {s.x()})})}));
  return {};
}

Status exp(Step& s) {
  s.set_gradient(0, s.r.emit("Mul", {s.g, s.y()}));
  return {};
}

Status identity(Step& s) {
  s.set_gradient(0, s.g);
  return {};
}

Status log(Step& s) {
  s.set_gradient(0, s.r.emit("Div", {s.g, s.x()}));
  return {};
}

Status neg(Step& s) {
  s.set_gradient(0, s.r.emit("Neg", {s.g}));
  return {};
}

Status reciprocal(Step& s) {  // -y²
  s.set_gradient(0, s.r.emit("Neg", {s.r.emit("Mul", {s.g, s.r.emit("Mul", {s.y(), s.y()})})}));
  return {};
}

Status relu(Step& s) {  // 1 where x > 0, otherwise 0
  const ValueId zero = s.r.like(0, s.x());
  s.set_gradient(0, s.r.emit("Where", {s.r.emit("Greater", {s.x(), zero}), s.g, zero}));
  return {};
}

Status sigmoid(Step& s) {  // y (1 - y)
  const ValueId rest = s.r.emit("Sub", {s.r.like(1, s.x()), s.y()});
  s.set_gradient(0, s.r.emit("Mul", {s.g, s.r.emit("Mul", {s.y(), rest})}));
  return {};
}

Status sin(Step& s) {
  s.set_gradient(0, s.r.emit("Mul", {s.g, s.r.emit("Cos", {s.x()})}));
  return {};
}

Status sqrt(Step& s) {  // 1 / (2y)
  s.set_gradient(0, s.r.emit("Div", {s.g, s.r.emit("Mul", {s.r.like(2, s.x()), s.y()})}));
  return {};
}

Status step_function(Step&) {
  return {};  // piecewise constant
}

Status tanh(Step& s) {  // 1 - y²
  const ValueId square = s.r.emit("Mul", {s.y(), s.y()});
  s.set_gradient(0, s.r.emit("Mul", {s.g, s.r.emit("Sub", {s.r.like(1, s.x()), square})}));
  return {};
}

Status cast(Step& s) {
  s.set_gradient(0, s.r.emit("CastLike", {s.g, s.x()}));
  return {};
}

Status dropout(Step& s) {
  if (const Weight* mode = s.r.graph.weight_of(s.x(2));
      s.x(2) != BP_NONE && !(mode && mode->bytes == 1 && *static_cast<const char*>(mode->data) == 0)) {
    return s.refuse("its training_mode is not a constant false");
  }
  if (s.x(2) != BP_NONE) s.r.graph.weights[s.r.graph.values[s.x(2)].weight].consumed = true;
  return identity(s);
}

// Elementwise operators with broadcasting.

Status add(Step& s) {
  for (size_t slot = 0; slot < s.node.inputs.size(); ++slot) {
    if (s.wants(slot)) BP_TRY(s.set_summed_gradient(slot, s.g));
  }
  return {};
}

Status sub(Step& s) {
  if (s.wants(0)) BP_TRY(s.set_summed_gradient(0, s.g));
  if (s.wants(1)) BP_TRY(s.set_summed_gradient(1, s.r.emit("Neg", {s.g})));
  return {};
}

Status mul(Step& s) {
  if (s.wants(0)) BP_TRY(s.set_summed_gradient(0, s.r.emit("Mul", {s.g, s.x(1)})));
  if (s.wants(1)) BP_TRY(s.set_summed_gradient(1, s.r.emit("Mul", {s.g, s.x(0)})));
  return {};
}

Status div(Step& s) {  // 1/b for a, -y/b for b
  const ValueId part = s.r.emit("Div", {s.g, s.x(1)});
  if (s.wants(0)) BP_TRY(s.set_summed_gradient(0, part));
  if (s.wants(1)) BP_TRY(s.set_summed_gradient(1, s.r.emit("Neg", {s.r.emit("Mul", {part, s.y()})})));
  return {};
}

Status pow(Step& s) {  // b xᵇ⁻¹, or 0 if b is 0
  if (s.wants(1)) return s.refuse("its exponent depends on a value of xs");
  const ValueId zero = s.r.like(0, s.x());
  const ValueId b = s.r.emit("CastLike", {s.x(1), s.x()});
  const ValueId power = s.r.emit("Pow", {s.x(), s.r.emit("Sub", {b, s.r.like(1, s.x())})});
  const ValueId slope = s.r.emit("Where", {s.r.emit("Equal", {b, zero}), zero, s.r.emit("Mul", {b, power})});
  return s.set_summed_gradient(0, s.r.emit("Mul", {s.g, slope}));
}

Status where(Step& s) {
  const ValueId zero = s.r.like(0, s.y());
  if (s.wants(1)) BP_TRY(s.set_summed_gradient(1, s.r.emit("Where", {s.x(0), s.g, zero})));
  if (s.wants(2)) BP_TRY(s.set_summed_gradient(2, s.r.emit("Where", {s.x(0), zero, s.g})));
  return {};
}

// Operators that change only the shape or order of elements.

Status expand(Step& s) {
  return s.set_summed_gradient(0, s.g);
}

// Reshape, Flatten, Squeeze and Unsqueeze keep the order of the elements.
Status reshape(Step& s) {
  s.set_gradient(0, s.r.emit("Reshape", {s.g, s.r.emit("Shape", {s.x()})}, {flag("allowzero")}));
  return {};
}

Status transpose(Step& s) {
  const Attribute* perm = s.node.find("perm");
  if (!perm) {  // without perm, Transpose reverses the axes and is its own inverse
    s.set_gradient(0, s.r.emit("Transpose", {s.g}));
    return {};
  }
  const std::vector<int64_t>& to = perm->ints();
  const auto rank = static_cast<int64_t>(to.size());
  std::vector<int64_t> back(to.size(), -1);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t from = to[axis] < 0 ? to[axis] + rank : to[axis];
    // Inference checks this only where the rank is known.
    if (from < 0 || from >= rank || back[from] >= 0) return s.refuse("its perm is not a permutation");
    back[from] = axis;
  }
  s.set_gradient(0, s.r.emit("Transpose", {s.g}, {Attribute::of("perm", std::move(back))}));
  return {};
}

// Reductions and contractions.

Status reduce_sum(Step& s) {
  ValueId g = s.g;
  if (s.node.attr("keepdims", int64_t{1}) == 0) {
    const ValueId kept = s.r.emit(
        "ReduceSum", s.node.inputs,
        {flag("keepdims"), Attribute::of("noop_with_empty_axes", s.node.attr("noop_with_empty_axes", int64_t{0}))});
    g = s.r.emit("Reshape", {g, s.r.emit("Shape", {kept})}, {flag("allowzero")});
  }
  s.set_gradient(0, s.r.emit("Expand", {g, s.r.emit("Shape", {s.x()})}));
  return {};
}

// Divides in fp32 where x is fp16 or bf16: a count above 65,504 is infinite in fp16.
Status reduce_mean(Step& s) {
  const bp_dtype_t dtype = s.r.dtype(s.x());
  const bool widens = dtype == BP_DTYPE_FLOAT16 || dtype == BP_DTYPE_BFLOAT16;
  const auto wide = [&](ValueId value) {
    return widens ? s.r.emit("Cast", {value}, {Attribute::of("to", int64_t{BP_DTYPE_FLOAT})})
                  : s.r.emit("CastLike", {value, s.g});
  };
  const ValueId count = s.r.emit("Div", {wide(s.r.emit("Size", {s.x()})), wide(s.r.emit("Size", {s.y()}))});
  const ValueId quotient = s.r.emit("Div", {widens ? wide(s.g) : s.g, count});
  Step sum{s.r, s.node, widens ? s.r.emit("CastLike", {quotient, s.g}) : quotient, s.wanted, std::move(s.found)};
  BP_TRY(reduce_sum(sum));
  s.found = std::move(sum.found);
  return {};
}

Status softmax(Step& s) {  // y (g - Σ g y)
  const ValueId axis = s.r.constant(std::vector<int64_t>{s.node.attr("axis", int64_t{-1})});
  const ValueId sum = s.r.emit("ReduceSum", {s.r.emit("Mul", {s.g, s.y()}), axis}, {flag("keepdims")});
  s.set_gradient(0, s.r.emit("Mul", {s.y(), s.r.emit("Sub", {s.g, sum})}));
  return {};
}

Status gemm(Step& s) {  // Y = α A' B' + β C, where ' stands for an optional transposition
  const Attribute alpha = Attribute::of("alpha", s.node.attr("alpha", 1.0f));
  const int64_t trans_a = s.node.attr("transA", int64_t{0}), trans_b = s.node.attr("transB", int64_t{0});
  const auto product = [&](ValueId left, int64_t trans_left, ValueId right, int64_t trans_right) {
    return s.r.emit("Gemm", {left, right},
                    {alpha, Attribute::of("transA", trans_left), Attribute::of("transB", trans_right)});
  };
  if (s.wants(0)) s.set_gradient(0, trans_a ? product(s.x(1), trans_b, s.g, 1) : product(s.g, 0, s.x(1), !trans_b));
  if (s.wants(1)) s.set_gradient(1, trans_b ? product(s.g, 1, s.x(0), trans_a) : product(s.x(0), !trans_a, s.g, 0));
  if (!s.wants(2)) return {};
  return s.set_summed_gradient(2, s.r.emit("Mul", {s.g, s.r.like(s.node.attr("beta", 1.0f), s.x(2))}));
}

// Treats a vector on the left as a matrix with one row, and a vector on the right as a matrix with one column.
Status mat_mul(Step& s) {
  Type full[2] = {s.type(s.x(0)), s.type(s.x(1))};
  Type out = s.type(s.y());
  if (full[0].rank < 1 || full[1].rank < 1 || out.rank < 0)
    return s.refuse("the ranks of its inputs are not known; declare their shapes");
  const bool is_vector[2] = {full[0].rank == 1, full[1].rank == 1};
  const bp_dim_t one{1, BP_NONE, 0};
  ValueId matrix[2] = {s.x(0), s.x(1)};
  std::vector<int64_t> unit_axes;
  const auto widen = [&one](Type& type, size_t axis) {
    type.dims.insert(type.dims.begin() + static_cast<std::ptrdiff_t>(axis), one);
    ++type.rank;
  };
  if (is_vector[0]) {
    matrix[0] = s.r.unsqueeze(matrix[0], {0});
    widen(full[0], 0);
    widen(out, out.dims.size() - (is_vector[1] ? 0 : 1));
    unit_axes.push_back(out.rank - (is_vector[1] ? 1 : 2));
  }
  if (is_vector[1]) {
    matrix[1] = s.r.unsqueeze(matrix[1], {1});
    widen(full[1], 1);
    widen(out, out.dims.size());
    unit_axes.push_back(out.rank - 1);
  }
  const ValueId g = s.r.unsqueeze(s.g, unit_axes);
  const auto swapped = [&](size_t slot) {
    std::vector<int64_t> perm(full[slot].dims.size());
    for (size_t axis = 0; axis < perm.size(); ++axis) perm[axis] = static_cast<int64_t>(axis);
    std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
    return s.r.emit("Transpose", {matrix[slot]}, {Attribute::of("perm", std::move(perm))});
  };
  for (const size_t slot : {0, 1}) {
    if (!s.wants(slot)) continue;
    const ValueId product = slot == 0 ? s.r.emit("MatMul", {g, swapped(1)}) : s.r.emit("MatMul", {swapped(0), g});
    Type type = out;  // the output's batch dimensions and the input's matrix dimensions
    std::copy(full[slot].dims.end() - 2, full[slot].dims.end(), type.dims.end() - 2);
    BP_ASSIGN(ValueId sum, s.sum_to(product, type, full[slot]));
    if (is_vector[slot]) sum = s.r.emit("Reshape", {sum, s.r.emit("Shape", {s.x(slot)})}, {flag("allowzero")});
    s.set_gradient(slot, sum);
  }
  return {};
}

struct Entry {
  std::string_view op;
  GradientRule rule;
};

// Sorted by operator; all are of ai.onnx. Includes the differentiable operators that the rules insert, so that
// gradients have gradients.
constexpr Entry kRules[] = {
    {"Abs", abs},
    {"Add", add},
    {"Cast", cast},
    {"CastLike", cast},
    {"Ceil", step_function},
    {"Cos", cos},
    {"Div", div},
    {"Dropout", dropout},
    {"Exp", exp},
    {"Expand", expand},
    {"Flatten", reshape},
    {"Floor", step_function},
    {"Gemm", gemm},
    {"Identity", identity},
    {"Log", log},
    {"MatMul", mat_mul},
    {"Mul", mul},
    {"Neg", neg},
    {"Pow", pow},
    {"Reciprocal", reciprocal},
    {"ReduceMean", reduce_mean},
    {"ReduceSum", reduce_sum},
    {"Relu", relu},
    {"Reshape", reshape},
    {"Round", step_function},
    {"Sigmoid", sigmoid},
    {"Sign", step_function},
    {"Sin", sin},
    {"Softmax", softmax},
    {"Sqrt", sqrt},
    {"Squeeze", reshape},
    {"Sub", sub},
    {"Sum", add},
    {"Tanh", tanh},
    {"Transpose", transpose},
    {"Unsqueeze", reshape},
    {"Where", where},
};

}  // namespace

Result<ValueId> Step::sum_to(ValueId gradient, const Type& from, const Type& to) {
  if (from.rank < 0 || to.rank < 0 || from.rank < to.rank) {
    return refuse("it broadcasts, and the ranks of its inputs are not known; declare their shapes");
  }
  const size_t ahead = from.dims.size() - to.dims.size();
  std::vector<int64_t> leading, inner;
  for (size_t axis = 0; axis < ahead; ++axis) leading.push_back(static_cast<int64_t>(axis));
  for (size_t axis = 0; axis < to.dims.size(); ++axis) {
    const int64_t extent = to.dims[axis].extent;
    if (extent == 0 || extent > 1 || same_extent(to.dims[axis], from.dims[ahead + axis])) continue;
    if (extent != 1) {
      return refuse("it is not known whether axis " + std::to_string(axis) +
                    " of an input is broadcast; declare the shapes of the inputs");
    }
    inner.push_back(static_cast<int64_t>(axis));
  }
  if (!leading.empty()) {
    gradient = r.emit("ReduceSum", {gradient, r.constant(leading)}, {Attribute::of("keepdims", int64_t{0})});
  }
  if (!inner.empty()) gradient = r.emit("ReduceSum", {gradient, r.constant(inner)}, {flag("keepdims")});
  return gradient;
}

Status Step::set_summed_gradient(size_t slot, ValueId gradient) {
  BP_ASSIGN(const ValueId sum, sum_to(gradient, type(y()), type(x(slot))));
  set_gradient(slot, sum);
  return {};
}

Status Step::refuse(std::string_view why) const {
  return Status(BP_UNSUPPORTED,
                node.label() + " has no derivative, which " + r.node.label() + " needs: " + std::string(why))
      .with_node(node.id);
}

GradientRule gradient_rule(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  const auto place = std::lower_bound(std::begin(kRules), std::end(kRules), std::string_view(node.op_type),
                                      [](const Entry& entry, std::string_view op) { return entry.op < op; });
  return place != std::end(kRules) && place->op == node.op_type ? place->rule : nullptr;
}

}  // namespace backplane::model
