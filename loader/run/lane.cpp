// SPDX-License-Identifier: Apache-2.0
#include "run/lane.h"

#include <unistd.h>

#include <algorithm>

#include "backplane/ext/draft/kinds.h"
#include "base/clock.h"
#include "host/cancel.h"
#include "run/device_status.h"

namespace backplane {
namespace {

const bp_sync_api_t& sync_of(const Device& device) {
  return *device.backend().plugin->sync;
}

}  // namespace

StreamEnd wait_for_work(const Device& device, bp_stream_t* stream, uint64_t deadline, const bp_cancel_t* cancel) {
  constexpr int kMostTries = 16;
  Status unknown;  // a wait's BP_RESOURCE_EXHAUSTED, perhaps in place of a failure of the work
  for (int tries = 0;;) {
    if (device.given_up()) return {false, device.lost(), 0};
    if (cancelled(cancel)) return {false, {BP_CANCELLED, "the run was cancelled while it waited for a stream"}, 0};
    const uint64_t until = std::min(deadline, monotonic_now() + (cancel ? kCancelSliceNs : kWaitSliceNs));
    PluginError error;
    const bp_status_t code = sync_of(device).stream_wait(stream, until, error.get());
    // Work in the stream may have failed with BP_TIMED_OUT too.
    const bool of_work = error.get()->flags & BP_ERROR_OF_RUN;
    const bool over = code == BP_TIMED_OUT && !of_work;
    if (over) unknown = {};  // the work has not ended, so the previous wait hid no failure of it
    if (over && until < deadline) continue;
    // Without memory for its own error, a plugin's wait may end before the work. A wait that keeps failing is not
    // repeated forever.
    if (code == BP_RESOURCE_EXHAUSTED && !of_work && tries++ < kMostTries) {
      unknown = device_status(device, error, code);
      continue;
    }
    if (code == BP_OK && !unknown.ok()) return {true, std::move(unknown), 0};
    return {!over, device_status(device, error, code), error.get()->run};
  }
}

bool Lane::possible(const Device& device) {
  const bp_sync_api_t* api = device.backend().plugin->sync;
  return !(device.info().flags & BP_DEVICE_SYNCHRONOUS) && api && api->stream_create && api->stream_destroy &&
         api->stream_wait;
}

Result<Lane> Lane::make(Device& device) {
  Lane lane(device);
  BP_ASSIGN(bp_device_t * handle, device.open());
  PluginError error;
  bp_stream_create_t how{};
  how.size = sizeof how;
  BP_TRY(device_status(device, error,
                       device.backend().plugin->sync->stream_create(handle, &how, &lane.stream_, error.get())));
  if (!lane.stream_) return Status(BP_INTERNAL, "device '" + device.name() + "': stream_create returned no stream");
  return lane;
}

Lane::~Lane() {
  if (!stream_) return;
  device_->given_up() ? keep_handle(stream_) : sync_of(*device_).stream_destroy(stream_);
}

Result<Lane> SpareLanes::take(Device& device) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(lanes_, [&](const Lane& lane) { return &lane.device() == &device; });
    if (found != lanes_.end()) {
      Lane lane = std::move(*found);
      lanes_.erase(found);
      return lane;
    }
  }
  return Lane::make(device);
}

void SpareLanes::give(Lane lane) {
  const std::lock_guard lock(mutex_);
  lanes_.push_back(std::move(lane));
}

namespace {

void close_descriptor(const bp_native_t& native) {
  if (native.kind == BP_DRAFT_NATIVE_SYNC_FD || native.kind == BP_DRAFT_NATIVE_TIMELINE_FD)
    ::close(static_cast<int>(native.handle));
}

}  // namespace

Mark::~Mark() {
  // A device that was abandoned may still wait for a semaphore of another device, or signal one.
  const bool is_used =
      device_->given_up() || std::ranges::any_of(copies_, [](const Copy& copy) { return copy.device->given_up(); });
  for (const Copy& copy : copies_)
    is_used ? keep_handle(copy.semaphore) : sync_of(*copy.device).semaphore_destroy(copy.semaphore);
  if (own_) is_used ? keep_handle(own_) : sync_of(*device_).semaphore_destroy(own_);
}

void Mark::share(std::unique_ptr<Mark>& mark, const Lane& from, const Lane& to, uint32_t number) {
  const bp_sync_api_t *api = from.device().backend().plugin->sync, *other = to.device().backend().plugin->sync;
  if (mark && mark->of(number)) return;
  if (!api->semaphore_create || !api->semaphore_export || !other->semaphore_create) return;
  Result<bp_device_t*> maker = from.device().open(), taker = to.device().open();  // fails if the device was abandoned
  if (!maker.ok() || !taker.ok()) return;
  auto made = mark ? std::move(mark) : std::make_unique<Mark>(from);
  PluginError error;
  bp_semaphore_create_t how{};
  how.size = sizeof how;
  if (!made->own_ && api->semaphore_create(*maker, &how, &made->own_, error.get()) != BP_OK) return;
  bp_native_t native{};
  native.size = sizeof native;
  bp_native_semaphore_t* copy = nullptr;
  how.native = &native;
  bp_semaphore_export_t every_value{};
  every_value.size = sizeof every_value;
  if (api->semaphore_export(made->own_, &every_value, &native, error.get()) == BP_OK) {
    if (other->semaphore_create(*taker, &how, &copy, error.get()) != BP_OK)
      close_descriptor(native);  // a failed import does not take ownership of the descriptor
    else if (copy)
      made->copies_.push_back({number, &to.device(), copy});
  }
  if (!made->copies_.empty()) mark = std::move(made);
}

bp_native_semaphore_t* Mark::of(uint32_t lane) const {
  const auto found = std::ranges::find(copies_, lane, &Copy::lane);
  return found != copies_.end() ? found->semaphore : nullptr;
}

}  // namespace backplane
