// SPDX-License-Identifier: Apache-2.0
// Operators that read, write or select elements by index: Gather*, Scatter*, OneHot, TopK.
#include <algorithm>

#include "ops/host_values.h"
#include "ops/rows.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

std::string index_type(const Tensor& indices) {
  return " -DINDEX=" + Emit::type(indices);
}

// Throws now, instead of in each run, if input 1 is a constant with an index out of range. Index i selects along
// extents[i % extents.size()].
void check_indices(Emit& e, const std::vector<int64_t>& extents) {
  if (!e.constant(1)) return;
  const std::vector<int64_t> indices = e.ints(1);
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t extent = extents[i % extents.size()];
    if (indices[i] < -extent || indices[i] >= extent)
      throw sdk::Error(BP_INVALID_MODEL,
                       "index " + std::to_string(indices[i]) + " is outside an extent of " + std::to_string(extent));
  }
}

void emit_gather(Emit& e, std::string_view) {
  const Tensor x = e.input(0), indices = e.input(1);
  const size_t axis = axis_of(e.node.int_attribute("axis", 0), x.rank());
  const auto at = x.shape.begin() + static_cast<ptrdiff_t>(axis);
  Shape shape(x.shape.begin(), at);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), at + 1, x.shape.end());
  check_indices(e, {x.shape[axis]});
  const Tensor y = e.output(0, shape);
  if (x.shape[axis] == 0 && y.count() != 0)
    throw sdk::Error(BP_INVALID_ARGUMENT,
                     "input 0 has extent 0 along axis " + std::to_string(axis) + ", so no index is valid");
  const int64_t outer = elements(x.shape, 0, axis), inner = elements(x.shape, axis + 1, x.rank());
  // Adjacent elements are copied by adjacent work items on a GPU, and by the loop of one work item on a CPU.
  const int64_t run = e.caps().kind == BP_DEVICE_CPU ? 256 : 1;
  e.launch("gather", "gather",
           "-DTYPE=" + std::string(word_name(x.dtype)) + index_type(indices) + " -DRUN=" + std::to_string(run))
      .in(x)
      .in(indices)
      .out(y)
      .arg(outer)
      .arg(x.shape[axis])
      .arg(indices.count())
      .arg(inner)
      .fault()
      .range((inner + run - 1) / run, indices.count(), outer);
}

void emit_gather_elements(Emit& e, std::string_view) {
  const Tensor x = e.input(0), indices = e.input(1);
  const size_t axis = axis_of(e.node.int_attribute("axis", 0), x.rank());
  Tensor source = x;
  // In dimensions other than the axis, the indices may have smaller extents than x: x is cut to fit.
  Shape cut = indices.shape;
  for (size_t d = 0; d < x.rank(); ++d) {
    if (d != axis && cut.at(d) > x.shape[d])
      throw sdk::Error(BP_TYPE_MISMATCH, "indices of shape " + to_string(cut) + " exceed input 0 of shape " +
                                             to_string(x.shape) + " in dimension " + std::to_string(d));
  }
  cut.at(axis) = x.shape[axis];
  check_indices(e, {x.shape[axis]});
  if (cut != x.shape) source = e.computed("$0", x.dtype, cut, {{x, dense_strides(x.shape), 0}});
  const Tensor y = e.output(0, indices.shape);
  if (x.shape[axis] == 0 && y.count() != 0)
    throw sdk::Error(BP_INVALID_ARGUMENT,
                     "input 0 has extent 0 along axis " + std::to_string(axis) + ", so no index is valid");
  e.launch("gather", "gather_elements", "-DRUN=1 -DTYPE=" + std::string(word_name(x.dtype)) + index_type(indices))
      .in(source)
      .in(indices)
      .out(y)
      .arg(y.count())
      .arg(x.shape[axis])
      .arg(indices.shape[axis])
      .arg(elements(indices.shape, axis + 1, x.rank()))
      .fault()
      .range(y.count());
}

Verdict supports_gather_elements(const Node& node) {
  if (node.input(1).rank() != node.input(0).rank() || node.input(0).rank() == 0)
    return sdk::no(BP_REASON_SHAPE, "the indices have rank " + std::to_string(node.input(1).rank()) +
                                        " but the input has rank " + std::to_string(node.input(0).rank()));
  return accept();
}

Verdict supports_index(const Node& node) {
  return expect(node).input_dtype(1, one(BP_DTYPE_INT32) | one(BP_DTYPE_INT64)).rank(0, 1);
}

Verdict supports_elements(const Node& node) {
  if (Verdict v = supports_index(node); !accepted(v)) return v;
  return supports_gather_elements(node);
}

// A table of the extents of dimensions [batch, batch + depth), along which the indices of a slice select.
Tensor extents_of(Emit& e, const Shape& shape, size_t batch, size_t depth) {
  std::vector<int32_t> extents;
  for (size_t d = batch; d < batch + depth; ++d) extents.push_back(static_cast<int32_t>(shape.at(d)));
  return e.table(BP_DTYPE_INT32, {static_cast<int64_t>(depth)}, extents);
}

void emit_gather_nd(Emit& e, std::string_view) {
  const Tensor x = e.input(0), indices = e.input(1);
  const int64_t batches = e.node.int_attribute("batch_dims", 0);
  const size_t batch = static_cast<size_t>(batches);
  const int64_t last = indices.shape.back();
  const size_t depth = static_cast<size_t>(last);
  if (batches < 0 || batch >= indices.rank() || batch + depth > x.rank() ||
      !std::equal(x.shape.begin(), x.shape.begin() + batches, indices.shape.begin()))
    throw sdk::Error(BP_TYPE_MISMATCH, "indices of shape " + to_string(indices.shape) + " with batch_dims " +
                                           std::to_string(batches) + " do not fit input 0 of shape " +
                                           to_string(x.shape));
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), x.shape.begin() + static_cast<ptrdiff_t>(batch + depth), x.shape.end());
  const Tensor y = e.output(0, shape);
  if (x.count() == 0 && y.count() != 0) throw sdk::Error(BP_INVALID_ARGUMENT, "input 0 has no elements to select");
  e.launch("gather", "gather_nd", "-DRUN=1 -DTYPE=" + std::string(word_name(x.dtype)) + index_type(indices))
      .in(x)
      .in(indices)
      .in(extents_of(e, x.shape, batch, depth))
      .out(y)
      .arg(y.count())
      .arg(last)
      .arg(elements(x.shape, batch, x.rank()))
      .arg(elements(indices.shape, batch, indices.rank() - 1))
      .arg(elements(x.shape, batch + depth, x.rank()))
      .fault()
      .range(y.count());
}

Verdict supports_nd(const Node& node) {
  if (Verdict v = supports_index(node); !accepted(v)) return v;
  if (node.input(1).rank() == 0)
    return sdk::no(BP_REASON_SHAPE, "the indices are a scalar, but must have at least one dimension");
  return accept();
}

// ---- scatter -------------------------------------------------------------------------------------------------------

constexpr struct {
  std::string_view reduction, join;
} kJoins[] = {{"none", "b"},
              {"add", "a + b"},
              {"mul", "a * b"},
              {"max", "a != a || a > b ? a : b"},
              {"min", "a != a || a < b ? a : b"}};

std::string join_of(const Node& node) {
  // A sum of booleans could be 2.
  if (node.input(0).dtype() == BP_DTYPE_BOOL && node.text_attribute("reduction", "none") == "add")
    return "#define JOIN(a, b) (a | b)\n";
  for (const auto& [reduction, join] : kJoins) {
    if (reduction == node.text_attribute("reduction", "none"))
      return "#define JOIN(a, b) (" + std::string(join) + ")\n";
  }
  return {};
}

void emit_scatter_elements(Emit& e, std::string_view) {
  const Tensor indices = e.input(1), updates = e.input(2);
  const Shape shape = e.shape(0);
  const size_t axis = axis_of(e.node.int_attribute("axis", 0), shape.size());
  if (updates.shape != indices.shape)
    throw sdk::Error(BP_TYPE_MISMATCH, "the updates have shape " + to_string(updates.shape) + " but the indices " +
                                           to_string(indices.shape) + "; they must be equal");
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != axis && indices.shape.at(d) > shape[d])
      throw sdk::Error(BP_TYPE_MISMATCH, "indices of shape " + to_string(indices.shape) + " exceed input 0 of shape " +
                                             to_string(shape) + " in dimension " + std::to_string(d));
  }
  check_indices(e, {shape[axis]});
  std::vector<int32_t> numbers(indices.shape.begin(), indices.shape.end());
  for (const int64_t stride : dense_strides(shape)) numbers.push_back(static_cast<int32_t>(stride));
  numbers.push_back(static_cast<int32_t>(shape[axis]));
  const Tensor y = e.updated_input();
  const int64_t lines = indices.count() == 0 ? 0 : indices.count() / indices.shape[axis];
  e.launch("scatter", "scatter_elements", "-DTYPE=" + Emit::type(y) + index_type(indices), join_of(e.node))
      .in(indices)
      .in(updates)
      .in(e.table(BP_DTYPE_INT32, {static_cast<int64_t>(numbers.size())}, numbers))
      .out(y)
      .arg(lines)
      .arg(static_cast<int64_t>(axis))
      .arg(static_cast<int64_t>(shape.size()))
      .fault()
      .range(lines);
}

void emit_scatter_nd(Emit& e, std::string_view) {
  const Tensor indices = e.input(1), updates = e.input(2);
  const Shape shape = e.shape(0);
  const size_t depth = static_cast<size_t>(indices.shape.back());
  Shape expected(indices.shape.begin(), indices.shape.end() - 1);
  if (depth > shape.size())
    throw sdk::Error(BP_TYPE_MISMATCH, "indices of shape " + to_string(indices.shape) + " select along " +
                                           std::to_string(depth) + " dimensions, but input 0 has shape " +
                                           to_string(shape));
  expected.insert(expected.end(), shape.begin() + static_cast<ptrdiff_t>(depth), shape.end());
  if (updates.shape != expected)
    throw sdk::Error(BP_TYPE_MISMATCH,
                     "updates have shape " + to_string(updates.shape) + " but must have " + to_string(expected));
  const Tensor y = e.updated_input();
  const int64_t inner = elements(shape, depth, shape.size());
  e.launch("scatter", "scatter_nd", "-DTYPE=" + Emit::type(y) + index_type(indices), join_of(e.node))
      .in(indices)
      .in(updates)
      .in(extents_of(e, shape, 0, depth))
      .out(y)
      .arg(elements(indices.shape, 0, indices.rank() - 1))
      .arg(static_cast<int64_t>(depth))
      .arg(inner)
      .fault()
      .range(inner);
}

Verdict supports_scatter(const Node& node) {
  if (join_of(node).empty())
    return sdk::no(BP_REASON_ATTRIBUTE,
                   "reduction '" + std::string(node.text_attribute("reduction", "")) + "' is not supported");
  if (node.input(2).dtype() != node.input(0).dtype())
    return sdk::no(BP_REASON_DTYPE, "the updates are " + std::string(view::dtype_name(node.input(2).dtype())) +
                                        ", but input 0 is " + std::string(view::dtype_name(node.input(0).dtype())));
  return supports_nd(node);
}

Verdict supports_scatter_elements(const Node& node) {
  if (Verdict v = supports_scatter(node); !accepted(v)) return v;
  return supports_gather_elements(node);
}

// ---- TensorScatter -------------------------------------------------------------------------------------------------

void emit_tensor_scatter(Emit& e, std::string_view) {
  const Tensor update = e.input(1), starts = e.input(2);
  const Shape shape = e.shape(0);
  const size_t axis = axis_of(e.node.int_attribute("axis", -2), shape.size());
  Shape expected = shape;
  if (update.rank() == shape.size()) expected[axis] = std::min(update.shape[axis], shape[axis]);
  if (axis == 0 || update.shape != expected)
    throw sdk::Error(BP_TYPE_MISMATCH, "an update " + to_string(update.shape) + " along axis " + std::to_string(axis) +
                                           " does not fit a cache " + to_string(shape));
  if (starts && starts.shape != Shape{shape[0]})
    throw sdk::Error(BP_TYPE_MISMATCH, "write_indices have extents " + to_string(starts.shape) + " instead of [" +
                                           std::to_string(shape[0]) + "], one for each sequence");
  const Tensor y = e.updated_input();
  if (update.count() == 0) return;
  if (!starts) return e.move(update.shape, {update, dense_strides(update.shape), 0}, {y, dense_strides(shape), 0});
  const bool is_circular = e.node.text_attribute("mode", "linear") == "circular";
  e.launch("tensor_scatter", "tensor_scatter",
           "-DTYPE=" + std::string(word_name(update.dtype)) + (is_circular ? " -DCIRCULAR" : ""))
      .in(update)
      .in(starts)
      .out(y)
      .arg(update.count())
      .arg(shape[axis])
      .arg(update.shape[axis])
      .arg(elements(shape, axis + 1, shape.size()))
      .arg(update.count() / shape[0])
      .fault()
      .range(update.count());
}

Verdict supports_tensor_scatter(const Node& node) {
  return expect(node)
      .choice("mode", {"linear", "circular"})
      .rank(0, 2)
      .same_dtype(0, 1)
      .input_dtype(2, one(BP_DTYPE_INT64));
}

// ---- one-hot, top k ------------------------------------------------------------------------------------------------

void emit_one_hot(Emit& e, std::string_view) {
  const Tensor indices = e.input(0), values = e.input(2);
  const std::vector<double> depths = e.numbers(1);
  const double depth = depths.size() == 1 ? depths.front() : -1;
  if (!(depth >= 0 && depth <= INT32_MAX) || values.count() != 2)
    throw sdk::Error(BP_INVALID_ARGUMENT, "depth must be >= 0 and values of shape [2], not " + std::to_string(depth) +
                                              " and " + to_string(values.shape));
  Shape shape = indices.shape;
  const size_t axis = axis_of(e.node.int_attribute("axis", -1), shape.size() + 1);
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), static_cast<int64_t>(depth));
  const Tensor y = e.output(0, shape);
  e.launch("one_hot", "one_hot", "-DTYPE=" + std::string(word_name(values.dtype)) + index_type(indices))
      .in(indices)
      .in(values)
      .out(y)
      .arg(y.count())
      .arg(static_cast<int64_t>(depth))
      .arg(elements(indices.shape, axis, indices.rank()))
      .range(y.count());
}

Verdict supports_one_hot(const Node& node) {
  if (node.input(2).dtype() != node.output(0).dtype())
    return sdk::no(BP_REASON_DTYPE, "its output is " + std::string(view::dtype_name(node.output(0).dtype())) +
                                        ", but input 2 is " + std::string(view::dtype_name(node.input(2).dtype())));
  if ((kNumbers & ~one(BP_DTYPE_FLOAT16) & ~one(BP_DTYPE_BFLOAT16)) >> node.input(1).dtype() & 1)
    return known_on_host(node, 1);
  return sdk::no(BP_REASON_DTYPE, "the depth cannot be " + std::string(view::dtype_name(node.input(1).dtype())));
}

// The longest row that TopK accepts, as each element is compared with all others of its row.
constexpr int64_t kMaxCompared = 16384;

void emit_top_k(Emit& e, std::string_view) {
  const Tensor x = e.input(0);
  const size_t axis = axis_of(e.node.int_attribute("axis", -1), x.rank());
  const int64_t k = e.ints(1).at(0);
  if (k < 0 || k > x.shape[axis])
    throw sdk::Error(BP_INVALID_ARGUMENT,
                     "k is " + std::to_string(k) + "; it must be 0 to " + std::to_string(x.shape[axis]));
  Shape shape = x.shape;
  shape[axis] = k;
  const Rows rows = rows_of(e.caps(), x.shape, axis, axis + 1);
  const Tensor y = e.has_output(0) ? e.output(0, shape) : e.scratch(x.dtype, shape);
  const Tensor indices = e.has_output(1) ? e.output(1, shape) : e.scratch(BP_DTYPE_INT64, shape);
  e.launch("top_k", "top_k", "-DTYPE=" + Emit::type(x),
           std::string("#define BEFORE ") + (e.node.int_attribute("largest", 1) != 0 ? ">\n" : "<\n"))
      .in(x)
      .out(y)
      .out(indices)
      .arg(rows.count())
      .arg(rows.n)
      .arg(rows.inner)
      .arg(k)
      .range(rows.n, rows.count());
}

Verdict supports_top_k(const Node& node) {
  if (node.input(0).rank() == 0)
    return sdk::no(BP_REASON_SHAPE, "input 0 is a scalar, but must have at least one dimension");
  const int64_t axis = node.int_attribute("axis", -1), rank = node.input(0).rank();
  if (axis < -rank || axis >= rank)
    return sdk::no(BP_REASON_ATTRIBUTE,
                   "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  const int64_t n = node.input(0).extent(static_cast<uint32_t>(axis < 0 ? axis + rank : axis));
  if (n < 0) return sdk::no(BP_REASON_SHAPE, "the length of the rows is unknown");
  if (n > kMaxCompared)
    return sdk::no(BP_REASON_SHAPE, "rows of " + std::to_string(n) + " elements; at most " +
                                        std::to_string(kMaxCompared) + " are supported");
  return known_on_host(node, 1);
}

constexpr Form kScattering{3, 3};
constexpr InPlace kUpdated[] = {{0, 0, true}};

}  // namespace

std::span<const Row> gather_rows() {
  static constexpr Row kRows[] = {
      Row{"", "Gather", 1, kAnything, kBinary, supports_index, emit_gather}.on_host({on_host::gather}),
      {"", "GatherElements", 11, kAnything, kBinary, supports_elements, emit_gather_elements},
      {"", "GatherND", 11, kAnything, kBinary, supports_nd, emit_gather_nd},
      Row{"", "Scatter", 9, kAnything, kScattering, supports_scatter_elements, emit_scatter_elements}.updating(
          kUpdated),
      Row{"", "ScatterElements", 11, kAnything, kScattering, supports_scatter_elements, emit_scatter_elements}.updating(
          kUpdated),
      Row{"", "ScatterND", 11, kAnything, kScattering, supports_scatter, emit_scatter_nd}.updating(kUpdated),
      Row{"", "TensorScatter", 24, kAnything, {2, 3}, supports_tensor_scatter, emit_tensor_scatter}.updating(kUpdated),
      {"", "OneHot", 9, kNumbers, {3, 3, Form::kOpen}, supports_one_hot, emit_one_hot},
      {"", "TopK", 10, kNumbers, {2, 2, Form::kSame, 2}, supports_top_k, emit_top_k},
  };
  return kRows;
}

}  // namespace backplane::gpu
