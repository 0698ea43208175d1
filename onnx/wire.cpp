// SPDX-License-Identifier: Apache-2.0
#include "onnx/wire.h"

#include <cstring>

namespace backplane::onnx {
namespace {

// Converts the elements in a typed list of the message, whose type may be wider, to the tensor's bytes.
template <class Stored, class Wide>
void narrow(const google::protobuf::RepeatedField<Wide>& list, std::string_view field, Tensor& tensor) {
  if (tensor.bytes.size() != list.size() * sizeof(Stored)) {
    throw Malformed(describe(tensor) + " needs " + std::to_string(tensor.bytes.size() / sizeof(Stored)) +
                    " entries, but " + std::string(field) + " has " + std::to_string(list.size()));
  }
  std::byte* out = tensor.bytes.data();
  for (const Wide wide : list) {
    const auto element = static_cast<Stored>(wide);
    std::memcpy(out, &element, sizeof element);
    out += sizeof element;
  }
}

void read_typed_list(const TensorProto& message, Tensor& tensor) {
  switch (tensor.dtype) {
    case BP_DTYPE_FLOAT:
    case BP_DTYPE_COMPLEX64:
      return narrow<float>(message.float_data(), "float_data", tensor);
    case BP_DTYPE_DOUBLE:
    case BP_DTYPE_COMPLEX128:
      return narrow<double>(message.double_data(), "double_data", tensor);
    case BP_DTYPE_INT64:
      return narrow<int64_t>(message.int64_data(), "int64_data", tensor);
    case BP_DTYPE_UINT64:
      return narrow<uint64_t>(message.uint64_data(), "uint64_data", tensor);
    case BP_DTYPE_UINT32:
      return narrow<uint32_t>(message.uint64_data(), "uint64_data", tensor);
    case BP_DTYPE_INT32:
      return narrow<uint32_t>(message.int32_data(), "int32_data", tensor);
    case BP_DTYPE_INT16:
    case BP_DTYPE_UINT16:
    case BP_DTYPE_FLOAT16:
    case BP_DTYPE_BFLOAT16:
      return narrow<uint16_t>(message.int32_data(), "int32_data", tensor);
    default:
      return narrow<uint8_t>(message.int32_data(), "int32_data",
                             tensor);  // also packed types such as INT4, whose entries hold one byte each
  }
}

template <class Message>
Message parse(std::string_view bytes, std::string_view what) {
  Message message;
  if (bytes.size() > INT32_MAX || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw Malformed(std::to_string(bytes.size()) + " bytes do not parse as an ONNX " + std::string(what));
  }
  return message;
}

Value of_tensor(Tensor tensor) {
  return {BP_KIND_TENSOR, std::move(tensor), {}, {}};
}

template <class Message>
Value named(const Message& message, std::string* out_name) {
  if (out_name != nullptr) *out_name = message.name();
  if constexpr (std::is_same_v<Message, TensorProto>) {
    return of_tensor(from_message(message));
  } else {
    return from_message(message);
  }
}

}  // namespace

Tensor from_message(const TensorProto& message) {
  Tensor tensor;
  tensor.dtype = static_cast<bp_dtype_t>(message.data_type());
  tensor.extents.assign(message.dims().begin(), message.dims().end());
  if (message.data_location() == TensorProto::EXTERNAL)
    throw Malformed("a tensor has external data: store its data in the message itself");
  if (message.has_segment()) throw Malformed("tensors in segments are not supported");
  if (tensor.dtype == BP_DTYPE_STRING) {
    return Tensor::of_texts(tensor.extents, {message.string_data().begin(), message.string_data().end()});
  }
  const uint64_t needed = dense_bytes(tensor.dtype, tensor.extents);
  if (message.has_raw_data()) {
    const std::string& raw = message.raw_data();
    if (raw.size() != needed) {
      throw Malformed(describe(tensor) + " needs " + std::to_string(needed) + " bytes, but raw_data has " +
                      std::to_string(raw.size()));
    }
    tensor.bytes.resize(needed);
    if (needed > 0) std::memcpy(tensor.bytes.data(), raw.data(), needed);
    return tensor;
  }
  // Limits the memory that a false shape can cost: each byte of the message yields at most one entry of at most 8
  // bytes.
  if (needed > message.ByteSizeLong() * 8) {
    throw Malformed(describe(tensor) + " needs " + std::to_string(needed) + " bytes, but the whole message has " +
                    std::to_string(message.ByteSizeLong()));
  }
  tensor.bytes.resize(needed);
  read_typed_list(message, tensor);
  return tensor;
}

Value from_message(const SequenceProto& message) {
  Value value;
  value.kind = BP_KIND_SEQUENCE;
  if (message.sparse_tensor_values_size() > 0) throw Malformed("sequences of sparse tensors are not supported");
  for (const TensorProto& element : message.tensor_values()) value.elements.push_back(of_tensor(from_message(element)));
  for (const SequenceProto& element : message.sequence_values()) value.elements.push_back(from_message(element));
  for (const MapProto& element : message.map_values()) value.elements.push_back(from_message(element));
  for (const OptionalProto& element : message.optional_values()) value.elements.push_back(from_message(element));
  return value;
}

Value from_message(const OptionalProto& message) {
  Value value;
  value.kind = BP_KIND_OPTIONAL;
  if (message.has_sparse_tensor_value()) throw Malformed("optional sparse tensors are not supported");
  if (message.has_tensor_value()) value.elements.push_back(of_tensor(from_message(message.tensor_value())));
  if (message.has_sequence_value()) value.elements.push_back(from_message(message.sequence_value()));
  if (message.has_map_value()) value.elements.push_back(from_message(message.map_value()));
  if (message.has_optional_value()) value.elements.push_back(from_message(message.optional_value()));
  if (value.elements.size() > 1) throw Malformed("an optional holds more than one value");
  return value;
}

Value from_message(const MapProto& message) {
  Value value = from_message(message.values());
  value.kind = BP_KIND_MAP;
  for (const int64_t key : message.keys()) {
    value.keys.emplace_back(reinterpret_cast<const char*>(&key), sizeof key);
  }
  for (const std::string& key : message.string_keys()) value.keys.push_back(key);
  if (value.keys.size() != value.elements.size()) {
    throw Malformed("a map has " + std::to_string(value.keys.size()) + " keys, but " +
                    std::to_string(value.elements.size()) + " values");
  }
  return value;
}

TensorProto to_message(const Tensor& tensor, std::string_view name) {
  TensorProto message;
  message.set_name(std::string(name));
  message.set_data_type(static_cast<int32_t>(tensor.dtype));
  for (const int64_t extent : tensor.extents) message.add_dims(extent);
  if (tensor.dtype == BP_DTYPE_STRING) {
    for (uint64_t i = 0; i < tensor.count(); ++i) message.add_string_data(std::string(tensor.text(i)));
  } else {
    message.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
  }
  return message;
}

Value parse_value(std::string_view bytes, uint32_t kind, std::string* out_name) {
  switch (kind) {
    case BP_KIND_TENSOR:
      return named(parse<TensorProto>(bytes, "TensorProto"), out_name);
    case BP_KIND_SEQUENCE:
      return named(parse<SequenceProto>(bytes, "SequenceProto"), out_name);
    case BP_KIND_OPTIONAL:
      return named(parse<OptionalProto>(bytes, "OptionalProto"), out_name);
    case BP_KIND_MAP:
      return named(parse<MapProto>(bytes, "MapProto"), out_name);
    default:
      throw Malformed("values of kind " + std::string(kind_name(kind)) + " are not supported");
  }
}

}  // namespace backplane::onnx
