// SPDX-License-Identifier: Apache-2.0
// The format is documented in numpy.lib.format: a magic string, a version, the header's length, a Python dictionary,
// and the elements.
#include "npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace backplane::tools {
namespace {

using onnx::Malformed;
using onnx::Tensor;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 64 * 1024;

// A data type and numpy's letter and size in bytes for it.
struct Row {
  char letter;
  uint32_t bytes;
  bp_dtype_t dtype;
};
constexpr Row kTypes[] = {
    {'b', 1, BP_DTYPE_BOOL},      {'i', 1, BP_DTYPE_INT8},        {'i', 2, BP_DTYPE_INT16},  {'i', 4, BP_DTYPE_INT32},
    {'i', 8, BP_DTYPE_INT64},     {'u', 1, BP_DTYPE_UINT8},       {'u', 2, BP_DTYPE_UINT16}, {'u', 4, BP_DTYPE_UINT32},
    {'u', 8, BP_DTYPE_UINT64},    {'f', 2, BP_DTYPE_FLOAT16},     {'f', 4, BP_DTYPE_FLOAT},  {'f', 8, BP_DTYPE_DOUBLE},
    {'c', 8, BP_DTYPE_COMPLEX64}, {'c', 16, BP_DTYPE_COMPLEX128},
};

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// Parses the header, which is a Python dictionary of strings, bools and tuples.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Header parse() {
    Header header;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        header.descr = quoted();
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        throw Malformed(fmt::format("the .npy header has the unknown key '{}'", key));
      }
      if (take('}')) break;
      expect(',');
    }
    skip_space();
    if (!text_.empty()) fail("nothing more");
    if (!header.descr || !header.fortran_order || !header.shape) {
      throw Malformed("the .npy header lacks descr, fortran_order or shape");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view wanted) const {
    throw Malformed(fmt::format("the .npy header has '{}' where {} is expected", text_.substr(0, 20), wanted));
  }
  void skip_space() {
    const size_t start = text_.find_first_not_of(" \t\n\r");
    text_.remove_prefix(std::min(start, text_.size()));
  }
  bool take(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }
  std::string quoted() {
    skip_space();
    if (text_.starts_with('['))
      throw Malformed("structured .npy types are not supported: save one field as an array of its own");
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) fail("a quoted string");
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) fail("a closed string");
    std::string string(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return string;
  }
  bool boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    }
    fail("True or False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> extents;
    expect('(');
    while (!take(')')) {
      skip_space();
      int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      const bool has_zeros = extent != 0 && text_.starts_with('0');  // an error in Python
      if (error != std::errc() || extent < 0 || has_zeros) fail("an extent");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      take('L');  // Python 2 wrote long integers with an L
      extents.push_back(extent);
      if (extents.size() > 1 && take(')')) break;  // "(3)" is a number, "(3,)" a tuple
      expect(',');
    }
    return extents;
  }

  std::string_view text_;
};

// Returns the header and removes everything before the elements from `bytes`.
std::string_view take_header(std::string_view& bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + 2)
    throw Malformed("the file is not a .npy file: it does not begin with the bytes \\x93NUMPY and a version");
  const auto major = static_cast<uint8_t>(bytes[kMagic.size()]), minor = static_cast<uint8_t>(bytes[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0)
    throw Malformed(fmt::format(".npy version {}.{} is not known; 1.0, 2.0 and 3.0 are", major, minor));
  bytes.remove_prefix(kMagic.size() + 2);
  const size_t width = major == 1 ? 2 : 4;
  uint32_t length = 0;
  if (bytes.size() < width) throw Malformed("the .npy file ends in its header");
  std::memcpy(&length, bytes.data(), width);
  bytes.remove_prefix(width);
  if (length > kMaxHeader)
    throw Malformed(fmt::format("the .npy header has {} bytes; at most {} are read", length, kMaxHeader));
  if (length > bytes.size()) throw Malformed("the .npy file ends in its header");
  const std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return header;
}

struct Element {
  char letter;
  uint64_t bytes;
};

Element parse_descr(const std::string& descr) {
  Element element = {};
  const char* end = descr.data() + descr.size();
  if (descr.size() > 1 && descr[1] == 'O')
    throw Malformed("Python objects in .npy files are not supported: save numbers or text");
  if (descr.size() < 3) throw Malformed(fmt::format("the .npy type '{}' is not known", descr));
  element.letter = descr[1];
  const auto [rest, error] = std::from_chars(descr.data() + 2, end, element.bytes);
  if (error != std::errc() || rest != end || element.bytes > kMaxHeader) {
    throw Malformed(fmt::format("the .npy type '{}' is not known", descr));
  }
  if (descr[0] != '<' && descr[0] != '|' && descr[0] != '=') {
    throw Malformed(fmt::format("the .npy type '{}' is not little-endian: convert it with astype", descr));
  }
  if (element.letter == 'U') element.bytes *= 4;
  return element;
}

// Copies elements of `width` bytes each from Fortran order to C order.
std::string to_c_order(std::string_view data, uint64_t width, const std::vector<int64_t>& extents) {
  std::string result(data.size(), '\0');
  std::vector<int64_t> index(extents.size(), 0);
  std::vector<uint64_t> strides(extents.size(), 1);
  for (size_t axis = 1; axis < extents.size(); ++axis) {
    strides[axis] = strides[axis - 1] * static_cast<uint64_t>(extents[axis - 1]);
  }
  uint64_t from = 0;
  for (uint64_t to = 0; to + width <= data.size() && width > 0; to += width) {
    std::memcpy(result.data() + to, data.data() + from * width, width);
    for (size_t axis = extents.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < extents[axis]) break;
      from -= strides[axis] * static_cast<uint64_t>(extents[axis]);
      index[axis] = 0;
    }
  }
  return result;
}

void append_utf8(std::string& text, uint32_t code) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    throw Malformed(fmt::format("the .npy text has the invalid code point {:#x}", code));
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint8_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(kLead[tail] | code >> (6 * tail));
  for (int i = tail - 1; i >= 0; --i) text += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3f));
}

// Decodes UTF-8 to code points; nullopt if it is invalid.
std::optional<std::u32string> characters(std::string_view text) {
  std::u32string result;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t size = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (size == 0 || i + size > text.size()) return std::nullopt;
    uint32_t code = size == 1 ? lead : lead & (0x7fu >> size);
    for (size_t k = 1; k < size; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      if (next >> 6 != 2) return std::nullopt;
      code = code << 6 | (next & 0x3f);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return std::nullopt;
    result += static_cast<char32_t>(code);
    i += size;
  }
  return result;
}

// Reads text elements of fixed width, padded with zeros.
Tensor read_texts(std::string_view data, Element element, std::vector<int64_t> extents, uint64_t count) {
  std::vector<std::string> texts(count);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view field = data.substr(i * element.bytes, element.bytes);
    if (element.letter == 'S') {
      texts[i] = field.substr(0, field.find_last_not_of('\0') + 1);
      continue;
    }
    uint64_t used = 0;
    for (uint64_t at = 0; at < field.size(); at += 4) {
      uint32_t code;
      std::memcpy(&code, field.data() + at, 4);
      append_utf8(texts[i], code);
      if (code != 0) used = texts[i].size();
    }
    texts[i].resize(used);
  }
  return Tensor::of_texts(std::move(extents), texts);
}

std::string text_elements(const Tensor& tensor, size_t& out_width) {
  std::vector<std::u32string> texts;
  out_width = 1;
  for (uint64_t i = 0; i < tensor.count(); ++i) {
    texts.push_back(*characters(tensor.text(i)));
    out_width = std::max(out_width, texts.back().size());
  }
  std::string data(texts.size() * out_width * 4, '\0');
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty()) std::memcpy(data.data() + i * out_width * 4, texts[i].data(), texts[i].size() * 4);
  }
  return data;
}

}  // namespace

Tensor read_npy(std::string_view bytes) {
  const Header header = HeaderParser(take_header(bytes)).parse();
  const Element element = parse_descr(*header.descr);
  const std::vector<int64_t>& extents = *header.shape;
  const uint64_t count = onnx::element_count(extents);
  // The file's size bounds the number of elements, except for empty texts, which take no bytes.
  const bool is_empty_text = (element.letter == 'U' || element.letter == 'S') && element.bytes == 0;
  if (is_empty_text && count > kMaxHeader) throw Malformed("the .npy file has too many empty texts");
  if (element.bytes != 0 && count > UINT64_MAX / element.bytes) throw Malformed("the .npy file's shape is too large");
  if (bytes.size() != count * element.bytes) {
    throw Malformed(fmt::format("the .npy file has {} bytes of elements, but its type '{}' and shape need {}",
                                bytes.size(), *header.descr, count * element.bytes));
  }
  std::string in_c_order;
  if (*header.fortran_order && extents.size() > 1) {
    in_c_order = to_c_order(bytes, element.bytes, extents);
    bytes = in_c_order;
  }
  if (element.letter == 'U' || element.letter == 'S') return read_texts(bytes, element, extents, count);

  const Row* row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Row& type) {
    return type.letter == element.letter && type.bytes == element.bytes;
  });
  if (row == std::end(kTypes))
    throw Malformed(fmt::format("the .npy type '{}' has no counterpart in ONNX", *header.descr));
  if (row->dtype == BP_DTYPE_BOOL && std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; })) {
    throw Malformed("the .npy file has bools that are neither 0 nor 1");
  }
  Tensor tensor{row->dtype, extents, std::vector<std::byte>(bytes.size())};
  if (!bytes.empty()) std::memcpy(tensor.bytes.data(), bytes.data(), bytes.size());
  return tensor;
}

bool fits_npy(const Tensor& tensor) {
  if (tensor.dtype != BP_DTYPE_STRING) {
    return std::any_of(std::begin(kTypes), std::end(kTypes), [&](const Row& row) { return row.dtype == tensor.dtype; });
  }
  for (uint64_t i = 0; i < tensor.count(); ++i) {
    if (tensor.text(i).ends_with('\0') || !characters(tensor.text(i))) return false;
  }
  return true;
}

std::string write_npy(const Tensor& tensor) {
  std::string descr, data;
  if (tensor.dtype == BP_DTYPE_STRING) {
    size_t width = 0;
    data = text_elements(tensor, width);
    descr = fmt::format("<U{}", width);
  } else {
    const Row* row =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Row& type) { return type.dtype == tensor.dtype; });
    if (row == std::end(kTypes)) throw Malformed(fmt::format("numpy has no type for {}", describe(tensor)));
    descr = fmt::format("{}{}{}", row->bytes == 1 ? '|' : '<', row->letter, row->bytes);
    data.assign(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  std::string shape;
  for (const int64_t extent : tensor.extents) shape += fmt::format("{}, ", extent);
  if (tensor.extents.size() > 1) shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // Pads the header so that the elements start at a multiple of 64 bytes.
  constexpr size_t kPrefix = kMagic.size() + 4;
  header.resize((kPrefix + header.size() + 1 + 63) / 64 * 64 - kPrefix - 1, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\1';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

}  // namespace backplane::tools
