// SPDX-License-Identifier: Apache-2.0
// Converts between the data types of the ABI, NumPy (with those of ml_dtypes) and DLPack.
#pragma once

#include <nanobind/ndarray.h>

#include "core.h"

namespace backplane::python {

// NumPy's name of a type, such as "float32" or "bfloat16"; "string" for strings, "undefined" for unknown types.
std::string_view dtype_name(bp_dtype_t dtype);
// Returns the type with this NumPy name. `object`, `str` and fixed-width text are strings. Throws ValueError for other
// names.
bp_dtype_t dtype_of_name(std::string_view name);
// The type of a buffer's elements, by their format (PEP 3118). BP_DTYPE_UNDEFINED if the ABI has no such type.
bp_dtype_t dtype_of_format(const char* format, Py_ssize_t item_size);

// Whether a type has less than 8 bits. The ABI packs such types; NumPy uses a byte for each element.
bool is_packed(bp_dtype_t dtype);
// Returns the numpy.dtype. The package ml_dtypes provides types that NumPy lacks.
nb::object numpy_dtype(bp_dtype_t dtype);

// Converts a type of DLPack. Returns BP_DTYPE_UNDEFINED if the ABI has no such type.
bp_dtype_t dtype_of_dlpack(nb::dlpack::dtype dtype);
// Converts a type to DLPack's. Throws BufferError for strings, which DLPack lacks.
nb::dlpack::dtype dlpack_dtype(bp_dtype_t dtype);

// Convert `count` elements of less than 8 bits between one element per byte and the packed form.
void pack(bp_dtype_t dtype, const uint8_t* bytes, uint64_t count, uint8_t* out_packed);
void unpack(bp_dtype_t dtype, const uint8_t* packed, uint64_t count, uint8_t* out_bytes);

}  // namespace backplane::python
