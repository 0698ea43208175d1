// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike to and from strings. Floats are written as in Python: with the fewest digits that identify the
// number in its type, and with an exponent for magnitudes below 1e-4 or from 1e16 on.
#include <locale.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "kernels/common/small_types.h"
#include "kernels/common/values.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

// Converts a number d.ddde±xx, as written by std::to_chars, to Python's form.
std::string arrange(std::string_view scientific) {
  std::string sign, digits;
  size_t e = scientific.find('e');
  for (char c : scientific.substr(0, e)) {
    if (c == '-') sign = "-";
    if (c >= '0' && c <= '9') digits += c;
  }
  int exponent = std::stoi(std::string(scientific.substr(e + 1)));
  if (exponent < -4 || exponent >= 16) {
    std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    std::string power = std::to_string(std::abs(exponent));
    return sign + digits[0] + fraction + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

// Formats the number with the fewest digits, from 1 to 17, for which `same` accepts the number that is read back.
template <class Same>
std::string shortest(double number, const Same& same) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  if (number == 0) return std::signbit(number) ? "-0.0" : "0.0";
  char buffer[64];
  for (int digits = 0;; ++digits) {
    auto end = std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific, digits).ptr;
    double read = 0;
    std::from_chars(buffer, end, read);
    if (!same(read) && digits < 16) continue;
    std::string text(buffer, end);  // the digits' trailing zeros are removed below
    size_t e = text.find('e'), last = text.find_last_not_of('0', e - 1);
    return arrange(text.substr(0, last + 1) + text.substr(e));
  }
}

template <class T>
std::string write(T value) {
  const auto number = static_cast<compute_t<T>>(value);
  if constexpr (std::is_same_v<T, Bool>) {
    return number ? "True" : "False";
  } else if constexpr (!kIsFloating<T>) {
    return std::to_string(number);
  } else if constexpr (kIsSmallFloat<T>) {
    return shortest(number, [&](double read) { return T(static_cast<float>(read)).bits == value.bits; });
  } else {
    char buffer[64];
    if (!std::isfinite(number) || number == 0) return shortest(number, [](double) { return true; });
    auto end = std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific).ptr;
    return arrange({buffer, end});
  }
}

std::vector<std::string> write_all(const Tensor& tensor) {
  auto count = static_cast<size_t>(tensor.shape.elements());
  require_memory(tensor.shape.elements(), sizeof(std::string));
  std::vector<std::string> texts;
  texts.reserve(count);
  Pace pace;
  if (set_of(NumbersAndBool{}) >> tensor.dtype & 1) {
    dispatch<NumbersAndBool>(tensor.dtype, [&](auto tag) {
      const auto* numbers = tensor.as<const typename decltype(tag)::type>();
      for (size_t i = 0; i < count; ++i) {
        pace.spend(128);
        texts.push_back(write(numbers[i]));
      }
    });
    return texts;
  }
  bool whole = tensor.dtype == BP_DTYPE_UINT4 || tensor.dtype == BP_DTYPE_INT4 || tensor.dtype == BP_DTYPE_UINT2 ||
               tensor.dtype == BP_DTYPE_INT2;
  for (size_t i = 0; i < count; ++i) {
    pace.spend(128);
    float number = decode_bits(tensor.dtype, load_bits(tensor.data, bits_of(tensor.dtype), static_cast<int64_t>(i)));
    texts.push_back(whole ? std::to_string(static_cast<int>(number)) : write(number));
  }
  return texts;
}

// Returns the text without surrounding blanks and without a leading plus, neither of which std::from_chars skips.
std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <class N>
bool parse(std::string_view text, N& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Numbers beyond the range of double become infinite or 0. Returns false if the text is not a number.
bool parse_real(std::string_view text, double& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return false;
  if (error == std::errc::result_out_of_range) {
    static const locale_t kPlain = newlocale(LC_ALL_MASK, "C", nullptr);  // the host's locale may use a decimal comma
    number = strtod_l(std::string(text).c_str(), nullptr, kPlain);
  }
  return true;
}

template <class T>
bool read(std::string_view text, T& value) {
  text = trim(text);
  double number = 0;
  if constexpr (std::is_same_v<T, Bool>) {
    bool is_true = text == "True" || text == "true";
    if (!is_true && text != "False" && text != "false" && !parse_real(text, number)) return false;
    value = Bool(is_true || number != 0);
  } else if constexpr (kIsFloating<T>) {
    if constexpr (std::is_same_v<T, float>) {  // conversion from double would round a second time
      if (parse(text, value)) return true;
    }
    if (!parse_real(text, number)) return false;
    value = static_cast<T>(static_cast<compute_t<T>>(number));
  } else {
    return parse(text, value);
  }
  return true;
}

Failed read_all(const Tensor& from, const Tensor& to, bool saturate) {
  Texts texts(from);
  Pace pace;
  auto wrong = [&](int64_t i) {
    return "'" + std::string(texts[i].substr(0, 64)) + "' is not a number of type " + dtype_name(to.dtype);
  };
  if (set_of(NumbersAndBool{}) >> to.dtype & 1) {
    return dispatch<NumbersAndBool>(to.dtype, [&](auto tag) -> Failed {
      auto* numbers = to.as<typename decltype(tag)::type>();
      for (int64_t i = 0; i < texts.count(); ++i) {
        pace.spend(64 + static_cast<int64_t>(texts[i].size()));
        if (!read(texts[i], numbers[i])) return wrong(i);
      }
      return std::nullopt;
    });
  }
  require_memory(texts.count(), sizeof(float));
  std::vector<float> numbers(static_cast<size_t>(texts.count()));
  for (int64_t i = 0; i < texts.count(); ++i) {
    pace.spend(64 + static_cast<int64_t>(texts[i].size()));
    if (!read(texts[i], numbers[static_cast<size_t>(i)])) return wrong(i);
  }
  store_floats(to.dtype, to.data, 0, numbers.data(), texts.count(), {.saturate = saturate});
  return std::nullopt;
}

constexpr bp_dtype_set_t kTypes = set_of(NumbersAndBool{}) | kPackedTypes | just(BP_DTYPE_FLOAT8E4M3FN) |
                                  just(BP_DTYPE_FLOAT8E4M3FNUZ) | just(BP_DTYPE_FLOAT8E5M2) |
                                  just(BP_DTYPE_FLOAT8E5M2FNUZ) | just(BP_DTYPE_FLOAT8E8M0) | just(BP_DTYPE_STRING);

Verdict supports(const Node& node) {
  if (Verdict verdict = expect_operands(node, 1, 1); !verdict) return verdict;
  for (bp_dtype_t dtype : {node.input_type(0).dtype, node.output_type(0).dtype}) {
    if ((kTypes >> dtype & 1) == 0)
      return no(BP_REASON_DTYPE,
                std::string("casts between strings and other types do not support ") + dtype_name(dtype));
  }
  return yes();
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_value_kernel([to = node.output_type(0).dtype, saturate = node.attr("saturate", int64_t{1}) != 0](
                               Values inputs, Values outputs) -> Failed {
    const Tensor& from = inputs[0].tensor;
    if (to == BP_DTYPE_STRING) {
      outputs[0] = from.dtype == to ? std::move(inputs[0]) : make_texts(from.shape, write_all(from));
      return std::nullopt;
    }
    outputs[0] = Value::allocate(to, from.shape);
    return read_all(from, outputs[0].tensor, saturate);
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> text_cast_rows() {
  static constexpr Row kRows[] = {
      {"", "Cast", 6, supports, create, kTexts},
      {"", "CastLike", 15, supports, create, kTexts},
  };
  return kRows;
}

}  // namespace backplane::cpu
