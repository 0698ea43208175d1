// SPDX-License-Identifier: Apache-2.0
// Data types: the ABI's, NumPy's (with those of ml_dtypes) and DLPack's.
#pragma once

#include <nanobind/ndarray.h>

#include "core.h"

namespace backplane::python {

// NumPy's name of a type ("float32", "bfloat16"); "string" for strings, "undefined" for unknown types.
std::string_view dtype_name(bp_dtype_t dtype);
// The reverse. Throws ValueError for an unknown name; `object`, `str` and fixed-width text are strings.
bp_dtype_t dtype_of_name(std::string_view name);
// The type of a buffer's elements from its format (PEP 3118), BP_DTYPE_UNDEFINED where the ABI has none.
bp_dtype_t dtype_of_format(const char* format, Py_ssize_t item_size);

// Types of less than 8 bits: packed in the ABI, one element a byte in NumPy.
bool is_packed(bp_dtype_t dtype);
// The numpy.dtype. Those that NumPy lacks are of the package ml_dtypes.
nb::object numpy_dtype(bp_dtype_t dtype);

// BP_DTYPE_UNDEFINED where the ABI has none.
bp_dtype_t dtype_of_dlpack(nb::dlpack::dtype dtype);
// Throws BufferError for strings, which DLPack does not have.
nb::dlpack::dtype dlpack_dtype(bp_dtype_t dtype);

// Between the two forms of a type with less than 8 bits; `count` elements.
void pack(bp_dtype_t dtype, const uint8_t* bytes, uint64_t count, uint8_t* out_packed);
void unpack(bp_dtype_t dtype, const uint8_t* packed, uint64_t count, uint8_t* out_bytes);

}  // namespace backplane::python
