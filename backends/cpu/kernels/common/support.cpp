// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/support.h"

#include "kernels/common/function_kernel.h"

namespace backplane::cpu {

const char* dtype_name(bp_dtype_t dtype) {
  static constexpr const char* kNames[] = {
      "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  return dtype < std::size(kNames) ? kNames[dtype] : "unknown";
}

static Verdict accepts_input(const Node& node, uint32_t slot, bp_dtype_set_t types) {
  const bp_type_t type = node.input_type(slot);
  if (type.kind != BP_KIND_TENSOR || type.dtype == BP_DTYPE_UNDEFINED)
    return no(BP_REASON_DTYPE, "input " + std::to_string(slot) + " is not a tensor of a known type");
  if (type.dtype >= 64 || (types >> type.dtype & 1) == 0)
    return no(BP_REASON_DTYPE,
              "input " + std::to_string(slot) + " has the unsupported data type " + dtype_name(type.dtype));
  return yes();
}

Verdict accepts(const Node& node, uint32_t required, std::initializer_list<bp_dtype_set_t> inputs) {
  if (node.input_count() > inputs.size())
    return no(BP_REASON_OPSET, "it has " + std::to_string(node.input_count()) + " inputs; at most " +
                                   std::to_string(inputs.size()) + " are supported");
  for (uint32_t slot = 0; slot < inputs.size(); ++slot) {
    if (!node.has_input(slot)) {
      if (slot < required) return no(BP_REASON_OPSET, "input " + std::to_string(slot) + " is missing");
      continue;
    }
    if (Verdict verdict = accepts_input(node, slot, inputs.begin()[slot]); !verdict) return verdict;
  }
  return yes();
}

Verdict accepts_variadic(const Node& node, bp_dtype_set_t types) {
  if (node.input_count() == 0) return no(BP_REASON_OPSET, "it has no input");
  for (uint32_t slot = 0; slot < node.input_count(); ++slot) {
    if (!node.has_input(slot)) return no(BP_REASON_OPSET, "input " + std::to_string(slot) + " is missing");
    if (Verdict verdict = accepts_input(node, slot, types); !verdict) return verdict;
    if (Verdict verdict = same_type(node, 0, slot); !verdict) return verdict;
  }
  return yes();
}

Verdict attribute_in(const Node& node, std::string_view name, const char* fallback,
                     std::initializer_list<std::string_view> values) {
  const std::string value = node.attr(name, fallback);
  std::string list;
  for (std::string_view v : values) {
    if (v == value) return yes();
    list.append(list.empty() ? "'" : ", '").append(v).append("'");
  }
  return no(BP_REASON_ATTRIBUTE, std::string(name) + " is '" + value + "'; the supported values are " + list);
}

Verdict same_type(const Node& node, uint32_t a, uint32_t b) {
  const bp_dtype_t x = node.input_type(a).dtype, y = node.input_type(b).dtype;
  if (x == y) return yes();
  return no(BP_REASON_DTYPE,
            std::string("inputs have different data types: ") + dtype_name(x) + " and " + dtype_name(y));
}

Verdict returns_type(const Node& node, std::string_view attribute, int64_t dtype, bp_dtype_set_t types) {
  if (dtype < 0 || dtype >= 64 || (types >> dtype & 1) == 0)
    return no(BP_REASON_DTYPE, std::string(attribute) + " is " +
                                   (dtype < 0 || dtype >= 64 ? "unknown" : dtype_name(static_cast<bp_dtype_t>(dtype))) +
                                   " (" + std::to_string(dtype) + "), which is not supported");
  const bp_dtype_t declared = node.output_type(0).dtype;
  if (declared == dtype) return yes();
  return no(BP_REASON_DTYPE, std::string(attribute) + " is " + dtype_name(static_cast<bp_dtype_t>(dtype)) +
                                 ", but the output is declared as " + dtype_name(declared));
}

std::vector<int64_t> integers(const Tensor& tensor) {
  const auto n = static_cast<size_t>(tensor.shape.elements());
  std::vector<int64_t> values(n);
  if (tensor.dtype == BP_DTYPE_INT32)
    std::copy_n(tensor.as<int32_t>(), n, values.begin());
  else
    std::copy_n(tensor.as<int64_t>(), n, values.begin());
  return values;
}

double scalar(const Tensor& tensor) {
  return dispatch<NumbersAndBool>(tensor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<double>(static_cast<compute_t<T>>(*tensor.as<T>()));
  });
}

Plan bad_axis(int64_t axis, int rank) {
  return fail(axes_error({&axis, 1}, rank));
}

std::optional<uint64_t> axis_set(std::span<const int64_t> axes, int rank) {
  uint64_t set = 0;
  for (int64_t a : axes) {
    const int axis = axis_of(a, rank);
    if (axis < 0 || (set >> axis & 1)) return std::nullopt;
    set |= uint64_t{1} << axis;
  }
  return set;
}

std::string axes_error(std::span<const int64_t> axes, int rank) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axis_of(axes[i], rank) < 0)
      return "axis " + std::to_string(axes[i]) + " is out of range for rank " + std::to_string(rank);
    if (!axis_set(axes.first(i + 1), rank))
      return "axis " + std::to_string(axes[i]) + " is repeated among " + std::to_string(axes.size()) +
             " axes of a tensor of rank " + std::to_string(rank);
  }
  return {};
}

Shape strides_of(const Shape& shape) {
  Shape strides = shape;
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

}  // namespace backplane::cpu
