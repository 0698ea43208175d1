// SPDX-License-Identifier: Apache-2.0
// Data types: the ABI's, NumPy's (with those of ml_dtypes) and DLPack's.
#pragma once

#include <nanobind/ndarray.h>

#include "core.h"

namespace backplane::python {

// NumPy's name of a type ("float32", "bfloat16"); "string" for strings, "undefined" for unknown types.
std::string_view dtype_name(bp_dtype_t dtype);
// Returns the type of such a name; `object`, `str` and fixed-width text are strings. Throws ValueError for others.
bp_dtype_t dtype_of_name(std::string_view name);
// The type of a buffer's elements by its format (PEP 3118); BP_DTYPE_UNDEFINED if the ABI has none.
bp_dtype_t dtype_of_format(const char* format, Py_ssize_t item_size);

// Whether a type has less than 8 bits: it is packed in the ABI, one element a byte in NumPy.
bool is_packed(bp_dtype_t dtype);
// Returns the numpy.dtype; the package ml_dtypes has those that NumPy lacks.
nb::object numpy_dtype(bp_dtype_t dtype);

// Returns BP_DTYPE_UNDEFINED if the ABI has no such type.
bp_dtype_t dtype_of_dlpack(nb::dlpack::dtype dtype);
// Throws BufferError for strings, which DLPack does not have.
nb::dlpack::dtype dlpack_dtype(bp_dtype_t dtype);

// Convert `count` elements of less than 8 bits from one a byte to packed, and back.
void pack(bp_dtype_t dtype, const uint8_t* bytes, uint64_t count, uint8_t* out_packed);
void unpack(bp_dtype_t dtype, const uint8_t* packed, uint64_t count, uint8_t* out_bytes);

}  // namespace backplane::python
