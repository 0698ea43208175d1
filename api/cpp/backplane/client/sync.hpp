// SPDX-License-Identifier: Apache-2.0
// Cancel tokens, semaphores and streams.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backplane/client/call.hpp"

namespace backplane {
inline namespace client {

// A token that cancels runs and waits. Once set, it stays set.
class Cancel {
 public:
  Cancel() {
    bp_cancel_t* token = nullptr;
    detail::call(api().cancel_create, &token);
    token_ = std::shared_ptr<bp_cancel_t>(token, api().cancel_destroy);
  }
  void set() const { api().cancel_set(token_.get()); }
  bp_cancel_t* get() const { return token_.get(); }

 private:
  std::shared_ptr<bp_cancel_t> token_;
};

// A timeline semaphore of the host.
class Semaphore {
 public:
  explicit Semaphore(uint64_t value = 0) {
    bp_semaphore_t* semaphore = nullptr;
    detail::call(api().semaphore_create, value, &semaphore);
    semaphore_ = std::shared_ptr<bp_semaphore_t>(semaphore, api().semaphore_destroy);
  }
  void signal(uint64_t value) const {
    detail::call(api().semaphore_signal, semaphore_.get(), value, static_cast<const bp_error_t*>(nullptr));
  }
  // Advances to `value` with a failure. Waiting for a value reached by this call throws BP_DEPENDENCY_FAILED with
  // `text`.
  void fail(uint64_t value, bp_status_t status, std::string text) const {
    bp_error_t failure{};
    failure.size = sizeof failure;
    failure.status = status;
    failure.node = BP_NO_NODE;
    failure.text = text.data();
    failure.text_size = failure.text_capacity = text.size();
    detail::call(api().semaphore_signal, semaphore_.get(), value, static_cast<const bp_error_t*>(&failure));
  }
  // Sets the semaphore to any value and clears its failures. No thread may be waiting for it, and no run that was
  // already started may signal it later.
  void reset(uint64_t value) const { detail::call(api().semaphore_reset, semaphore_.get(), value); }
  // Waits until the semaphore reaches `value`. `deadline` is in ns on the monotonic clock.
  void wait(uint64_t value, uint64_t deadline = BP_FOREVER) const {
    detail::call(api().semaphore_wait, semaphore_.get(), value, deadline, static_cast<const bp_cancel_t*>(nullptr));
  }
  uint64_t value() const {
    uint64_t value = 0;
    detail::call(api().semaphore_query, semaphore_.get(), &value);
    return value;
  }
  bp_point_t at(uint64_t value) const { return bp_host_point(semaphore_.get(), value); }
  bp_semaphore_t* get() const { return semaphore_.get(); }

 private:
  std::shared_ptr<bp_semaphore_t> semaphore_;
};

// A device's queue of work: a new one, or the framework's own (`native`). It keeps the environment alive.
class Stream {
 public:
  Stream(bp_env_t* env, uint64_t device, const bp_native_t* native = nullptr, int32_t priority = BP_PRIORITY_NORMAL) {
    const bp_stream_create_t how{sizeof how, priority, native, nullptr};
    bp_stream_t* stream = nullptr;
    detail::call(api().stream_create, env, device, &how, &stream);
    stream_ = std::shared_ptr<bp_stream_t>(stream, api().stream_destroy);
  }
  // Waits until all work has ended. Throws failures of runs without `done`. `deadline` is in ns on the monotonic clock.
  void wait(uint64_t deadline = BP_FOREVER) const { detail::call(api().stream_wait, get(), deadline); }
  bp_native_t native() const {
    bp_native_t native{};
    native.size = sizeof native;
    detail::call(api().stream_export, get(), &native);
    return native;
  }
  // The plugin's own handle, for the extension functions of its backend.
  bp_stream_t* plugin_stream() const {
    bp_stream_t* stream = nullptr;
    detail::call(api().stream_plugin_stream, get(), &stream);
    return stream;
  }
  bp_stream_t* get() const { return stream_.get(); }

 private:
  std::shared_ptr<bp_stream_t> stream_;
};

// A timeline semaphore of the device, for points in its streams. It keeps the environment alive.
class NativeSemaphore {
 public:
  NativeSemaphore(bp_env_t* env, uint64_t device, uint64_t initial = 0) : device_(device) {
    const bp_semaphore_create_t how{sizeof how, 0, initial, nullptr, nullptr};
    bp_native_semaphore_t* semaphore = nullptr;
    detail::call(api().native_semaphore_create, env, device, &how, &semaphore);
    semaphore_ = std::shared_ptr<bp_native_semaphore_t>(semaphore, api().native_semaphore_destroy);
  }
  // Blocks until the semaphore reaches `value`. `deadline` is in ns on the monotonic clock.
  void wait(uint64_t value, uint64_t deadline = BP_FOREVER) const {
    detail::call(api().native_semaphore_wait, get(), value, deadline);
  }
  void signal(uint64_t value) const { detail::call(api().native_semaphore_signal, get(), value); }
  uint64_t value() const {
    uint64_t value = 0;
    detail::call(api().native_semaphore_query, get(), &value);
    return value;
  }
  // Exports a handle for another device or framework. `kind` is BP_NATIVE_*; 0: the plugin chooses. `value` is used by
  // kinds that represent a single value.
  bp_native_t native(uint32_t kind = 0, uint64_t value = 0) const {
    const bp_semaphore_export_t what{sizeof what, kind, value, nullptr};
    bp_native_t native{};
    native.size = sizeof native;
    detail::call(api().native_semaphore_export, get(), &what, &native);
    return native;
  }
  bp_point_t at(uint64_t value) const { return bp_native_point(get(), device_, value); }
  // The plugin's own handle, as in Stream::plugin_stream.
  bp_native_semaphore_t* plugin_semaphore() const {
    bp_native_semaphore_t* semaphore = nullptr;
    detail::call(api().native_semaphore_plugin_semaphore, get(), &semaphore);
    return semaphore;
  }
  bp_native_semaphore_t* get() const { return semaphore_.get(); }

 private:
  uint64_t device_;
  std::shared_ptr<bp_native_semaphore_t> semaphore_;
};

}  // namespace client
}  // namespace backplane
