// SPDX-License-Identifier: Apache-2.0
// Operators on strings: StringConcat, StringSplit, StringNormalizer.
#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "kernels/common/broadcast.h"
#include "kernels/common/values.h"
#include "runtime/keyed_hash.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

template <uint32_t kInputs>
Verdict supports(const Node& node) {
  if (Verdict verdict = expect_operands(node, kInputs, 1); !verdict) return verdict;
  for (uint32_t slot = 0; slot < kInputs; ++slot) {
    if (node.input_type(slot).dtype != BP_DTYPE_STRING)
      return no(BP_REASON_DTYPE, "input " + std::to_string(slot) + " is not a string tensor");
  }
  return yes();
}

// ---- StringConcat

std::unique_ptr<Kernel> create_concat(const Node&) {
  return make_value_kernel([](Values inputs, Values outputs) -> Failed {
    const Shape shapes[] = {inputs[0].tensor.shape, inputs[1].tensor.shape};
    std::optional<Shape> shape = broadcast_shape(shapes);
    if (!shape) return "shapes " + to_string(shapes[0]) + " and " + to_string(shapes[1]) + " do not broadcast";
    Texts a(inputs[0].tensor), b(inputs[1].tensor);
    Pace pace;
    const int64_t elements = shape->elements();
    require_memory(elements, sizeof(std::string));
    for (const Value& side : inputs.first(2))  // a broadcast may repeat a long string any number of times
      require_memory(elements / std::max<int64_t>(1, side.tensor.shape.elements()), bytes_of(side.tensor));
    std::vector<std::string> texts;
    Broadcast<2> walk(*shape, {shapes[0], shapes[1]});
    walk.rows(0, walk.elements, [&](int64_t, const std::array<int64_t, 2>& offset, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        std::string& text = texts.emplace_back(a[offset[0] + i * walk.inner_stride(0)]);
        text += b[offset[1] + i * walk.inner_stride(1)];
        pace.spend(64 + static_cast<int64_t>(text.size()) / 8);
      }
    });
    outputs[0] = make_texts(*shape, texts);
    return std::nullopt;
  });
}

// ---- StringSplit

constexpr std::string_view kBlanks = " \t\n\v\f\r";

// A text may have as many pieces as bytes, and each piece takes 16 bytes.
void add(std::vector<std::string_view>& pieces, std::string_view piece, Pace& pace) {
  pace.spend(16);
  if (pieces.size() == pieces.capacity())  // a vector grows by doubling
    require_memory(2 * std::ssize(pieces) + 1, sizeof(std::string_view));
  pieces.push_back(piece);
}

// Splits at most `splits` times, any number of times if `splits` is negative. A run of blanks counts as one delimiter;
// blanks at the ends are ignored. The rest after the last split keeps its blanks.
std::vector<std::string_view> split_at_blanks(std::string_view text, int64_t splits, Pace& pace) {
  std::vector<std::string_view> pieces;
  // Returns the length of the prefix whose characters all are blanks or all are not.
  const auto prefix = [&](bool blank) {
    size_t length = 0;
    for (; length < text.size() && (kBlanks.find(text[length]) != std::string_view::npos) == blank; ++length)
      pace.spend(4);
    return length;
  };
  for (;;) {
    text.remove_prefix(prefix(true));
    if (text.empty()) return pieces;
    const size_t end = static_cast<int64_t>(pieces.size()) == splits ? text.size() : prefix(false);
    add(pieces, text.substr(0, end), pace);
    text.remove_prefix(end);
  }
}

// Returns where `part` begins in `text`, or npos. Takes linear time whatever the two contain, unlike
// std::string_view::find.
size_t find(std::string_view text, std::string_view part, Pace& pace) {
  const size_t step = std::max(size_t{1} << 16, part.size());
  for (size_t at = 0; at + part.size() <= text.size(); at += step) {
    const std::string_view window = text.substr(at, step + part.size() - 1);
    pace.spend(static_cast<int64_t>(window.size()));
    if (const void* found = memmem(window.data(), window.size(), part.data(), part.size()); found != nullptr)
      return static_cast<size_t>(static_cast<const char*>(found) - text.data());
  }
  return std::string_view::npos;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view delimiter, int64_t splits, Pace& pace) {
  std::vector<std::string_view> pieces;
  for (;;) {
    size_t end = static_cast<int64_t>(pieces.size()) == splits ? std::string_view::npos : find(text, delimiter, pace);
    if (end == std::string_view::npos) {
      add(pieces, text, pace);
      return pieces;
    }
    add(pieces, text.substr(0, end), pace);
    text.remove_prefix(end + delimiter.size());
  }
}

std::unique_ptr<Kernel> create_split(const Node& node) {
  return make_value_kernel([delimiter = node.attr("delimiter", ""), splits = node.attr("maxsplit", int64_t{-1})](
                               Values inputs, Values outputs) -> Failed {
    Texts texts(inputs[0].tensor);
    const Shape& shape = inputs[0].tensor.shape;
    if (shape.rank() == BP_MAX_RANK)
      return "the input has rank " + std::to_string(BP_MAX_RANK) + ", the maximum; the result needs one dimension more";
    require_memory(texts.count(), sizeof(std::vector<std::string_view>));
    std::vector<std::vector<std::string_view>> rows;
    size_t width = 0;
    int64_t total = 0;  // number of pieces
    Pace pace;
    for (int64_t i = 0; i < texts.count(); ++i) {
      pace.spend(64);
      rows.push_back(delimiter.empty() ? split_at_blanks(texts[i], splits, pace)
                                       : split_at(texts[i], delimiter, splits, pace));
      width = std::max(width, rows.back().size());
      total += std::ssize(rows.back());
      require_memory(total, sizeof(std::string_view));
    }
    Shape wide = shape;
    wide.push_back(static_cast<int64_t>(width));
    require_memory(product({shape.elements(), static_cast<int64_t>(width)}), 2 * sizeof(std::string_view));
    std::vector<std::string_view> all;
    Value counts = Value::allocate(BP_DTYPE_INT64, shape);
    for (size_t i = 0; i < rows.size(); ++i) {
      pace.spend(16 + static_cast<int64_t>(width));
      counts.tensor.as<int64_t>()[i] = static_cast<int64_t>(rows[i].size());
      all.insert(all.end(), rows[i].begin(), rows[i].end());
      all.resize((i + 1) * width);
    }
    outputs[0] = make_texts(wide, all);
    if (outputs.size() > 1) outputs[1] = std::move(counts);
    return std::nullopt;
  });
}

// ---- StringNormalizer

// Maps letters by Unicode's simple case mappings, independent of the locale. Other characters, and bytes that are not
// part of a UTF-8 sequence, are unchanged.
class LetterCase {
 public:
  LetterCase() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {}

  std::string change(std::string_view text, bool upper) const {
    std::string result;
    Pace pace;
    for (size_t i = 0; i < text.size();) {
      pace.spend(16);
      size_t length = length_at(text, i);
      uint32_t letter = decode(text.substr(i, length));
      encode(length == 1 && letter >= 0x80 ? letter : map(letter, upper), length == 1 && letter >= 0x80, result);
      i += length;
    }
    return result;
  }

 private:
  // Returns the length in bytes of the character at i; 1 if the byte there begins no valid sequence, or one that is
  // longer than its character needs.
  static size_t length_at(std::string_view text, size_t i) {
    auto first = static_cast<uint8_t>(text[i]);
    size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 1;
    for (size_t k = 1; k < length; ++k) {
      if (i + k >= text.size() || static_cast<uint8_t>(text[i + k]) >> 6 != 2) return 1;
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    return decode(text.substr(i, length)) < kLeast[length] ? 1 : length;
  }
  static uint32_t decode(std::string_view bytes) {
    auto first = static_cast<uint8_t>(bytes[0]);
    uint32_t letter = bytes.size() == 1 ? first : first & (0x7fu >> bytes.size());
    for (size_t k = 1; k < bytes.size(); ++k) letter = letter << 6 | (static_cast<uint8_t>(bytes[k]) & 0x3fu);
    return letter;
  }
  static void encode(uint32_t letter, bool raw, std::string& out) {
    auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
    if (raw || letter < 0x80) return add(letter);
    if (letter >= 0x10000) {
      add(0xf0 | letter >> 18);
      add(0x80 | (letter >> 12 & 0x3f));
    } else if (letter >= 0x800) {
      add(0xe0 | letter >> 12);
    }
    add(letter >= 0x800 ? 0x80 | (letter >> 6 & 0x3f) : 0xc0 | letter >> 6);
    add(0x80 | (letter & 0x3f));
  }
  uint32_t map(uint32_t letter, bool upper) const {
    if (letter >= 0x80 && locale_ == nullptr) return letter;
    if (letter < 0x80) {
      bool other = upper ? letter >= 'a' && letter <= 'z' : letter >= 'A' && letter <= 'Z';
      return other ? letter ^ 0x20 : letter;
    }
    auto wide = static_cast<wint_t>(letter);
    return static_cast<uint32_t>(upper ? towupper_l(wide, locale_) : towlower_l(wide, locale_));
  }

  locale_t locale_;
};

const LetterCase& letter_case() {
  static const LetterCase kInstance;
  return kInstance;
}

Verdict supports_normalizer(const Node& node) {
  if (Verdict verdict = supports<1>(node); !verdict) return verdict;
  return attribute_in(node, "case_change_action", "NONE", {"NONE", "LOWER", "UPPER"});
}

std::unique_ptr<Kernel> create_normalizer(const Node& node) {
  bool exact = node.attr("is_case_sensitive", int64_t{0}) != 0;
  std::unordered_set<std::string, KeyedHash> stop;
  for (std::string& word : node.texts("stopwords")) stop.insert(exact ? word : letter_case().change(word, false));
  return make_value_kernel([exact, stop = std::move(stop), action = node.attr("case_change_action", "NONE")](
                               Values inputs, Values outputs) -> Failed {
    Shape shape = inputs[0].tensor.shape;
    if (shape.rank() != 1 && (shape.rank() != 2 || shape[0] != 1))
      return "the input has extents " + to_string(shape) + "; they must be [C] or [1,C]";
    Texts texts(inputs[0].tensor);
    Pace pace;
    std::vector<std::string> kept;
    for (int64_t i = 0; i < texts.count(); ++i) {
      pace.spend(64 + 8 * static_cast<int64_t>(texts[i].size()));
      std::string text(texts[i]);
      if (!stop.empty() && stop.contains(exact ? text : letter_case().change(text, false))) continue;
      kept.push_back(action == "NONE" ? std::move(text) : letter_case().change(text, action == "UPPER"));
    }
    if (kept.empty()) kept.emplace_back();
    shape[shape.rank() - 1] = static_cast<int64_t>(kept.size());
    outputs[0] = make_texts(shape, kept);
    return std::nullopt;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> text_rows() {
  static constexpr Row kRows[] = {
      {"", "StringConcat", 20, supports<2>, create_concat, kTexts},
      {"", "StringSplit", 20, supports<1>, create_split, kTexts},
      {"", "StringNormalizer", 10, supports_normalizer, create_normalizer, kTexts},
  };
  return kRows;
}

}  // namespace backplane::cpu
