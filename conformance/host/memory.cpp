// SPDX-License-Identifier: Apache-2.0
#include "host/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace backplane::conform {
namespace {

constexpr uint64_t kCanary = 256;  // bytes on each side of a tensor
constexpr std::byte kCanaryByte{0xC5};
// 1.3e36 as fp32, 2.1e9 as int32, invalid as a bool: values that hardly any case computes.
constexpr std::byte kPoisonByte{0x7B};

bool in_host_memory(const Device& device) {
  const bp_memory_api_t* memory = device.plugin().memory;
  if (memory == nullptr || memory->space == nullptr) return true;
  bp_space_t space = {.size = sizeof space};
  Detail detail;
  return memory->space(device.raw(), 0, &space, detail.error()) == BP_OK && (space.flags & BP_SPACE_HOST) != 0;
}

}  // namespace

Memory::Memory(const Device& device, bp_dtype_t dtype, std::vector<int64_t> extents, uint64_t misalignment)
    : device_(device), dtype_(dtype), extents_(std::move(extents)), bytes_(onnx::dense_bytes(dtype, extents_)) {
  if (!in_host_memory(device)) {
    Detail detail;
    const bp_allocate_t what = {.size = sizeof what, .bytes = std::max<uint64_t>(bytes_, 1)};
    const bp_status_t status = device.plugin().memory->allocate(device.raw(), &what, &buffer_, detail.error());
    if (status != BP_OK)
      throw Breach(fmt::format("allocate of {} bytes returns {}: {}", bytes_, status_name(status), detail.text()));
    buffer_.bytes = what.bytes;
    return;
  }
  const uint64_t whole = kCanary + misalignment + bytes_ + kCanary;
  block_ = static_cast<std::byte*>(std::aligned_alloc(64, (whole + 63) / 64 * 64));
  if (block_ == nullptr) throw std::bad_alloc();
  std::fill_n(block_, whole, kCanaryByte);
  data_ = block_ + kCanary + misalignment;
  buffer_ = {.address = data_, .offset = 0, .bytes = bytes_};
}

Memory::Memory(const Device& device, const onnx::Tensor& content) : Memory(device, content.dtype, content.extents) {
  write(content);
}

Memory::~Memory() {
  if (data_ == nullptr) {
    const bp_release_t what = {.size = sizeof what, .buffer = &buffer_};
    device_.plugin().memory->release(device_.raw(), &what);
  }
  std::free(block_);
}

bp_tensor_t Memory::tensor() const {
  return {.size = sizeof(bp_tensor_t),
          .dtype = dtype_,
          .rank = static_cast<uint32_t>(extents_.size()),
          .layout = BP_LAYOUT_DENSE,
          .extents = extents_.data(),
          .strides = nullptr,
          .buffer = buffer_};
}

void Memory::poison() {
  std::vector<std::byte> bytes(bytes_, kPoisonByte);
  move(bytes.data(), true);
}

void Memory::write(const onnx::Tensor& content) {
  move(const_cast<std::byte*>(content.bytes.data()), true);
}

onnx::Tensor Memory::read() const {
  onnx::Tensor tensor{dtype_, extents_, std::vector<std::byte>(bytes_)};
  move(tensor.bytes.data(), false);
  return tensor;
}

void Memory::move(void* host, bool to_device) const {
  if (bytes_ == 0) return;
  if (data_ != nullptr) {
    std::memcpy(to_device ? data_ : host, to_device ? host : data_, bytes_);
    return;
  }
  const bp_buffer_t ours = {.address = host, .bytes = bytes_};
  Detail detail;
  const bp_copy_t what = {
      .size = sizeof what, .from = to_device ? &ours : &buffer_, .to = to_device ? &buffer_ : &ours, .bytes = bytes_};
  const bp_status_t status = device_.plugin().memory->copy(device_.raw(), &what, detail.error());
  if (status != BP_OK)
    throw Breach(fmt::format("copy of {} bytes returns {}: {}", bytes_, status_name(status), detail.text()));
}

std::string Memory::breach() const {
  if (data_ == nullptr) return "";
  for (uint64_t i = 1; i <= static_cast<uint64_t>(data_ - block_); ++i) {
    if (*(data_ - i) != kCanaryByte)
      return fmt::format("wrote outside a tensor's memory, {} bytes before its start", i);
  }
  for (uint64_t i = 0; i < kCanary; ++i) {
    if (data_[bytes_ + i] != kCanaryByte)
      return fmt::format("wrote outside a tensor's memory, {} bytes past the end of its {} bytes", i + 1, bytes_);
  }
  return "";
}

}  // namespace backplane::conform
