// SPDX-License-Identifier: Apache-2.0
// Operators that create a tensor from attributes, extents or a few numbers.
#include <cmath>
#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/index.h"
#include "kernels/common/small_types.h"
#include "kernels/common/support.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

// ---- Constant, ConstantOfShape -------------------------------------------------------------------------------------

// A copy of the value of a Constant, or of the element that fills the result of a ConstantOfShape.
struct Value {
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  Shape shape;
  std::vector<char> bytes;
};

template <class T>
Value value_of(bp_dtype_t dtype, const Shape& shape, const T* data) {
  const char* bytes = reinterpret_cast<const char*>(data);
  return {dtype, shape, std::vector<char>(bytes, bytes + static_cast<size_t>(shape.elements()) * sizeof(T))};
}

std::optional<Value> tensor_attribute(const Node& node, const bp_attribute_t* attribute) {
  if (attribute->type != BP_ATTR_TENSOR || attribute->count != 1) return std::nullopt;
  const bp_graph_t& graph = node.graph();
  const uint32_t index = *static_cast<const uint32_t*>(attribute->data);
  const bp_weight_t* weight = bp_graph_weight(&graph, index);
  if (((kByteTypes | kPackedTypes) >> weight->dtype & 1) == 0) return std::nullopt;
  const void* data = weight->data;
  if (data == nullptr && weight->bytes > 0 && graph.api->weight_map(&graph, index, &data, nullptr) != BP_OK)
    return std::nullopt;
  Shape shape;
  for (uint32_t d = 0; d < weight->rank; ++d) shape.push_back(graph.dims[weight->first_dim + d].extent);
  if (weight->bytes != static_cast<uint64_t>(bytes_of(weight->dtype, shape.elements()))) return std::nullopt;
  const char* bytes = static_cast<const char*>(data);
  return Value{weight->dtype, shape, std::vector<char>(bytes, bytes + weight->bytes)};
}

std::optional<Value> constant_value(const Node& node) {
  if (const auto* a = node.find("value")) return tensor_attribute(node, a);
  if (const auto* a = node.find("value_float")) return value_of(BP_DTYPE_FLOAT, {}, static_cast<const float*>(a->data));
  if (const auto* a = node.find("value_int")) return value_of(BP_DTYPE_INT64, {}, static_cast<const int64_t*>(a->data));
  if (const auto* a = node.find("value_floats"))
    return value_of(BP_DTYPE_FLOAT, {a->count}, static_cast<const float*>(a->data));
  if (const auto* a = node.find("value_ints"))
    return value_of(BP_DTYPE_INT64, {a->count}, static_cast<const int64_t*>(a->data));
  return std::nullopt;
}

Verdict supports_constant(const Node& node) {
  const std::optional<Value> value = constant_value(node);
  if (!value) {
    for (const char* name : {"value_string", "value_strings", "sparse_value"})
      if (node.find(name) != nullptr) return no(BP_REASON_ATTRIBUTE, std::string(name) + " is not supported");
    if (node.find("value") == nullptr) return no(BP_REASON_ATTRIBUTE, "value is missing");
    return no(BP_REASON_ATTRIBUTE,
              "value has an unsupported data type, or its bytes cannot be read or do not fit its extents");
  }
  return returns_type(node, "the type of value", value->dtype, kByteTypes | kPackedTypes);
}

std::unique_ptr<Kernel> create_constant(const Node& node) {
  return make_kernel([value = std::make_shared<const Value>(*constant_value(node))](Tensors) {
    return make_plan({value->shape}, [value](Tensors, Tensors out) {
      if (!value->bytes.empty()) std::memcpy(out[0].data, value->bytes.data(), value->bytes.size());
    });
  });
}

std::optional<Value> fill_value(const Node& node) {
  constexpr float kZero = 0;
  const auto* attribute = node.find("value");
  auto value = attribute == nullptr ? value_of(BP_DTYPE_FLOAT, {}, &kZero) : tensor_attribute(node, attribute);
  if (!value || value->shape.elements() != 1) return std::nullopt;
  if (kPackedTypes >> value->dtype & 1) {  // replace the value by one byte in which the element is repeated
    const uint8_t element = load_bits(value->bytes.data(), bits_of(value->dtype), 0);
    const std::vector<uint8_t> repeated(8, element);
    pack(value->dtype, repeated.data(), value->bytes.data(), 8 / bits_of(value->dtype));
  }
  return value;
}

Verdict supports_fill(const Node& node) {
  const std::optional<Value> value = fill_value(node);
  if (!value) return no(BP_REASON_ATTRIBUTE, "value is not a tensor with one element of a supported type");
  if (Verdict verdict = accepts(node, 1, {just(BP_DTYPE_INT64)}); !verdict) return verdict;
  return returns_type(node, "the type of value", value->dtype, kByteTypes | kPackedTypes);
}

std::unique_ptr<Kernel> create_fill(const Node& node) {
  return make_kernel([value = *fill_value(node)](Tensors inputs) -> Plan {
    if (!known(inputs[0])) return deferred();
    const std::vector<int64_t> extents = integers(inputs[0]);
    if (extents.size() > BP_MAX_RANK)
      return fail("rank " + std::to_string(extents.size()) + " exceeds the maximum of 32");
    return make_plan({Shape(extents)}, [value](Tensors, Tensors out) {
      dispatch_size(bytes_of(value.dtype, 1), [&](auto tag) {
        using T = typename decltype(tag)::type;
        T fill;
        std::memcpy(&fill, value.bytes.data(), sizeof(T));
        const int64_t n = bytes_of(value.dtype, out[0].shape.elements()) / static_cast<int64_t>(sizeof(T));
        parallel(n, 8 * kCheapGrain,
                 [&](int64_t begin, int64_t end) { std::fill(out[0].as<T>() + begin, out[0].as<T>() + end, fill); });
      });
    });
  });
}

// ---- Shape, Size ---------------------------------------------------------------------------------------------------

Verdict supports_extents(const Node& node) {
  return accepts(node, 1, {kByteTypes | kPackedTypes | just(BP_DTYPE_STRING)});
}

std::unique_ptr<Kernel> create_shape(const Node& node) {
  return make_kernel([start = node.attr("start", int64_t{0}), end = node.attr("end", INT64_MAX)](Tensors inputs) {
    const Shape& shape = inputs[0].shape;
    const auto bounded = [&](int64_t i) {
      return static_cast<size_t>(std::clamp<int64_t>(i < 0 ? i + shape.rank() : i, 0, shape.rank()));
    };
    const size_t first = bounded(start), last = std::max(first, bounded(end));
    const Shape part(shape.span().subspan(first, last - first));
    return make_plan({{part.rank()}},
                     [part](Tensors, Tensors out) { std::copy(part.begin(), part.end(), out[0].as<int64_t>()); });
  });
}

std::unique_ptr<Kernel> create_size(const Node&) {
  return make_kernel([](Tensors inputs) {
    return make_plan({Shape{}}, [n = inputs[0].shape.elements()](Tensors, Tensors out) { *out[0].as<int64_t>() = n; });
  });
}

// ---- Range ---------------------------------------------------------------------------------------------------------

using RangeTypes = TypeList<float, double, Half, BFloat16, int16_t, int32_t, int64_t>;

Verdict supports_range(const Node& node) {
  constexpr bp_dtype_set_t kTypes = set_of(RangeTypes{});
  if (Verdict verdict = accepts(node, 3, {kTypes, kTypes, kTypes}); !verdict) return verdict;
  if (Verdict verdict = same_type(node, 0, 1); !verdict) return verdict;
  return same_type(node, 0, 2);
}

template <class T>
Plan plan_range(Tensors inputs) {
  using C = compute_t<T>;
  C numbers[3];
  for (size_t i = 0; i < 3; ++i) {
    if (inputs[i].shape.elements() != 1)
      return fail("start, limit and delta must be scalars, but input " + std::to_string(i) + " has shape " +
                  to_string(inputs[i].shape));
    if (!known(inputs[i])) return deferred();
    numbers[i] = static_cast<C>(*inputs[i].as<T>());
  }
  const C start = numbers[0], limit = numbers[1], delta = numbers[2];
  if (delta == 0) return fail("delta must not be 0");
  double count = 0;
  if constexpr (std::is_integral_v<C>) {
    const __int128 span = static_cast<__int128>(limit) - start, step = delta;
    count = static_cast<double>(std::max<__int128>(0, (span + step + (step > 0 ? -1 : 1)) / step));
  } else {
    count = std::max(std::ceil((static_cast<double>(limit) - start) / delta), 0.0);  // NaN stays NaN
  }
  if (std::isnan(count))
    return fail("a range from " + std::to_string(start) + " to " + std::to_string(limit) + " by " +
                std::to_string(delta) + " has no number of elements");
  if (!(count < 0x1p48))
    return fail("the result would have " + std::to_string(count) + " elements; it must have fewer than 2^48");
  const auto n = static_cast<int64_t>(count);
  return make_plan({{n}}, [n, start, delta](Tensors, Tensors out) {
    T* y = out[0].as<T>();
    parallel(n, kCheapGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_integral_v<C>)  // i · delta may be beyond the type where the sum is not
          y[i] = static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
        else
          y[i] = static_cast<T>(static_cast<C>(start + static_cast<C>(i) * delta));
      }
    });
  });
}

std::unique_ptr<Kernel> create_range(const Node& node) {
  return dispatch<RangeTypes>(node.input_type(0).dtype, [](auto tag) {
    return make_kernel([](Tensors inputs) -> Plan { return plan_range<typename decltype(tag)::type>(inputs); });
  });
}

// ---- EyeLike, Trilu ------------------------------------------------------------------------------------------------

Verdict supports_eye(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {set_of(NumbersAndBool{})}); !verdict) return verdict;
  const int64_t dtype = node.attr("dtype", int64_t{node.input_type(0).dtype});
  return returns_type(node, "dtype", dtype, set_of(NumbersAndBool{}));
}

std::unique_ptr<Kernel> create_eye(const Node& node) {
  const auto dtype = static_cast<bp_dtype_t>(node.attr("dtype", int64_t{node.input_type(0).dtype}));
  return make_kernel([dtype, k = node.attr("k", int64_t{0})](Tensors inputs) -> Plan {
    const Shape shape = inputs[0].shape;
    if (shape.rank() != 2) return fail("the input must have two dimensions, but has shape " + to_string(shape));
    return make_plan({shape}, [=](Tensors, Tensors out) {
      dispatch<NumbersAndBool>(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* y = out[0].as<T>();
        parallel(shape.elements(), kCheapGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            y[i] = static_cast<T>(static_cast<compute_t<T>>(i % shape[1] - i / shape[1] == k));
        });
      });
    });
  });
}

Verdict supports_trilu(const Node& node) {
  return accepts(node, 1, {kByteTypes, just(BP_DTYPE_INT64)});
}

std::unique_ptr<Kernel> create_trilu(const Node& node) {
  return make_kernel([upper = node.attr("upper", int64_t{1}) != 0](Tensors inputs) -> Plan {
    const Shape shape = inputs[0].shape;
    if (shape.rank() < 2) return fail("the input must have at least two dimensions, but has shape " + to_string(shape));
    if (const Tensor k = at(inputs, 1); k.present() && k.shape.elements() != 1)
      return fail("k must be a scalar, but has shape " + to_string(k.shape));
    return make_plan({shape},
                     [=, size = bytes_of(inputs[0].dtype, 1)](Tensors in, Tensors out) {
                       const Tensor offset = at(in, 1);
                       const int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
                       const int64_t k = offset.data == nullptr ? 0 : std::clamp(*offset.as<int64_t>(), -rows, columns);
                       dispatch_size(size, [&](auto tag) {
                         using T = typename decltype(tag)::type;
                         const T* x = in[0].as<T>();
                         T* y = out[0].as<T>();
                         const auto line = [&](int64_t i) {
                           // Columns [first, last) are kept.
                           const int64_t diagonal = i % rows + k,
                                         first = upper ? std::clamp<int64_t>(diagonal, 0, columns) : 0,
                                         last = upper ? columns : std::clamp<int64_t>(diagonal + 1, 0, columns);
                           T* to = y + i * columns;
                           std::fill(to, to + first, T{});
                           if (x != y) std::copy(x + i * columns + first, x + i * columns + last, to + first);
                           std::fill(to + last, to + columns, T{});
                         };
                         parallel(shape.elements(0, shape.rank() - 1), 1 + kCheapGrain / (1 + columns),
                                  [&](int64_t begin, int64_t end) {
                                    for (int64_t i = begin; i < end; ++i) line(i);
                                  });
                       });
                     },
                     {.inplace = 0});
  });
}

// ---- OneHot --------------------------------------------------------------------------------------------------------

Verdict supports_one_hot(const Node& node) {
  return accepts(node, 3, {set_of(Numbers{}), set_of(Numbers{}), kByteTypes});
}

std::unique_ptr<Kernel> create_one_hot(const Node& node) {
  return make_kernel([axis_attribute = node.attr("axis", int64_t{-1})](Tensors inputs) -> Plan {
    if (!known(inputs[1])) return deferred();
    const Shape& indices = inputs[0].shape;
    const int axis = axis_of(axis_attribute, indices.rank() + 1);
    if (axis < 0) return bad_axis(axis_attribute, indices.rank() + 1);
    if (indices.rank() == BP_MAX_RANK) return fail("the rank of the result exceeds the maximum of 32");
    if (inputs[1].shape.elements() != 1)
      return fail("depth must be a scalar, but has shape " + to_string(inputs[1].shape));
    if (inputs[2].shape.elements() != 2)
      return fail("values must have two elements, but has shape " + to_string(inputs[2].shape));
    const double depth_value = scalar(inputs[1]);
    if (!(depth_value >= 0 && depth_value < 0x1p48))
      return fail("depth " + std::to_string(depth_value) + " is not between 0 and 2^48");
    const auto depth = static_cast<int64_t>(depth_value);
    Shape to;
    for (int i = 0; i <= indices.rank(); ++i) to.push_back(i == axis ? depth : indices[i < axis ? i : i - 1]);
    const int64_t outer = indices.elements(0, axis), inner = indices.elements(axis, indices.rank());
    return make_plan({to}, [=, size = bytes_of(inputs[2].dtype, 1)](Tensors in, Tensors out) {
      dispatch_size(size, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T values[2];
        std::memcpy(values, in[2].data, sizeof values);
        parallel(outer * depth * inner, 8 * kCheapGrain, [&](int64_t begin, int64_t end) {
          std::fill(out[0].as<T>() + begin, out[0].as<T>() + end, values[0]);
        });
        dispatch<Numbers>(in[0].dtype, [&](auto index_tag) {
          using I = typename decltype(index_tag)::type;
          Pace pace;
          for (int64_t i = 0; i < outer * inner; ++i) {
            pace.spend(4);
            const auto index = static_cast<double>(in[0].as<I>()[i]);
            const double position = index < 0 ? index + static_cast<double>(depth) : index;
            if (position >= 0 && position < static_cast<double>(depth))
              out[0].as<T>()[(i / inner * depth + static_cast<int64_t>(position)) * inner + i % inner] = values[1];
          }
        });
      });
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> constant_rows() {
  static constexpr Row kRows[] = {
      {"", "Constant", 1, supports_constant, create_constant},
      {"", "ConstantOfShape", 9, supports_fill, create_fill},
      Row{"", "Shape", 1, supports_extents, create_shape, kTexts}.with(kReadsExtentsOnly),
      Row{"", "Size", 1, supports_extents, create_size, kTexts}.with(kReadsExtentsOnly),
      {"", "Range", 11, supports_range, create_range},
      {"", "EyeLike", 9, supports_eye, create_eye},
      Row{"", "Trilu", 14, supports_trilu, create_trilu}.with(kMovesTexts),
      Row{"", "OneHot", 9, supports_one_hot, create_one_hot}.with(kMovesTexts),
  };
  return kRows;
}

}  // namespace backplane::cpu
