// SPDX-License-Identifier: Apache-2.0
// All backends that were found, and their devices. Implements bp_env_t.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/loader.h"
#include "base/budget.h"
#include "base/known_opsets.h"
#include "base/status.h"
#include "host/host.h"

namespace backplane {

struct PluginTables;
namespace isolate {
class Library;
}

// A plugin that was loaded, negotiated with and created; this may happen on first use, if it is known from an earlier
// process. It is never unloaded.
struct Backend {
  Backend();
  ~Backend();  // destroys what was created
  Backend(const Backend&) = delete;

  // Must be called before `plugin` or `handle` is used, unless one of its devices was opened. Thread-safe.
  Status ensure_loaded();

  std::shared_ptr<isolate::Library>
      isolated;  // set if it runs in a process of its own: the functions in `tables` are those of this object
  std::unique_ptr<PluginTables>
      tables;                 // a zero-filled copy of the descriptor and its tables, of the size that this loader knows
  const bp_plugin_t* plugin;  // in `tables`
  bp_backend_t* handle = nullptr;
  std::atomic<bool> given_up{false};  // one of its devices was given up: the backend is not destroyed
  std::string id;
  std::string library;         // path
  std::shared_ptr<Host> host;  // the host that it was created with

  std::function<Status()> load;  // loads the plugin; empty afterwards
  std::mutex load_mutex;
};

// A device of a backend. Opened on first use, closed with the environment.
class Device {
 public:
  // `info` is the plugin's, `index` counts all devices of the environment from 1. Texts are copied.
  Device(Backend& backend, uint32_t index, std::string name, const bp_device_info_t& info);
  ~Device();
  Device(const Device&) = delete;

  Backend& backend() const { return *backend_; }
  uint32_t index() const { return info_.index; }  // in the environment
  uint32_t plugin_index() const { return plugin_index_; }
  uint64_t id() const { return info_.id; }
  const std::string& name() const { return name_; }  // "cpu", "opencl:1"
  const bp_device_info_t& info() const { return info_; }
  // Whether its `copy` accepts buffers of `other` as a source.
  bool reads_from(const Device& other) const;
  // Thread-safe. After a failure the next call tries again.
  Result<bp_device_t*> open();
  // Opens it with the framework's settings. BP_BAD_STATE if it is open.
  Status open_as(const bp_device_open_t& wanted);
  // The framework's allocator for the device's memory (bp_device_open_t.allocate) or NULL; the device must be open.
  auto framework_allocate() const { return framework_allocate_; }
  void* framework() const { return framework_; }
  // The ONNX versions that the device knows; it must be open.
  const KnownOpsets& newest() const { return newest_; }
  // Abandons the device, on which a run did not end: it is never used again. Does not wait for `open`. Thread-safe.
  void give_up();
  bool given_up() const { return given_up_; }
  Status lost() const;  // why calls fail once it was given up

 private:
  Result<bp_device_t*> open_locked(bp_device_open_t how);
  Status ask_opsets(bp_device_t* opened);
  void abandon(bp_device_t* opened) const;

  Backend* backend_;
  uint32_t plugin_index_;
  std::string name_;
  std::string texts_[5];  // strings that info_ points at
  std::vector<uint32_t> peers_;
  std::vector<std::array<std::string, 2>> property_texts_;
  std::vector<bp_option_t> properties_;
  bp_device_info_t info_;
  std::mutex mutex_;         // one call opens it
  std::mutex handle_mutex_;  // handle_ and given_up_ change; held during no call of the plugin
  bp_device_t* handle_ = nullptr;
  decltype(bp_device_open_t::allocate) framework_allocate_ = nullptr;
  void* framework_ = nullptr;
  KnownOpsets newest_;
  std::atomic<bool> given_up_{false};
};

// A plugin that was considered, and the strings of its bp_candidate_t.
struct Candidate {
  uint32_t refusal = BP_REFUSED_NONE;
  std::string text, id, manifest, library, found_by;
  uint32_t version = 0;
  uint32_t device_count = 0;
  bool isolated = false;  // runs in a process of its own
};

// Where compiled programs are stored; not at all if `folder` is empty.
struct CacheSettings {
  std::filesystem::path folder;
  uint64_t bytes = uint64_t{1} << 30;  // limit for all entries; the least recently used are removed
};

class Environment {
 public:
  // Finds, loads and negotiates with backends. `desc` was already copied by the ABI's rules.
  static Result<std::shared_ptr<Environment>> create(const bp_env_desc_t& desc);
  ~Environment();

  std::span<const Candidate> candidates() const { return candidates_; }
  std::span<const std::unique_ptr<Device>> devices() const { return devices_; }
  // By name ("cpu" is "cpu:0"); BP_NOT_FOUND lists the existing names.
  Result<Device*> find(std::string_view name) const;
  Result<Device*> device(uint32_t index) const;
  Result<Device*> device_of(uint64_t id) const;
  Services& services() const { return *services_; }
  const CacheSettings& cache() const { return cache_; }
  const ImportLimits& import_limits() const { return import_limits_; }

 private:
  struct Maker;  // builds it in environment.cpp
  Environment() = default;
  std::shared_ptr<Services> services_;
  CacheSettings cache_;
  ImportLimits import_limits_;
  std::vector<Candidate> candidates_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace backplane
