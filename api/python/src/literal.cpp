// SPDX-License-Identifier: Apache-2.0
#include "literal.h"

#include <cmath>
#include <vector>

#include "convert.h"

namespace backplane::python {
namespace {

using Code = nb::dlpack::dtype_code;

bool is_integer(bp_dtype_t dtype) {
  const uint8_t code = dlpack_dtype(dtype).code;
  return code == static_cast<uint8_t>(Code::Int) || code == static_cast<uint8_t>(Code::UInt);
}

// The numbers of a value, in the order of the array's elements.
class Numbers {
 public:
  Numbers(bp_dtype_t dtype, const std::string& subject) : dtype_(dtype), subject_(subject) {}

  void add(nb::handle value, int depth = 0) {
    if (PyFloat_CheckExact(value.ptr())) {
      if (is_integer(dtype_) || dtype_ == BP_DTYPE_BOOL) refuse_kind(value);
      numbers_.push_back(nb::borrow(value));
    } else if (PyBool_Check(value.ptr())) {
      if (dtype_ != BP_DTYPE_BOOL) refuse_kind(value);
      numbers_.emplace_back();
    } else if (PyLong_Check(value.ptr())) {
      if (dtype_ == BP_DTYPE_BOOL) refuse_kind(value);
      numbers_.push_back(nb::borrow(value));
    } else if (PyComplex_CheckExact(value.ptr())) {
      if (dtype_ != BP_DTYPE_COMPLEX64 && dtype_ != BP_DTYPE_COMPLEX128) refuse_kind(value);
      numbers_.emplace_back();
    } else if (PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr())) {
      refuse_kind(value);
    } else if (depth < BP_MAX_RANK && is_sequence(value)) {
      for (nb::handle element : nb::borrow<nb::iterable>(value)) add(element, depth + 1);
    } else {
      add_array(value);
    }
  }

  // Throws ValueError if an element of `array` differs from its number.
  void check(nb::handle array) const {
    const bool is_wide = dtype_ == BP_DTYPE_DOUBLE || dtype_ == BP_DTYPE_COMPLEX64 || dtype_ == BP_DTYPE_COMPLEX128;
    const nb::object wide = is_wide ? nb::borrow(array) : nb::object(array.attr("astype")(wide_name()));
    const auto elements = nb::borrow<nb::list>(nb::object(wide.attr("ravel")().attr("tolist")()));
    if (nb::len(elements) != numbers_.size())
      throw nb::type_error((subject_ + ": the value is not a sequence of numbers").c_str());
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const nb::object& number = numbers_[i];
      if (!number.is_valid()) continue;
      const nb::object element = elements[i];
      // A float may be rounded, but a finite one must not become infinity or NaN.
      const bool is_kept =
          PyFloat_CheckExact(number.ptr()) && PyFloat_CheckExact(element.ptr())
              ? std::isfinite(PyFloat_AsDouble(element.ptr())) || !std::isfinite(PyFloat_AsDouble(number.ptr()))
              : PyFloat_CheckExact(number.ptr()) || number.equal(element);
      if (!is_kept)
        throw std::invalid_argument(subject_ + ": " + shown(number) + " is not a value of type " + declared());
    }
  }

 private:
  std::string declared() const { return std::string(dtype_name(dtype_)) + ", which the model declares"; }
  const char* wide_name() const {
    if (dtype_ == BP_DTYPE_BOOL) return "bool";
    if (!is_integer(dtype_)) return "float64";
    return dlpack_dtype(dtype_).code == static_cast<uint8_t>(Code::Int) ? "int64" : "uint64";
  }
  [[noreturn]] void refuse_kind(nb::handle value) const {
    const std::string text = subject_ + ": " + shown(value) + " is of type '" + nb::type_name(value.type()).c_str() +
                             "', and is not converted to " + declared();
    throw nb::type_error(text.c_str());
  }
  // Whether a value has elements but no type of its own.
  static bool is_sequence(nb::handle value) {
    if (PyList_CheckExact(value.ptr()) || PyTuple_CheckExact(value.ptr())) return true;
    return PySequence_Check(value.ptr()) && !PyObject_CheckBuffer(value.ptr()) && !nb::hasattr(value, "__array__") &&
           !nb::hasattr(value, "__dlpack__") && !nb::hasattr(value, "__array_interface__");
  }
  // Adds the elements of an array within a list, or of an object that NumPy converts.
  void add_array(nb::handle value) {
    const nb::object array = imported("numpy", "asarray")(value);
    const nb::object dtype = array.attr("dtype");
    if (!dtype.equal(numpy_dtype(dtype_))) {
      const std::string text = subject_ + ": an object of type '" + nb::type_name(value.type()).c_str() +
                               "' has data type " + nb::str(dtype).c_str() + ", and is not converted to " + declared();
      throw nb::type_error(text.c_str());
    }
    numbers_.resize(numbers_.size() + nb::cast<size_t>(array.attr("size")));
  }

  bp_dtype_t dtype_;
  const std::string& subject_;
  std::vector<nb::object> numbers_;  // a null object: the element needs no check, it has the number's value
};

}  // namespace

nb::object array_of(nb::handle value, bp_dtype_t dtype, const std::string& subject) {
  const nb::object asarray = imported("numpy", "asarray");
  if (dtype == BP_DTYPE_UNDEFINED || nb::hasattr(value, "__array__")) return asarray(value);
  if (dtype == BP_DTYPE_STRING) return asarray(value, numpy_dtype(dtype));
  Numbers numbers(dtype, subject);
  numbers.add(value);
  const nb::object quiet = imported("numpy", "errstate")(nb::arg("all") = "ignore");  // check() looks for overflow
  const nb::object array = quiet(asarray)(value, numpy_dtype(dtype));
  numbers.check(array);
  return array;
}

}  // namespace backplane::python
