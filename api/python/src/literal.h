// SPDX-License-Identifier: Apache-2.0
// Lists and numbers that become arrays of a declared type.
#pragma once

#include "dtypes.h"

namespace backplane::python {

// Returns a numpy.ndarray of type `dtype` (BP_DTYPE_UNDEFINED: NumPy chooses) with the values of Python numbers, text,
// and nested sequences of them. Python's float may be rounded to a floating-point type, as NumPy does; every other
// value must keep its value and its kind. Otherwise throws TypeError, or ValueError if only the value does not fit.
// `subject` begins the error's text.
nb::object array_of(nb::handle value, bp_dtype_t dtype, const std::string& subject);

}  // namespace backplane::python
