// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/counted.h"
#include "base/dtype.h"
#include "import/parser.h"
#include "ir/tensor.h"

namespace backplane::model {
namespace {

using wire::Reader;

// The maximum size in bytes of a sparse tensor after its conversion to dense. Without this limit, a tiny file could
// demand any amount of memory.
constexpr uint64_t kDenseLimit = uint64_t{1} << 30;

// The fields of a TensorProto before its data is located.
struct Message {
  std::string_view name;
  std::vector<int64_t> dims;
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  std::string_view raw;
  bool has_raw = false, external = false;
  std::vector<char> typed;  // bytes from the typed field that belongs to `dtype`
  std::vector<std::string_view> strings;
  std::string_view location, offset, length;

  std::string label() const { return name.empty() ? std::string("a tensor") : "tensor " + in_quotes(name); }
};

// The field of TensorProto for elements of a data type (float_data, …), and the number of bytes that one entry of the
// field becomes in the tensor.
struct TypedField {
  uint32_t number = 0;
  uint32_t bytes = 0;
};

TypedField typed_field(bp_dtype_t dtype) {
  namespace f = field::tensor;
  switch (dtype) {
    case BP_DTYPE_FLOAT:
    case BP_DTYPE_COMPLEX64:
      return {f::kFloatData, 4};
    case BP_DTYPE_DOUBLE:
    case BP_DTYPE_COMPLEX128:
      return {f::kDoubleData, 8};
    case BP_DTYPE_INT64:
      return {f::kInt64Data, 8};
    case BP_DTYPE_UINT32:
      return {f::kUint64Data, 4};
    case BP_DTYPE_UINT64:
      return {f::kUint64Data, 8};
    case BP_DTYPE_INT32:
      return {f::kInt32Data, 4};
    case BP_DTYPE_INT16:
    case BP_DTYPE_UINT16:
    case BP_DTYPE_FLOAT16:
    case BP_DTYPE_BFLOAT16:
      return {f::kInt32Data, 2};
    case BP_DTYPE_STRING:
      return {f::kStringData, 0};
    default:
      return {f::kInt32Data, 1};  // one 8-bit element per entry, or several packed smaller ones
  }
}

// Appends the low `bytes` bytes of `entry`.
void append(std::vector<char>& out, uint64_t entry, uint32_t bytes) {
  const auto* low = reinterpret_cast<const char*>(&entry);
  out.insert(out.end(), low, low + bytes);
}

void read_typed(Reader reader, const TypedField& typed, Message& message) {
  namespace f = field::tensor;
  std::vector<char>& out = message.typed;
  while (reader.next(typed.number)) {
    if (typed.number == f::kFloatData || typed.number == f::kDoubleData) {
      if (is_bytes(reader)) {
        const std::string_view packed = reader.get_view();
        if (packed.size() % typed.bytes != 0)
          malformed(message.label() + " has " + std::to_string(packed.size()) +
                    " bytes of packed data, not a multiple of " + std::to_string(typed.bytes) +
                    ": is the file truncated?");
        out.insert(out.end(), packed.begin(), packed.end());
      } else if (is_fixed32(reader) && typed.bytes == 4) {
        append(out, reader.get_fixed32(), 4);
      } else if (is_fixed64(reader) && typed.bytes == 8) {
        append(out, reader.get_fixed64(), 8);
      } else {
        reader.skip();
      }
    } else if (is_varint(reader)) {
      append(out, reader.get_uint64(), typed.bytes);
    } else if (is_bytes(reader)) {
      for (const uint64_t entry : reader.get_packed_uint64()) append(out, entry, typed.bytes);
    } else {
      reader.skip();
    }
  }
}

void read_external(Reader reader, Message& message) {
  std::string_view key, value;
  while (reader.next()) {
    if (reader.tag() == field::entry::kKey && is_bytes(reader)) {
      key = reader.get_view();
    } else if (reader.tag() == field::entry::kValue && is_bytes(reader)) {
      value = reader.get_view();
    } else {
      reader.skip();
    }
  }
  if (key == "location") message.location = value;
  if (key == "offset") message.offset = value;
  if (key == "length") message.length = value;
}

void read_dims(Reader& reader, std::vector<int64_t>& dims) {
  if (is_varint(reader)) {
    dims.push_back(reader.get_int64());
  } else if (is_bytes(reader)) {
    for (const int64_t extent : reader.get_packed_int64()) dims.push_back(extent);
  } else {
    reader.skip();
  }
}

Message read_message(const Reader& source) {
  namespace f = field::tensor;
  Message message;
  Reader reader = source;
  while (reader.next()) {
    const uint32_t tag = reader.tag();
    if (tag == f::kDims) {
      read_dims(reader, message.dims);
    } else if (tag == f::kDataType && is_varint(reader)) {
      message.dtype = reader.get_uint32();
    } else if (tag == f::kDataLocation && is_varint(reader)) {
      message.external = reader.get_uint32() == 1;
    } else if (!is_bytes(reader)) {
      reader.skip();
    } else if (tag == f::kName) {
      message.name = reader.get_view();
      if (!is_utf8(message.name))
        malformed("a tensor's name, " + std::to_string(message.name.size()) + " bytes long, is not UTF-8");
    } else if (tag == f::kRawData) {
      message.raw = reader.get_view();
      message.has_raw = true;
    } else if (tag == f::kStringData) {
      message.strings.push_back(reader.get_view());
    } else if (tag == f::kExternalData) {
      read_external(reader.get_message(), message);
    } else if (tag == f::kSegment) {
      malformed(message.label() + " is stored in segments, which ONNX no longer supports; store it in one piece");
    } else {
      reader.skip();
    }
  }
  if (message.dtype == BP_DTYPE_UNDEFINED || message.dtype > BP_DTYPE_INT2) {
    malformed(message.label() + " has data type " + std::to_string(message.dtype) + ", which this build does not know");
  }
  if (message.dims.size() > BP_MAX_RANK) {
    malformed(message.label() + " has " + std::to_string(message.dims.size()) + " dimensions; the maximum is " +
              std::to_string(BP_MAX_RANK));
  }
  if (!element_count(message.dims))
    malformed(message.label() + " has impossible extents: one is negative, or their product is too large");
  if (!message.has_raw && !message.external) {
    if (const TypedField typed = typed_field(message.dtype); typed.bytes) read_typed(source, typed, message);
  }
  return message;
}

uint64_t read_number(const Message& message, std::string_view digits, uint64_t fallback, const char* what) {
  if (digits.empty()) return fallback;
  uint64_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9' || number > (UINT64_MAX - 9) / 10) {
      malformed(message.label() + ": the " + what + " of its external data is " + in_quotes(digits) +
                ", not a whole number of 64 bits");
    }
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

void own(Weight& weight, std::vector<char> bytes) {
  weight.owned = std::make_shared<const std::vector<char>>(std::move(bytes));
  weight.data = weight.owned->data();
  weight.bytes = weight.owned->size();
}

int64_t int64_at(const Weight& weight, uint64_t index) {
  int64_t value;
  std::memcpy(&value, static_cast<const char*>(weight.data) + index * sizeof value, sizeof value);
  return value;
}

void expect_bytes(const Message& message, uint64_t have, uint64_t need, const std::string& where) {
  if (have == need) return;
  std::string extents;
  for (const int64_t extent : message.dims) extents += (extents.empty() ? "" : ",") + std::to_string(extent);
  malformed(message.label() + " of type " + std::string(dtype_name(message.dtype)) + "[" + extents + "] needs " +
            counted(need, "byte") + " and has " + std::to_string(have) + where);
}

}  // namespace

uint32_t Parser::add_weight(Graph& graph, Weight weight) {
  charge(sizeof weight);
  weight.id = next_weight_++;
  graph.weights.push_back(std::move(weight));
  return static_cast<uint32_t>(graph.weights.size() - 1);
}

NamedWeight Parser::parse_tensor(Reader reader) {
  Message message = read_message(reader);
  charge(message.typed.size() + message.strings.size() * 2 * sizeof(std::string_view));
  Weight weight;
  weight.dtype = message.dtype;
  weight.dims = message.dims;
  if (message.dtype == BP_DTYPE_STRING) {
    const uint64_t count = *element_count(message.dims);
    if (message.external || message.has_raw)
      malformed(message.label() + " has raw or external data, but strings must be in string_data");
    if (message.strings.size() != count) {
      malformed(message.label() + " should hold " + counted(count, "string") + " but holds " +
                std::to_string(message.strings.size()));
    }
    uint64_t size = (count + 1) * sizeof(int64_t);
    for (const std::string_view string : message.strings) size += string.size();
    charge(size);
    own(weight, pack_strings(message.strings));
    return {message.name, std::move(weight)};
  }

  const uint64_t need = *tensor_bytes(message.dtype, message.dims);
  if (message.external) {
    auto opened = external_.open(message.location);
    if (!opened.ok()) throw Malformed{opened.take_status().context(message.label())};
    const std::string_view bytes = (*opened)->mapping->bytes();
    const uint64_t offset = read_number(message, message.offset, 0, "offset");
    const uint64_t rest = offset <= bytes.size() ? bytes.size() - offset : 0;
    const uint64_t length = read_number(message, message.length, need, "length");
    expect_bytes(message, length, need, ", according to the length of its external data");
    if (offset > bytes.size() || length > rest) {
      malformed(message.label() + " is stored at offset " + std::to_string(offset) + " with " + std::to_string(length) +
                " bytes in '" + (*opened)->path + "', which has " + std::to_string(bytes.size()) +
                " bytes: is the file truncated?");
    }
    weight.data = bytes.data() + offset;
    weight.bytes = length;
    weight.file = (*opened)->path;
    weight.file_offset = offset;
  } else if (message.has_raw) {
    expect_bytes(message, message.raw.size(), need, "");
    weight.data = message.raw.data();
    weight.bytes = need;
    weight.file = file_;
    weight.file_offset = file_.empty() ? 0 : static_cast<uint64_t>(message.raw.data() - bytes_.data());
  } else {
    expect_bytes(message, message.typed.size(), need, "");
    own(weight, std::move(message.typed));
  }
  if (weight.dtype == BP_DTYPE_BOOL) {  // reading a byte other than 0 or 1 as a bool is undefined behavior
    const std::string_view flags(static_cast<const char*>(weight.data), weight.bytes);
    if (flags.find_first_not_of(std::string_view("\0\1", 2)) != flags.npos) {
      charge(weight.bytes);
      std::vector<char> clean(flags.begin(), flags.end());
      for (char& flag : clean) flag = flag != 0;
      own(weight, std::move(clean));
      weight.file.clear();
      weight.file_offset = 0;
    }
  }
  return {message.name, std::move(weight)};
}

std::pair<Weight, Weight> Parser::parse_sparse_parts(Reader reader, std::vector<int64_t>& dims,
                                                     std::string_view& name) {
  namespace f = field::sparse;
  NamedWeight values, indices;
  bool has_values = false, has_indices = false;
  while (reader.next()) {
    if (reader.tag() == f::kDims) {
      read_dims(reader, dims);
    } else if (reader.tag() == f::kValues && is_bytes(reader)) {
      values = parse_tensor(reader.get_message());
      has_values = true;
    } else if (reader.tag() == f::kIndices && is_bytes(reader)) {
      indices = parse_tensor(reader.get_message());
      has_indices = true;
    } else {
      reader.skip();
    }
  }
  name = values.name;
  const std::string label = "sparse tensor " + in_quotes(name);
  if (!has_values) malformed("a sparse tensor has no values");
  const uint64_t entries = *element_count(values.weight.dims);
  if (!has_indices && entries == 0) {
    indices.weight.dtype = BP_DTYPE_INT64;
    indices.weight.dims = {0};
  } else if (!has_indices) {
    malformed(label + " has values but no indices");
  }
  if (values.weight.dims.size() != 1 || indices.weight.dtype != BP_DTYPE_INT64) {
    malformed(label + " should have values of rank 1 and indices of type int64, and has rank " +
              std::to_string(values.weight.dims.size()) + " and type " + std::string(dtype_name(indices.weight.dtype)));
  }
  return {std::move(values.weight), std::move(indices.weight)};
}

NamedWeight Parser::parse_sparse(Reader reader) {
  std::vector<int64_t> dims;
  std::string_view name;
  const auto [values, indices] = parse_sparse_parts(reader, dims, name);
  const std::string label = "sparse tensor " + in_quotes(name);
  const std::optional<uint64_t> count = element_count(dims);
  const uint64_t width = dtype_bits(values.dtype) / 8;
  if (!count || dims.size() > BP_MAX_RANK)
    malformed(label + " has impossible extents: one is negative, their product is too large, or there are too many");
  if (width == 0)
    unsupported(label + " has data type " + std::string(dtype_name(values.dtype)) +
                ", which the loader supports only in dense tensors: store it as one");
  if (*count > kDenseLimit / width)
    unsupported(label + " has " + std::to_string(*count) +
                " elements; the loader supports up to 1 GiB, because it makes sparse tensors dense");

  const uint64_t entries = static_cast<uint64_t>(values.dims[0]);
  const bool linear = indices.dims.size() == 1;
  const bool by_axis = indices.dims.size() == 2 && indices.dims[1] == static_cast<int64_t>(dims.size());
  if ((!linear && !by_axis) || static_cast<uint64_t>(indices.dims[0]) != entries) {
    malformed(label + " should have one index, or one index per axis, for each of its " + std::to_string(entries) +
              " values");
  }
  model_.budget->charge(*count * width, "making " + label + " dense");
  std::vector<char> dense(*count * width);
  for (uint64_t i = 0; i < entries; ++i) {
    uint64_t place = 0;
    bool inside = true;
    for (size_t axis = 0; axis < (linear ? 1 : dims.size()); ++axis) {
      const int64_t extent = linear ? static_cast<int64_t>(*count) : dims[axis];
      const int64_t index = int64_at(indices, linear ? i : i * dims.size() + axis);
      inside = inside && index >= 0 && index < extent;
      if (inside) place = place * static_cast<uint64_t>(extent) + static_cast<uint64_t>(index);
    }
    if (!inside || place >= *count)
      malformed(label + ": the index of value " + std::to_string(i) + " is outside its extents");
    std::memcpy(dense.data() + place * width, static_cast<const char*>(values.data) + i * width, width);
  }
  Weight weight;
  weight.dtype = values.dtype;
  weight.dims = std::move(dims);
  own(weight, std::move(dense));
  return {name, std::move(weight)};
}

}  // namespace backplane::model
