// SPDX-License-Identifier: Apache-2.0
// A backend that a plugin created, and its devices.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/loader.h"
#include "base/known_opsets.h"
#include "base/status.h"
#include "discover/process_state.h"
#include "host/host.h"

namespace backplane {

struct PluginTables;
namespace isolate {
class Library;
}

// A plugin and the backend that it created. If an earlier process stored what the backend provides, the plugin may be
// loaded only on first use. A plugin is never unloaded.
struct Backend {
  Backend();
  ~Backend();  // destroys the backend in the plugin, unless `given_up`
  Backend(const Backend&) = delete;

  // Loads the plugin if loading was deferred. Must precede any use of `plugin` or `handle`; opening a device calls it
  // too. Thread-safe. BP_INCOMPATIBLE or BP_STALE if the plugin is refused or its devices have changed (opening.h).
  Status ensure_loaded();

  // Set if the backend runs in its own process; the functions in `tables` then call into that process.
  std::shared_ptr<isolate::Library> isolated;
  // Copies of the plugin's descriptor and tables, in this loader's version of the structs. Fields that the plugin lacks
  // are zero.
  std::unique_ptr<PluginTables> tables;
  const bp_plugin_t* plugin;  // points into `tables`
  bp_backend_t* handle = nullptr;
  // The parts of the process's state that the loader restores after loading the plugin, creating the backend, listing
  // its devices and opening one (process_state.h).
  KeptParts kept_parts = KeptParts::kLimits;
  std::atomic<bool> given_up{false};  // one of its devices was abandoned, so the backend is never destroyed
  std::string id;
  std::string library;         // path
  std::shared_ptr<Host> host;  // the host that was passed to the plugin

  std::function<Status()> load;  // loads the plugin on first use; empty once loaded
  std::mutex load_mutex;
  std::mutex open_mutex;  // held during calls of `open`: a plugin opens one device at a time
};

// A device of a backend. Opened on first use, and closed when the environment is destroyed, unless it was abandoned.
class Device {
 public:
  // `info` is the plugin's description; its texts and arrays are copied. `index` counts all devices of the environment,
  // from 1. `siblings` is the number of the backend's devices in the environment, this one included; their indices are
  // consecutive, in the plugin's order.
  Device(Backend& backend, uint32_t index, std::string name, const bp_device_info_t& info, uint32_t siblings);
  ~Device();
  Device(const Device&) = delete;

  Backend& backend() const { return *backend_; }
  uint32_t index() const { return info_.index; }  // among all devices of the environment
  uint64_t id() const { return info_.id; }
  const std::string& name() const { return name_; }  // "cpu", "opencl:1"
  bool is_named(std::string_view name) const;        // "cpu" is also "cpu:0"
  const bp_device_info_t& info() const { return info_; }
  // Whether this device's `copy` accepts buffers of `other` as the source.
  bool reads_from(const Device& other) const;
  // Opens the device, if it is not open. After a failure the next call tries again. BP_DEVICE_LOST if the device was
  // abandoned. Thread-safe.
  Result<bp_device_t*> open();
  // Opens the device with the framework's settings. BP_BAD_STATE if it is already open.
  Status open_as(const bp_device_open_t& wanted);
  // The framework's allocator for the device's memory (bp_device_open_t.allocate), or NULL. The device must be open.
  auto framework_allocate() const { return framework_allocate_; }
  void* framework() const { return framework_; }
  // The newest ONNX versions that the device supports. The device must be open.
  const KnownOpsets& newest() const { return newest_; }
  // Abandons the device because it hangs; it is never used again. `why` completes "device cpu …" in later errors. Does
  // not wait for an `open` in progress. Thread-safe.
  void give_up(std::string_view why = "did not return from a run") noexcept;
  // Callers check this before each call of a plugin's function with an object of this device.
  bool given_up() const { return given_up_; }
  // The listener is called with `lost()` when the device is abandoned, on the thread that abandons it. If the device
  // was abandoned before, `listen` does nothing. `unlisten` does not wait for a call in progress. Thread-safe.
  using Listener = std::function<void(const Status&)>;
  void listen(const void* key, Listener listener);
  void unlisten(const void* key);
  Status lost() const;  // the error of calls after the device was abandoned

 private:
  Result<bp_device_t*> open_locked(bp_device_open_t how);
  Status query_opsets(bp_device_t* opened);
  void abandon(bp_device_t* opened) const;

  Backend* backend_;
  uint32_t plugin_index_;
  std::string name_;
  std::string texts_[5];         // the strings to which info_ points
  std::vector<uint32_t> peers_;  // index() of each peer
  std::vector<std::array<std::string, 2>> property_texts_;
  std::vector<bp_option_t> properties_;
  bp_device_info_t info_;
  std::mutex mutex_;  // only one thread may open the device
  // Guards changes of handle_, why_, given_up_ and listeners_. Never held during a call into the plugin.
  std::mutex handle_mutex_;
  bp_device_t* handle_ = nullptr;
  decltype(bp_device_open_t::allocate) framework_allocate_ = nullptr;
  void* framework_ = nullptr;
  KnownOpsets newest_;
  std::string why_;  // why the device was abandoned; constant once given_up_ is set
  std::atomic<bool> given_up_{false};
  std::map<const void*, Listener> listeners_;
};

}  // namespace backplane
