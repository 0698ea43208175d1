// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <algorithm>

#include "environment.h"

namespace backplane::python {

std::string shown(nb::handle object) {
  constexpr size_t kLongest = 80;
  nb::object text = nb::steal(PyObject_ASCII(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  std::string result(name_of(text));
  if (result.size() > kLongest) result.replace(kLongest, std::string::npos, "…");
  return result;
}

std::chrono::nanoseconds timeout_of(nb::handle seconds) {
  if (seconds.is_none()) return std::chrono::nanoseconds(0);
  const auto value = converted<double>(seconds, "timeout", "a number of seconds");
  if (!(value > 0)) throw std::invalid_argument("timeout is " + shown(seconds) + ": it must be above 0 seconds");
  constexpr double kCentury = 3e9;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::min(value, kCentury) * 1e9));
}

std::vector<std::string> strings_of(nb::handle object, const char* what) {
  const auto is_text = [](nb::handle each) {
    return nb::isinstance<nb::str>(each) || nb::isinstance<PyDevice>(each) || nb::hasattr(each, "__fspath__");
  };
  const auto refuse = [what](nb::handle seen) {
    const std::string text =
        std::string(what) + ": a str or a sequence of str is expected, and " + shown(seen) + " is not one";
    throw nb::type_error(text.c_str());
  };
  const auto text_of_one = [](nb::handle each) {
    return nb::hasattr(each, "__fspath__") ? utf8_of(imported("os", "fsdecode")(each)) : utf8_of(nb::str(each));
  };
  if (object.is_none()) return {};
  if (is_text(object)) return {text_of_one(object)};
  if (PyBytes_Check(object.ptr()) || !nb::hasattr(object, "__iter__")) refuse(object);
  std::vector<std::string> result;
  for (nb::handle element : object) {
    if (!is_text(element)) refuse(element);
    result.push_back(text_of_one(element));
  }
  return result;
}

nb::dict mapping_of(nb::handle object, const char* what) {
  const auto refuse = [what](const std::string& expected, nb::handle seen) {
    const std::string text = what + expected + ", not '" + nb::type_name(seen.type()).c_str() + "'";
    throw nb::type_error(text.c_str());
  };
  nb::dict mapping;
  if (!nb::try_cast<nb::dict>(object, mapping)) {
    if (!nb::hasattr(object, "keys")) refuse(": a dict of names and values is expected", object);
    mapping = nb::borrow<nb::dict>(imported("builtins", "dict")(object));
  }
  for (const auto& [name, value] : mapping) {
    if (!nb::isinstance<nb::str>(name)) refuse(": a name must be a str", name);
  }
  return mapping;
}

std::vector<int64_t> extents_of(nb::handle object, const std::string& what) {
  if (!nb::isinstance<nb::sequence>(object) || nb::isinstance<nb::str>(object) || PyBytes_Check(object.ptr()))
    throw nb::type_error((what + " is " + shown(object) + ": a sequence of numbers is expected").c_str());
  std::vector<int64_t> extents;
  for (nb::handle extent : object)
    extents.push_back(converted<int64_t>(extent, what + ": an extent", "a number of elements"));
  return extents;
}

nb::object text_of(std::string_view utf8) {
  const auto size = static_cast<Py_ssize_t>(utf8.size());
  const char* const begin = utf8.data();
  PyObject* const text = PyUnicode_DecodeUTF8(begin, size, "surrogateescape");
  if (text == nullptr) throw nb::python_error();
  return nb::steal(text);
}

namespace {

[[noreturn]] void refuse_surrogates(nb::handle text) {
  PyErr_Clear();
  throw std::invalid_argument(shown(text) + " has a surrogate, which UTF-8 cannot have");
}

}  // namespace

std::string utf8_of(nb::handle text) {
  PyObject* const encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape");
  if (encoded == nullptr) refuse_surrogates(text);
  const nb::bytes bytes = nb::steal<nb::bytes>(encoded);
  return {bytes.c_str(), bytes.size()};
}

std::string_view name_of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (utf8 == nullptr) refuse_surrogates(text);
  return {utf8, static_cast<size_t>(size)};
}

std::map<std::string, std::string> options_of(nb::handle object, const char* what) {
  std::map<std::string, std::string> result;
  if (object.is_none()) return result;
  for (const auto& [name, value] : mapping_of(object, what)) {
    const bool is_bool = nb::isinstance<nb::bool_>(value);
    result[utf8_of(name)] = is_bool ? (nb::cast<bool>(value) ? "1" : "0") : utf8_of(nb::str(value));
  }
  return result;
}

}  // namespace backplane::python
