// SPDX-License-Identifier: Apache-2.0
#include "isolate/container_wire.h"

#include <algorithm>

#include "base/dtype.h"
#include "base/status_text.h"

namespace backplane::isolate {
namespace {

constexpr uint32_t kMostNestedContainers = 64;

Status corrupt() {
  return {BP_CORRUPT, "the container in a message is damaged"};
}

Status check(bp_status_t code) {
  return code == BP_OK ? Status() : Status(code, "a function of a container returned " + status_text(code));
}

uint64_t bytes_of(const bp_tensor_t& tensor, const char* data) {
  if (tensor.dtype != BP_DTYPE_STRING) return dense_bytes(tensor.dtype, tensor.rank, tensor.extents);
  const uint64_t count = dense_elements(tensor.rank, tensor.extents);
  if (count >= tensor.buffer.bytes / 8) return UINT64_MAX;
  int64_t last;
  std::memcpy(&last, data + count * 8, 8);
  return last < 0 ? UINT64_MAX : (count + 1) * 8 + static_cast<uint64_t>(last);
}

Status write_elements(const bp_container_api_t& api, const bp_container_t* container, uint32_t depth, Writer& out) {
  if (depth > kMostNestedContainers)
    return {BP_UNSUPPORTED, "containers are nested more than " + std::to_string(kMostNestedContainers) + " deep"};
  const uint64_t count = api.count(container);
  out.put(count);
  for (uint64_t i = 0; i < count; ++i) {
    bp_bytes_t key{};
    const bool has_key = api.key && api.key(container, i, &key) == BP_OK && key.data;
    out.put<uint8_t>(has_key).blob(key.data, has_key ? key.size : 0);
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    if (api.tensor(container, i, &tensor) != BP_OK) {
      bp_container_t* child = nullptr;
      BP_TRY(check(api.child(container, i, &child)));
      out.put<uint8_t>(1);
      BP_TRY(write_elements(api, child, depth + 1, out));
      continue;
    }
    const char* data = static_cast<const char*>(tensor.buffer.address);
    if (data) data += tensor.buffer.offset;
    const uint64_t bytes = bytes_of(tensor, data);
    if (tensor.layout != BP_LAYOUT_DENSE)
      return {BP_UNSUPPORTED, "element " + std::to_string(i) + " of a container is not a dense tensor"};
    if (bytes > tensor.buffer.bytes)
      return {BP_UNSUPPORTED, "element " + std::to_string(i) + " of a container exceeds the " +
                                  std::to_string(tensor.buffer.bytes) + " bytes of its buffer"};
    out.put<uint8_t>(0).put(tensor.dtype).array(tensor.extents, tensor.rank).blob(data, bytes);
  }
  return {};
}

Status read_elements(const bp_container_api_t& api, bp_container_t* container, uint32_t depth, Reader& in) {
  if (depth > kMostNestedContainers) return corrupt();
  const uint64_t count = in.count(10);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const bool has_key = in.get<uint8_t>();
    const std::string_view key_text = in.text();
    const bp_bytes_t key{has_key ? key_text.data() : nullptr, has_key ? key_text.size() : 0};
    if (in.get<uint8_t>()) {
      bp_container_t* child = nullptr;
      if (!in.ok()) return corrupt();
      BP_TRY(check(api.append_child(container, key, &child)));
      BP_TRY(read_elements(api, child, depth + 1, in));
      continue;
    }
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = in.get<bp_dtype_t>();
    const std::vector<int64_t> extents = in.array<int64_t>();
    const std::string_view data = in.text();
    if (!in.ok() || extents.size() > BP_MAX_RANK) return corrupt();
    tensor.rank = static_cast<uint32_t>(extents.size());
    tensor.extents = extents.data();
    std::vector<uint64_t> aligned((data.size() + 7) / 8);
    if (!data.empty()) std::memcpy(aligned.data(), data.data(), data.size());
    tensor.buffer.address = aligned.data();
    tensor.buffer.bytes = data.size();
    if (bytes_of(tensor, reinterpret_cast<const char*>(aligned.data())) > data.size()) return corrupt();
    BP_TRY(check(api.append(container, key, &tensor)));
  }
  return in.ok() ? Status() : corrupt();
}

}  // namespace

Status write_container(const bp_container_api_t& api, const bp_container_t* container, Writer& out) {
  return write_elements(api, container, 0, out);
}

Status read_container(const bp_container_api_t& api, bp_container_t* container, Reader& in) {
  api.clear(container);
  return read_elements(api, container, 0, in);
}

}  // namespace backplane::isolate
