// SPDX-License-Identifier: Apache-2.0
#include "dtypes.h"

#include <array>

namespace backplane::python {
namespace {

using Code = nb::dlpack::dtype_code;

struct Row {
  bp_dtype_t dtype;
  std::string_view name;  // the name in NumPy or ml_dtypes
  bool is_numpy;          // false: the type is in ml_dtypes
  Code code;              // in DLPack
  uint8_t bits;
};

constexpr std::array kRows = {
    Row{BP_DTYPE_FLOAT, "float32", true, Code::Float, 32},
    Row{BP_DTYPE_UINT8, "uint8", true, Code::UInt, 8},
    Row{BP_DTYPE_INT8, "int8", true, Code::Int, 8},
    Row{BP_DTYPE_UINT16, "uint16", true, Code::UInt, 16},
    Row{BP_DTYPE_INT16, "int16", true, Code::Int, 16},
    Row{BP_DTYPE_INT32, "int32", true, Code::Int, 32},
    Row{BP_DTYPE_INT64, "int64", true, Code::Int, 64},
    Row{BP_DTYPE_BOOL, "bool", true, Code::Bool, 8},
    Row{BP_DTYPE_FLOAT16, "float16", true, Code::Float, 16},
    Row{BP_DTYPE_DOUBLE, "float64", true, Code::Float, 64},
    Row{BP_DTYPE_UINT32, "uint32", true, Code::UInt, 32},
    Row{BP_DTYPE_UINT64, "uint64", true, Code::UInt, 64},
    Row{BP_DTYPE_COMPLEX64, "complex64", true, Code::Complex, 64},
    Row{BP_DTYPE_COMPLEX128, "complex128", true, Code::Complex, 128},
    Row{BP_DTYPE_BFLOAT16, "bfloat16", false, Code::Bfloat, 16},
    Row{BP_DTYPE_FLOAT8E4M3FN, "float8_e4m3fn", false, Code::Float8_E4M3FN, 8},
    Row{BP_DTYPE_FLOAT8E4M3FNUZ, "float8_e4m3fnuz", false, Code::Float8_E4M3FNUZ, 8},
    Row{BP_DTYPE_FLOAT8E5M2, "float8_e5m2", false, Code::Float8_E5M2, 8},
    Row{BP_DTYPE_FLOAT8E5M2FNUZ, "float8_e5m2fnuz", false, Code::Float8_E5M2FNUZ, 8},
    Row{BP_DTYPE_UINT4, "uint4", false, Code::UInt, 4},
    Row{BP_DTYPE_INT4, "int4", false, Code::Int, 4},
    Row{BP_DTYPE_FLOAT4E2M1, "float4_e2m1fn", false, Code::Float4_E2M1FN, 4},
    Row{BP_DTYPE_FLOAT8E8M0, "float8_e8m0fnu", false, Code::Float8_E8M0FNU, 8},
    Row{BP_DTYPE_UINT2, "uint2", false, Code::UInt, 2},
    Row{BP_DTYPE_INT2, "int2", false, Code::Int, 2},
};

const Row* find(bp_dtype_t dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

nb::object make_numpy_dtype(const Row& row) {
  const std::string name(row.name);
  if (row.is_numpy) return imported("numpy", "dtype")(name);
  try {
    return imported("numpy", "dtype")(imported("ml_dtypes", name.c_str()));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
  }
  throw nb::import_error(("arrays of " + name + " need the package ml_dtypes: pip install ml_dtypes").c_str());
}

}  // namespace

std::string_view dtype_name(bp_dtype_t dtype) {
  if (dtype == BP_DTYPE_STRING) return "string";
  const Row* row = find(dtype);
  return row == nullptr ? "undefined" : row->name;
}

bp_dtype_t dtype_of_name(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  if (name == "string" || name == "object" || name.substr(0, 3) == "str" || name.substr(0, 5) == "bytes" ||
      name.substr(0, 9) == "StringDTy")
    return BP_DTYPE_STRING;
  throw std::invalid_argument("there is no data type '" + std::string(name) +
                              "': use a name of NumPy or ml_dtypes for a type that ONNX has, or 'string'");
}

bp_dtype_t dtype_of_format(const char* format, Py_ssize_t item_size) {
  std::string_view text = format == nullptr ? "B" : format;
  if (!text.empty() && (text[0] == '>' || text[0] == '!') && item_size > 1) return BP_DTYPE_UNDEFINED;
  if (!text.empty() && std::string_view("@=<>!").find(text[0]) != std::string_view::npos) text.remove_prefix(1);
  if (text == "Zf") return BP_DTYPE_COMPLEX64;
  if (text == "Zd") return BP_DTYPE_COMPLEX128;
  if (text.empty()) return BP_DTYPE_UNDEFINED;
  if (text.back() == 'w' || text.back() == 's' || text.back() == 'O') return BP_DTYPE_STRING;
  if (text.size() != 1) return BP_DTYPE_UNDEFINED;
  const auto integer = [item_size](bp_dtype_t one, bp_dtype_t two, bp_dtype_t four, bp_dtype_t eight) {
    return item_size == 1 ? one : item_size == 2 ? two : item_size == 4 ? four : eight;
  };
  switch (text[0]) {
    case '?':
      return BP_DTYPE_BOOL;
    case 'e':
      return BP_DTYPE_FLOAT16;
    case 'f':
      return BP_DTYPE_FLOAT;
    case 'd':
      return BP_DTYPE_DOUBLE;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'n':
    case 'q':
      return integer(BP_DTYPE_INT8, BP_DTYPE_INT16, BP_DTYPE_INT32, BP_DTYPE_INT64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'N':
    case 'Q':
      return integer(BP_DTYPE_UINT8, BP_DTYPE_UINT16, BP_DTYPE_UINT32, BP_DTYPE_UINT64);
    default:
      return BP_DTYPE_UNDEFINED;
  }
}

bool is_packed(bp_dtype_t dtype) {
  const uint32_t bits = view::dtype_bits(dtype);
  return bits > 0 && bits < 8;
}

nb::object numpy_dtype(bp_dtype_t dtype) {
  if (dtype == BP_DTYPE_STRING) return imported("numpy", "dtype")("O");
  const Row* row = find(dtype);
  if (row == nullptr) throw std::invalid_argument("NumPy has no type for the data type " + std::to_string(dtype));
  return make_numpy_dtype(*row);
}

bp_dtype_t dtype_of_dlpack(nb::dlpack::dtype dtype) {
  for (const Row& row : kRows) {
    if (static_cast<uint8_t>(row.code) == dtype.code && row.bits == dtype.bits && dtype.lanes == 1) return row.dtype;
  }
  return BP_DTYPE_UNDEFINED;
}

nb::dlpack::dtype dlpack_dtype(bp_dtype_t dtype) {
  const Row* row = find(dtype);
  if (row == nullptr) {
    const std::string text = "DLPack has no type for " + std::string(dtype_name(dtype));
    throw nb::buffer_error(text.c_str());
  }
  return {static_cast<uint8_t>(row->code), row->bits, 1};
}

void pack(bp_dtype_t dtype, const uint8_t* bytes, uint64_t count, uint8_t* out_packed) {
  const uint32_t bits = view::dtype_bits(dtype), per_byte = 8 / bits, mask = (1u << bits) - 1;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t shift = static_cast<uint32_t>(i % per_byte) * bits;
    if (shift == 0) out_packed[i / per_byte] = 0;
    out_packed[i / per_byte] |= static_cast<uint8_t>((bytes[i] & mask) << shift);
  }
}

void unpack(bp_dtype_t dtype, const uint8_t* packed, uint64_t count, uint8_t* out_bytes) {
  const uint32_t bits = view::dtype_bits(dtype), per_byte = 8 / bits, mask = (1u << bits) - 1;
  const bool is_signed = dtype == BP_DTYPE_INT4 || dtype == BP_DTYPE_INT2;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t value = packed[i / per_byte] >> (i % per_byte * bits) & mask;
    if (is_signed && (value >> (bits - 1)) != 0) value |= ~mask;
    out_bytes[i] = static_cast<uint8_t>(value);
  }
}

}  // namespace backplane::python
