// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/descriptor.h"

namespace backplane::onnxifi {
namespace {

constexpr int32_t kTag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;

bool is_dtype(onnxEnum dtype) {
  constexpr bp_dtype_t kBool = BP_DTYPE_BOOL, kString = BP_DTYPE_STRING;  // not in ONNXIFI
  return dtype >= ONNXIFI_DATATYPE_FLOAT32 && dtype <= ONNXIFI_DATATYPE_BFLOAT16 && dtype != kBool && dtype != kString;
}

bool is_memory_type(onnxEnum type) {
  switch (type) {
    case ONNXIFI_MEMORY_TYPE_CPU:
    case ONNXIFI_MEMORY_TYPE_CUDA_BUFFER:
    case ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER:
    case ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D:
    case ONNXIFI_MEMORY_TYPE_D3D_RESOURCE:
      return true;
    default:
      return false;
  }
}

}  // namespace

uint64_t Described::bytes() const {
  const auto bytes = view::dense_bytes(dtype, extents.data(), static_cast<uint32_t>(extents.size()));
  if (!bytes) throw Failure{ONNXIFI_STATUS_INVALID_SHAPE};
  return *bytes;
}

Described read(const onnxTensorDescriptorV1& descriptor) {
  if (descriptor.tag != kTag) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_TAG};
  if (descriptor.dimensions > BP_MAX_RANK || (descriptor.dimensions != 0 && descriptor.shape == nullptr))
    throw Failure{ONNXIFI_STATUS_INVALID_SHAPE};
  std::vector<int64_t> extents;
  for (uint32_t i = 0; i < descriptor.dimensions; ++i) {
    if (descriptor.shape[i] == 0 || descriptor.shape[i] > INT64_MAX) throw Failure{ONNXIFI_STATUS_INVALID_SHAPE};
    extents.push_back(static_cast<int64_t>(descriptor.shape[i]));
  }
  if (!is_dtype(descriptor.dataType)) throw Failure{ONNXIFI_STATUS_INVALID_DATATYPE};
  Described result{descriptor.name == nullptr ? std::string_view() : descriptor.name,
                   static_cast<bp_dtype_t>(descriptor.dataType), descriptor.memoryType, std::move(extents),
                   descriptor.buffer};
  result.bytes();  // throws INVALID_SHAPE if the size overflows
  if (!is_memory_type(descriptor.memoryType)) throw Failure{ONNXIFI_STATUS_INVALID_MEMORY_TYPE};
  if (descriptor.buffer == 0) throw Failure{ONNXIFI_STATUS_INVALID_MEMORY_LOCATION};
  return result;
}

std::vector<Described> read(const onnxTensorDescriptorV1* descriptors, uint32_t count) {
  if (descriptors == nullptr && count != 0) throw Failure{ONNXIFI_STATUS_INVALID_POINTER};
  std::vector<Described> result;
  for (uint32_t i = 0; i < count; ++i) result.push_back(read(descriptors[i]));
  return result;
}

void check_expressible(const Model& model) {
  const view::Graph graph = model.graph();
  for (const auto& values : {graph.inputs(), graph.outputs()}) {
    for (const view::Value& value : values)
      if (!value.is_tensor() || !is_dtype(value.dtype())) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_DATATYPE};
  }
}

void check_dtype(const view::Value& value, const Described& described) {
  if (value.dtype() != described.dtype) throw Failure{ONNXIFI_STATUS_MISMATCHING_DATATYPE};
}

void check_shape(const view::Value& value, const Described& described) {
  if (value.rank() < 0) return;
  if (static_cast<size_t>(value.rank()) != described.extents.size()) throw Failure{ONNXIFI_STATUS_MISMATCHING_SHAPE};
  for (uint32_t i = 0; i < described.extents.size(); ++i) {
    const int64_t declared = value.extent(i);
    if (declared >= 0 && declared != described.extents[i]) throw Failure{ONNXIFI_STATUS_MISMATCHING_SHAPE};
  }
}

bool overlap(const Described& a, const Described& b) {
  const bool a_is_address = a.memory_type != ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER;
  const bool b_is_address = b.memory_type != ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER;
  if (!a_is_address || !b_is_address) return a_is_address == b_is_address && a.buffer == b.buffer;
  return a.buffer < b.buffer ? b.buffer - a.buffer < a.bytes() : a.buffer - b.buffer < b.bytes();
}

}  // namespace backplane::onnxifi
