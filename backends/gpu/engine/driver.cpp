// SPDX-License-Identifier: Apache-2.0
#include "engine/driver.h"

namespace backplane::gpu {

CommandQueue::Mapped CommandQueue::map(const Span&, uint64_t, uint32_t, bool, std::string_view what) {
  throw sdk::Error(BP_UNSUPPORTED, std::string(what) + ": the host cannot access this device's memory; copy it");
}

void CommandQueue::replay(const DeviceCapture&, std::string_view what) {
  throw sdk::Error(BP_UNSUPPORTED, std::string(what) + ": this driver cannot replay captured commands");
}

Event CommandQueue::unmap(const DeviceMemory&, void*, std::string_view what) {
  throw sdk::Error(BP_UNSUPPORTED, std::string(what) + ": the host cannot access this device's memory");
}

void CommandQueue::finish_noexcept() noexcept {
  static_cast<void>(sdk::caught([this] { finish("waiting for a queue"); }));
}

Buffer Driver::import_host(void*, uint64_t bytes) const {
  throw sdk::Error(BP_UNSUPPORTED, std::to_string(bytes) + " bytes of host memory: the device cannot access them");
}

std::shared_ptr<const void> Driver::pin(void*, uint64_t) const {
  return nullptr;
}

Capture Driver::capture(const std::function<void(CommandQueue&)>&) const {
  throw sdk::Error(BP_UNSUPPORTED, "this driver cannot capture commands");
}

}  // namespace backplane::gpu
