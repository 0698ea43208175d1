// SPDX-License-Identifier: Apache-2.0
#include "isolate/message.h"

namespace backplane::isolate {

Writer& Writer::status(const Status& status) {
  put(status.code());
  if (status.ok()) return *this;
  return put(status.node()).put(status.vendor_code()).put(status.flags()).text(status.text());
}

std::string_view Reader::piece(uint64_t bytes) {
  if (!ok_ || bytes > rest_.size()) {
    fail();
    return {};
  }
  const std::string_view piece = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return piece;
}

std::string_view Reader::text() {
  return piece(get<uint64_t>());
}

uint64_t Reader::count(uint64_t each) {
  const auto count = get<uint64_t>();
  if (count > rest_.size() / each) {
    fail();
    return 0;
  }
  return count;
}

Status Reader::status() {
  const auto code = get<bp_status_t>();
  if (!ok_ || code == BP_OK) return {};
  const auto node = get<uint64_t>();
  const auto vendor_code = get<int64_t>();
  const auto flags = get<uint32_t>();
  return Status(code, std::string(text())).with_node(node).with_vendor_code(vendor_code).with_flags(flags);
}

DeviceNumbers DeviceNumbers::of(const bp_device_info_t& info) {
  DeviceNumbers numbers{};
  numbers.kind = info.kind;
  numbers.flags = info.flags;
  std::memcpy(numbers.uuid, info.uuid, sizeof numbers.uuid);
  numbers.memory_bytes = info.memory_bytes;
  numbers.memory_bandwidth = info.memory_bandwidth;
  numbers.link_bandwidth = info.link_bandwidth;
  numbers.launch_ns = info.launch_ns;
  numbers.flops_fp32 = info.flops_fp32;
  numbers.flops_fp16 = info.flops_fp16;
  numbers.ops_int8 = info.ops_int8;
  numbers.dtypes = info.dtypes;
  return numbers;
}

void DeviceNumbers::to(bp_device_info_t& info) const {
  info.kind = kind;
  info.flags = flags;
  std::memcpy(info.uuid, uuid, sizeof uuid);
  info.memory_bytes = memory_bytes;
  info.memory_bandwidth = memory_bandwidth;
  info.link_bandwidth = link_bandwidth;
  info.launch_ns = launch_ns;
  info.flops_fp32 = flops_fp32;
  info.flops_fp16 = flops_fp16;
  info.ops_int8 = ops_int8;
  info.dtypes = dtypes;
}

}  // namespace backplane::isolate
