// SPDX-License-Identifier: Apache-2.0
// Streams and semaphores of asynchronous devices.
#include <sys/eventfd.h>

#include "backplane/ext/draft/kinds.h"
#include "backplane/sdk/async.hpp"
#include "partial_backend/device.h"

namespace backplane::partial {
namespace {

using sdk::Error;

// The native kind of a semaphore that is exported as a pointer, for the other devices of this backend.
constexpr uint32_t kNativeKind = BP_VENDOR + 1;

struct DeviceStream final : sdk::HostStream {
  explicit DeviceStream(const Device& its_device) : device(its_device) {}
  const Device& device;
};

// Return the stream or semaphore of a handle that the host passes to a slot. Count the call if the device was
// abandoned.
DeviceStream& called(bp_stream_t* handle) {
  auto& stream = *static_cast<DeviceStream*>(sdk::stream_of(handle));
  stream.device.called();
  return stream;
}

// A semaphore. Semaphores of several devices may share one timeline.
class Timeline final : public sdk::NativeSemaphore {
 public:
  Timeline(Device& device, std::shared_ptr<sdk::HostTimeline> shared) : shared(std::move(shared)), device_(device) {}
  bool wait(uint64_t value, uint64_t deadline) override { return shared->wait(value, deadline); }
  bool wait(uint64_t value, uint64_t deadline, const std::atomic<bool>& stop) override {
    return shared->wait(value, deadline, stop);
  }
  bool wakes() const override { return shared->wakes(); }
  void wake() override { shared->wake(); }
  void signal(uint64_t value, const Error* failure) override { shared->signal(value, failure); }
  uint64_t value() override { return shared->value(); }
  std::optional<Error> failure(uint64_t value) override {
    ++device_.counters().marks;
    return shared->failure(value);
  }

  const Device& device() const { return device_; }

  const std::shared_ptr<sdk::HostTimeline> shared;

 private:
  Device& device_;
};

Timeline& called(bp_native_semaphore_t* handle) {
  auto& semaphore = *static_cast<Timeline*>(sdk::semaphore_of(handle));
  semaphore.device().called();
  return semaphore;
}

bp_status_t BP_CALL stream_create(bp_device_t* handle, const bp_stream_create_t* how, bp_stream_t** out,
                                  bp_error_t* error) {
  *out = nullptr;
  return fence(error, [&] {
    of(handle).called();
    of(handle).check();
    if (how->native != nullptr) throw Error(BP_UNSUPPORTED, "a partial device cannot wrap native streams");
    *out = reinterpret_cast<bp_stream_t*>(static_cast<sdk::Stream*>(new DeviceStream(of(handle))));
  });
}

void BP_CALL stream_destroy(bp_stream_t* handle) {
  if (handle != nullptr) delete &called(handle);
}

bp_status_t BP_CALL stream_wait(bp_stream_t* handle, uint64_t deadline, bp_error_t* error) {
  return fence(error, [&] { called(handle).wait(deadline); });
}

bp_status_t BP_CALL semaphore_create(bp_device_t* handle, const bp_semaphore_create_t* how, bp_native_semaphore_t** out,
                                     bp_error_t* error) {
  *out = nullptr;
  return fence(error, [&] {
    Device& device = of(handle);
    device.called();
    const bp_native_t* const native = how->native;
    if (!device.script().marks)
      throw Error(BP_UNSUPPORTED, "this partial device has no semaphores: partial.marks is not 1");
    if (native != nullptr && native->kind != kNativeKind)
      throw Error(BP_UNSUPPORTED, "a partial device imports only semaphores of partial devices");
    auto shared = native == nullptr ? std::make_shared<sdk::HostTimeline>(how->value)
                                    : reinterpret_cast<Timeline*>(static_cast<uintptr_t>(native->handle))->shared;
    *out = reinterpret_cast<bp_native_semaphore_t*>(
        static_cast<sdk::NativeSemaphore*>(new Timeline(device, std::move(shared))));
  });
}

void BP_CALL semaphore_destroy(bp_native_semaphore_t* handle) {
  if (handle != nullptr) delete &called(handle);
}

bp_status_t BP_CALL semaphore_wait(bp_native_semaphore_t* handle, uint64_t value, uint64_t deadline,
                                   bp_error_t* error) {
  return fence(error, [&] {
    if (!called(handle).wait(value, deadline))
      throw Error(BP_TIMED_OUT, "the deadline passed before the semaphore reached " + std::to_string(value));
  });
}

bp_status_t BP_CALL semaphore_signal(bp_native_semaphore_t* handle, uint64_t value, bp_error_t* error) {
  return fence(error, [&] { called(handle).signal(value, nullptr); });
}

bp_status_t BP_CALL semaphore_query(bp_native_semaphore_t* handle, uint64_t* out_value, bp_error_t* error) {
  return fence(error, [&] { *out_value = called(handle).value(); });
}

bp_status_t BP_CALL semaphore_export(bp_native_semaphore_t* handle, const bp_semaphore_export_t* what, bp_native_t* out,
                                     bp_error_t* error) {
  return fence(error, [&] {
    if (what->kind != 0 && what->kind != kNativeKind)
      throw Error(BP_UNSUPPORTED, "a partial device exports semaphores only as its own kind");
    Timeline* const timeline = &called(handle);
    bp_native_t native{};
    native.kind = kNativeKind;
    native.handle = reinterpret_cast<uintptr_t>(timeline);
    if (timeline->device().script().mark_files) {
      const int file = eventfd(0, EFD_CLOEXEC);
      if (file < 0)
        throw Error(BP_RESOURCE_EXHAUSTED, "eventfd failed: there is no descriptor for the exported semaphore");
      native.kind = BP_DRAFT_NATIVE_TIMELINE_FD;
      native.handle = static_cast<uint64_t>(file);
    }
    write(out, native);
  });
}

}  // namespace

const bp_sync_api_t kSyncApi = {
    .size = sizeof(bp_sync_api_t),
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_wait = stream_wait,
    .semaphore_create = semaphore_create,
    .semaphore_destroy = semaphore_destroy,
    .semaphore_wait = semaphore_wait,
    .semaphore_signal = semaphore_signal,
    .semaphore_query = semaphore_query,
    .semaphore_export = semaphore_export,
};

}  // namespace backplane::partial
