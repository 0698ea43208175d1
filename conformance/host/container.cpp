// SPDX-License-Identifier: Apache-2.0
#include "host/container.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace backplane::conform {
namespace {

std::string key_of(bp_bytes_t key) {
  return key.size == 0 ? std::string() : std::string(static_cast<const char*>(key.data), key.size);
}

uint64_t count(const bp_container_t* container) {
  return container->elements.size();
}

bp_status_t tensor(const bp_container_t* container, uint64_t i, bp_tensor_t* out_tensor) {
  if (out_tensor == nullptr) return BP_INVALID_ARGUMENT;
  if (i >= container->elements.size()) return BP_NOT_FOUND;
  const bp_container_t::Element& element = container->elements[i];
  if (element.child != nullptr) return BP_TYPE_MISMATCH;
  bp_tensor_t own = const_cast<onnx::Tensor&>(element.tensor).as_abi();  // a plugin only reads the tensor
  own.size = std::min<uint32_t>(out_tensor->size, sizeof own);
  std::memcpy(out_tensor, &own, own.size);
  return BP_OK;
}

bp_status_t child(const bp_container_t* container, uint64_t i, bp_container_t** out_container) {
  if (out_container == nullptr) return BP_INVALID_ARGUMENT;
  *out_container = nullptr;
  if (i >= container->elements.size()) return BP_NOT_FOUND;
  *out_container = container->elements[i].child.get();
  return *out_container == nullptr ? BP_TYPE_MISMATCH : BP_OK;
}

bp_status_t key(const bp_container_t* container, uint64_t i, bp_bytes_t* out_key) {
  if (out_key == nullptr) return BP_INVALID_ARGUMENT;
  if (i >= container->elements.size()) return BP_NOT_FOUND;
  const std::string& key = container->elements[i].key;
  *out_key = {key.data(), key.size()};
  return BP_OK;
}

bp_status_t append(bp_container_t* container, bp_bytes_t key, const bp_tensor_t* tensor) {
  if (tensor == nullptr) return BP_INVALID_ARGUMENT;
  try {
    container->elements.push_back({key_of(key), onnx::Tensor::copy(*tensor), nullptr});
  } catch (const onnx::Malformed&) {
    return BP_INVALID_ARGUMENT;
  }
  return BP_OK;
}

bp_status_t append_child(bp_container_t* container, bp_bytes_t key, bp_container_t** out_child) {
  if (out_child == nullptr) return BP_INVALID_ARGUMENT;
  container->elements.push_back({key_of(key), {}, std::make_unique<bp_container_t>()});
  *out_child = container->elements.back().child.get();
  return BP_OK;
}

void clear(bp_container_t* container) {
  container->elements.clear();
}

}  // namespace

const bp_container_api_t* container_api() {
  static constexpr bp_container_api_t kApi = {
      .size = sizeof kApi,
      .count = count,
      .tensor = tensor,
      .child = child,
      .key = key,
      .append = append,
      .append_child = append_child,
      .clear = clear,
  };
  return &kApi;
}

}  // namespace backplane::conform
