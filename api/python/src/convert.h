// SPDX-License-Identifier: Apache-2.0
// Conversions of arguments that several classes share, and of texts.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core.h"

namespace backplane::python {

// An object's repr for an error's text, shortened.
std::string shown(nb::handle object);
// Converts an argument. Throws ValueError for a number that T cannot hold, and TypeError for anything else, with the
// argument's name and value, and what is expected.
template <class T>
T converted(nb::handle object, std::string_view what, const char* expected) {
  T value{};
  if (nb::try_cast<T>(object, value)) return value;
  const std::string text = std::string(what) + " is " + shown(object) + ": " + expected + " is expected";
  if (std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && PyLong_Check(object.ptr()))
    throw std::invalid_argument(text);
  throw nb::type_error(text.c_str());
}

// Converts a sequence of numbers, for example a shape.
std::vector<int64_t> extents_of(nb::handle object, const std::string& what);

// Converts a timeout in seconds. None becomes 0, which means no timeout. Throws ValueError unless the timeout is above
// 0.
std::chrono::nanoseconds timeout_of(nb::handle seconds);

// Converts a Python sequence of str, paths or devices, or a single one, to strings.
std::vector<std::string> strings_of(nb::handle object, const char* what);
// Returns a Python mapping with str keys as a dict.
nb::dict mapping_of(nb::handle object, const char* what);
// Converts a Python mapping with str keys. Numbers and booleans become text; True becomes "1".
std::map<std::string, std::string> options_of(nb::handle object, const char* what);

// Convert text of the loader to a str, and back. Bytes that are not UTF-8 become surrogates, as `surrogateescape` makes
// them. utf8_of throws ValueError if the text has other surrogates. name_of requires text without surrogates, and does
// not copy it.
nb::object text_of(std::string_view utf8);
std::string utf8_of(nb::handle text);
std::string_view name_of(nb::handle text);

}  // namespace backplane::python
