// SPDX-License-Identifier: Apache-2.0
// The discovered backends with their devices and memory. Opens and compiles models.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backplane/client/session.hpp"

namespace backplane {
inline namespace client {

// Memory of a device. Released with the last copy of this object.
class Buffer {
 public:
  const bp_buffer_t& abi() const { return *buffer_; }
  // Returns a tensor that starts at the beginning of the buffer and borrows `extents`.
  bp_tensor_t tensor(bp_dtype_t dtype, const std::vector<int64_t>& extents) const {
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = dtype;
    tensor.rank = static_cast<uint32_t>(extents.size());
    tensor.extents = extents.data();
    tensor.buffer = *buffer_;
    return tensor;
  }
  // Returns a host pointer to the buffer, valid until `unmap`. `access` is BP_MAP_READ, BP_MAP_WRITE or both.
  void* map(uint32_t access) const {
    const bp_map_t what{sizeof what, access, buffer_.get()};
    void* pointer = nullptr;
    detail::call(api().memory_map, env_, &what, &pointer);
    return pointer;
  }
  void unmap(void* pointer, uint32_t access) const {
    const bp_map_t what{sizeof what, access, buffer_.get()};
    detail::call(api().memory_unmap, env_, &what, pointer);
  }
  // Fills the whole buffer with a value of 1, 2, 4 or 8 bytes.
  template <class T>
  void fill(const T& value) const {
    bp_fill_t what{sizeof what, sizeof value, 0, buffer_.get(), nullptr};
    std::memcpy(&what.pattern, &value, sizeof value);
    detail::call(api().memory_fill, env_, static_cast<const bp_fill_t*>(&what));
  }

 private:
  friend class Environment;
  Buffer(std::shared_ptr<bp_env_t> env, const bp_buffer_t& buffer)
      : env_(env.get()), buffer_(new bp_buffer_t(buffer), [env = std::move(env)](bp_buffer_t* b) {
          const bp_release_t what{sizeof what, 0, b, nullptr};
          api().memory_release(env.get(), &what);
          delete b;
        }) {}
  bp_env_t* env_;
  std::shared_ptr<bp_buffer_t> buffer_;
};

struct EnvironmentOptions {
  std::vector<std::string> backend_files;    // libraries or manifests
  std::vector<std::string> backend_folders;  // folders of manifests
  bool only_given = false;                   // search only backend_files, backend_folders and `plugins`
  std::map<std::string, std::string> options;
  uint32_t log_level = 0;                  // BP_LOG_*; 0: the level in BACKPLANE_LOG, else warnings
  uint32_t threads = 0;                    // shared by the backends; 0: as in bp_env_desc_t
  std::vector<bp_plugin_query_t> plugins;  // linked into the program
  // Receives log lines, from any thread. Empty: they go to the file in BACKPLANE_LOG_FILE, else to standard error.
  std::function<void(uint32_t level, std::string_view line)> log;
};

// A device, with the name that placement and options use for it.
struct Device {
  uint32_t index;    // from 1, among the devices of all backends
  std::string name;  // "cpu", "opencl:1"
  bp_device_info_t info;
  // Whether `text` in an option names this device: the first device of backend "cpu" is both "cpu" and "cpu:0".
  bool is_named(std::string_view text) const {
    return text == name || (name.find(':') == std::string::npos && text == name + ":0");
  }
};

// The discovered backends, and settings.
class Environment {
 public:
  explicit Environment(const EnvironmentOptions& options = {}) {
    const auto files = detail::texts(options.backend_files);
    const auto folders = detail::texts(options.backend_folders);
    const auto settings = detail::options(options.options);
    using Log = std::function<void(uint32_t, std::string_view)>;
    auto log = std::make_shared<Log>(options.log);
    bp_env_desc_t desc{};
    desc.size = sizeof desc;
    desc.flags = options.only_given ? BP_ENV_ONLY_GIVEN : 0;
    desc.backend_files = files.data();
    desc.backend_file_count = static_cast<uint32_t>(files.size());
    desc.backend_folders = folders.data();
    desc.backend_folder_count = static_cast<uint32_t>(folders.size());
    desc.options = settings.data();
    desc.option_count = static_cast<uint32_t>(settings.size());
    desc.option_stride = sizeof(bp_option_t);
    desc.log_level = options.log_level;
    desc.threads = options.threads;
    desc.plugins = options.plugins.data();
    desc.plugin_count = static_cast<uint32_t>(options.plugins.size());
    if (*log) {
      desc.self = log.get();
      desc.log = [](void* self, uint32_t level, bp_text_t text) {
        try {
          (*static_cast<Log*>(self))(level, view::text(text));
        } catch (...) {  // no exception may cross the ABI
        }
      };
    }
    bp_env_t* env = nullptr;
    detail::call(api().env_create, static_cast<const bp_env_desc_t*>(&desc), &env);
    env_ = std::shared_ptr<bp_env_t>(env, [log](bp_env_t* e) { api().env_destroy(e); });
  }

  std::vector<Device> devices() const {
    std::vector<Device> result;
    for (uint32_t i = 1; i <= api().env_device_count(get()); ++i) {
      Device device{i, {}, {}};
      device.info.size = sizeof device.info;
      bp_text_t name{};
      detail::call(api().env_device, static_cast<const bp_env_t*>(get()), i, &device.info, &name);
      device.name = view::text(name);
      result.push_back(std::move(device));
    }
    return result;
  }
  // The device with this bp_device_info_t.id. Throws BP_NOT_FOUND if there is none.
  Device device(uint64_t id) const {
    for (Device& device : devices()) {
      if (device.info.id == id) return std::move(device);
    }
    throw Error(BP_NOT_FOUND, "Environment::devices() has no device with the id " + std::to_string(id));
  }
  // Every file that discovery considered and every plugin linked into the program, with the reason if it was refused.
  // Texts live as long as the environment.
  std::vector<bp_candidate_t> candidates() const {
    std::vector<bp_candidate_t> result(api().env_candidate_count(get()));
    for (uint32_t i = 0; i < result.size(); ++i) {
      result[i].size = sizeof result[i];
      detail::call(api().env_candidate, static_cast<const bp_env_t*>(get()), i, &result[i]);
    }
    return result;
  }
  // Opens a device in the framework's own native context. Call it before any other use of the device: throws
  // BP_BAD_STATE if the device is open.
  void open_device(uint64_t device, const bp_native_t& native) const {
    bp_device_open_t how{};
    how.size = sizeof how;
    how.native = &native;
    detail::call(api().env_open_device, get(), device, static_cast<const bp_device_open_t*>(&how));
  }
  // Abandons a device that hangs: runs on it fail, and waits for them and for its streams end. A call that is inside a
  // function of the plugin, such as compiling or allocating, still returns only when that function does.
  void abandon_device(uint64_t device) const { detail::call(api().env_abandon_device, get(), device); }
  // The plugin's own handle of a device, for the extension functions of its backend.
  bp_device_t* plugin_device(uint64_t device) const {
    bp_device_t* handle = nullptr;
    detail::call(api().env_plugin_device, get(), device, &handle);
    return handle;
  }
  Stream stream(uint64_t device, const bp_native_t* native = nullptr) const { return Stream(get(), device, native); }
  // Allocates memory of a device (bp_device_info_t.id) in one of its memory spaces.
  Buffer allocate(uint64_t device, uint64_t bytes, uint32_t space = 0) const {
    const bp_allocate_t what{sizeof what, space, bytes, nullptr, nullptr};
    bp_buffer_t buffer{};
    detail::call(api().memory_allocate, get(), device, &what, &buffer);
    return Buffer(env_, buffer);
  }
  // Imports memory that another library owns. If this succeeds, the memory must stay allocated until external.release
  // is called or, if that is NULL, until the buffer is released and the device no longer uses it. Imports of some
  // kinds take ownership of the handle: see ext/draft/kinds.h.
  Buffer import_memory(uint64_t device, const bp_external_t& external, uint32_t space = 0) const {
    const bp_import_t what{sizeof what, space, &external};
    bp_buffer_t buffer{};
    detail::call(api().memory_import, get(), device, &what, &buffer);
    return Buffer(env_, buffer);
  }
  // Returns a handle of kind `kind` (BP_EXTERNAL_*). The caller owns a file descriptor; other handles are valid only
  // while the buffer lives.
  bp_external_t export_memory(const Buffer& buffer, uint32_t kind) const {
    const bp_export_t what{sizeof what, kind, &buffer.abi()};
    bp_external_t external{};
    external.size = sizeof external;
    detail::call(api().memory_export, get(), &what, &external);
    return external;
  }
  // Copies `bytes` bytes and blocks until the copy is done. For host memory, set only `address` and `bytes` of
  // bp_buffer_t.
  void copy(const bp_buffer_t& from, const bp_buffer_t& to, uint64_t bytes) const {
    const bp_copy_t what{sizeof what, 0, &from, &to, bytes, nullptr};
    detail::call(api().memory_copy, get(), &what);
  }
  // The JSON output of `backplane list --json`.
  std::string report() const { return detail::collect(api().env_report, get()); }

  Model open(std::string_view path) const {
    bp_model_source_t source{};
    source.path = view::text(path);
    return open_source(source, nullptr);
  }
  // The model keeps `bytes`. `directory` is the folder of its external data.
  Model parse(std::string bytes, std::string_view directory = {}) const {
    const auto keep = std::make_shared<const std::string>(std::move(bytes));
    bp_model_source_t source{};
    source.bytes = bp_bytes_t{keep->data(), keep->size()};
    source.directory = view::text(directory);
    return open_source(source, keep);
  }

  Session compile(const Model& model, const SessionOptions& options = {}) const {
    const auto devices = detail::texts(options.devices);
    const auto settings = detail::options(options.options);
    std::vector<bp_pin_t> pins;
    for (const auto& [pattern, device] : options.pins) pins.push_back({view::text(pattern), view::text(device)});
    bp_session_desc_t desc{};
    desc.size = sizeof desc;
    desc.compute_types = options.compute_types;
    desc.fallback = options.fallback;
    std::vector<bp_symbol_t> symbols;
    for (const auto& [name, range] : options.symbols) symbols.push_back({view::text(name), range.first, range.second});
    desc.symbols = symbols.data();
    desc.symbol_count = static_cast<uint32_t>(symbols.size());
    desc.symbol_stride = sizeof(bp_symbol_t);
    desc.devices = devices.data();
    desc.device_count = static_cast<uint32_t>(devices.size());
    desc.pins = pins.data();
    desc.pin_count = static_cast<uint32_t>(pins.size());
    desc.pin_stride = sizeof(bp_pin_t);
    desc.options = settings.data();
    desc.option_count = static_cast<uint32_t>(settings.size());
    desc.option_stride = sizeof(bp_option_t);
    desc.max_islands = options.max_islands;
    desc.flags = options.flags;
    desc.cancel = options.cancel == nullptr ? nullptr : options.cancel->get();
    bp_session_t* session = nullptr;
    detail::call(api().session_create, get(), model.get(), static_cast<const bp_session_desc_t*>(&desc), &session);
    return Session(env_, model, session);
  }

  // Starts collecting spans of all sessions, and drops those collected before. stop_trace returns them as
  // Chrome/Perfetto JSON.
  void start_trace() const { detail::call(api().trace_start, get()); }
  std::string stop_trace() const { return detail::collect(api().trace_stop, get()); }

  bp_env_t* get() const { return env_.get(); }

 private:
  Model open_source(bp_model_source_t source, std::shared_ptr<const void> keep) const {
    source.size = sizeof source;
    source.descriptor = -1;
    bp_model_t* model = nullptr;
    detail::call(api().model_open, get(), static_cast<const bp_model_source_t*>(&source), &model);
    return Model(model, std::move(keep));
  }

  std::shared_ptr<bp_env_t> env_;
};

}  // namespace client
}  // namespace backplane
