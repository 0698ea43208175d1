// SPDX-License-Identifier: Apache-2.0
// The loader in C++17, header-only. Handles are shared pointers: copy them freely, destruction needs no order. A failed
// call throws backplane::Error.
//
//   auto env = backplane::Environment();
//   auto model = env.open("m.onnx");
//   auto session = env.compile(model);
//   auto exec = session.exec();
//   exec.bind("x", backplane::Tensor::of<float>({1, 2}, {1, 2}));
//   exec.run();
//   backplane::Tensor y = exec.output(0);
//
// The loader is opened with dlopen at the first call (libbackplane.so.1, or BACKPLANE_LOADER_FILE). With
// BACKPLANE_CLIENT_LINKED defined it is linked instead. Whatever this header does not wrap is reached through api() and
// get().
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifndef BACKPLANE_CLIENT_LINKED
#include <dlfcn.h>
#endif

#include "backplane/graph.hpp"
#include "backplane/loader.h"
#include "backplane/tensor.hpp"

#ifndef BACKPLANE_LOADER_FILE
#define BACKPLANE_LOADER_FILE "libbackplane.so.1"
#endif

namespace backplane {
inline namespace client {

// A call that failed: the ABI's code, its one line of text, and the node where one is to blame.
class Error : public std::runtime_error {
 public:
  Error(bp_status_t status, const std::string& text, uint64_t node = BP_NO_NODE, int64_t vendor_code = 0,
        uint32_t flags = 0)
      : std::runtime_error(text), status_(status), node_(node), vendor_code_(vendor_code), flags_(flags) {}

  bp_status_t status() const { return status_; }
  uint32_t status_class() const { return BP_STATUS_CLASS(status_); }  // BP_CLASS_*: what to do next
  std::string text() const { return what(); }
  uint64_t node() const { return node_; }  // bp_node_t.id, or BP_NO_NODE
  int64_t vendor_code() const { return vendor_code_; }
  bool device_lost() const { return (flags_ & BP_ERROR_DEVICE_LOST) != 0; }
  // A device did not come back: what was bound to the exec must stay allocated.
  bool abandoned() const { return (flags_ & BP_ERROR_ABANDONED) != 0; }

 private:
  bp_status_t status_;
  uint64_t node_;
  int64_t vendor_code_;
  uint32_t flags_;
};

namespace detail {

// What the loader offers, in a struct of our size: slots that an older loader lacks are NULL.
inline bp_loader_api_t load_api() {
#ifdef BACKPLANE_CLIENT_LINKED
  const bp_get_api_t get = &bp_get_api;
#else
  void* library = dlopen(BACKPLANE_LOADER_FILE, RTLD_NOW | RTLD_LOCAL);  // stays loaded until the process ends
  if (library == nullptr) {
    const char* why = dlerror();
    throw Error(BP_NOT_FOUND, std::string("the loader " BACKPLANE_LOADER_FILE " cannot be opened: ") +
                                  (why ? why : "?") + "; install Backplane or set LD_LIBRARY_PATH");
  }
  const auto get = reinterpret_cast<bp_get_api_t>(dlsym(library, BP_LOADER_SYMBOL));
  if (get == nullptr)
    throw Error(BP_INCOMPATIBLE, BACKPLANE_LOADER_FILE " has no " BP_LOADER_SYMBOL ": it is no Backplane loader");
#endif
  const bp_loader_api_t* table = get(BP_ABI_VERSION);
  if (table == nullptr) {
    throw Error(BP_INCOMPATIBLE, "the loader does not speak ABI " + std::to_string(BP_VERSION_MAJOR(BP_ABI_VERSION)) +
                                     "." + std::to_string(BP_VERSION_MINOR(BP_ABI_VERSION)) + "; install a newer one");
  }
  bp_loader_api_t copy{};
  std::memcpy(&copy, table, std::min<size_t>(table->size, sizeof copy));
  return copy;
}

}  // namespace detail

// The loader's functions.
inline const bp_loader_api_t& api() {
  static const bp_loader_api_t kTable = detail::load_api();
  return kTable;
}

namespace detail {

// Calls a slot whose last parameter is `bp_error_t*` and writes the error to `error` instead of throwing it.
template <class... Parameters, class... Arguments>
bp_status_t try_call(bp_error_t& error, bp_status_t(BP_CALL* slot)(Parameters...), Arguments... arguments) {
  if (slot == nullptr) return BP_UNSUPPORTED;
  return slot(arguments..., &error);
}

// The same, throwing Error.
template <class... Parameters, class... Arguments>
void call(bp_status_t(BP_CALL* slot)(Parameters...), Arguments... arguments) {
  char text[2000] = {};
  bp_error_t error{};
  error.size = sizeof error;
  error.node = BP_NO_NODE;
  error.text = text;
  error.text_capacity = sizeof text;
  const bp_status_t status = try_call(error, slot, arguments...);
  if (status == BP_OK) return;
  std::string what(text, static_cast<size_t>(std::min<uint64_t>(error.text_size, sizeof text)));
  if (what.empty())
    what = slot == nullptr ? "this loader is too old for the call; install a newer one" : api().status_name(status);
  throw Error(status, what, error.node, error.vendor_code, error.flags);
}

// Calls a slot that writes text to a sink.
template <class Slot, class Handle>
std::string collect(Slot slot, Handle* handle) {
  struct Sink {
    std::string text;
    bool full = false;
    static void BP_CALL append(void* self, bp_text_t piece) noexcept {
      try {
        static_cast<Sink*>(self)->text += view::text(piece);
      } catch (const std::bad_alloc&) {
        static_cast<Sink*>(self)->full = true;
      }
    }
  } sink;
  call(slot, handle, &Sink::append, static_cast<void*>(&sink));
  if (sink.full) throw std::bad_alloc();
  return std::move(sink.text);
}

inline std::vector<bp_text_t> texts(const std::vector<std::string>& strings) {
  std::vector<bp_text_t> result;
  for (const std::string& s : strings) result.push_back(view::text(s));
  return result;
}

inline std::vector<bp_option_t> options(const std::map<std::string, std::string>& map) {
  std::vector<bp_option_t> result;
  for (const auto& [name, value] : map) result.push_back({view::text(name), view::text(value)});
  return result;
}

}  // namespace detail

// A switch that ends waiting and running; it goes on once and stays on.
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
  // The values that this adds have failed: waiting for one throws BP_DEPENDENCY_FAILED with this text.
  void fail(uint64_t value, bp_status_t status, std::string text) const {
    bp_error_t failure{};
    failure.size = sizeof failure;
    failure.status = status;
    failure.node = BP_NO_NODE;
    failure.text = text.data();
    failure.text_size = failure.text_capacity = text.size();
    detail::call(api().semaphore_signal, semaphore_.get(), value, static_cast<const bp_error_t*>(&failure));
  }
  // Any value, and no failures. Nothing may be waiting for it, and no run may signal it later.
  void reset(uint64_t value) const { detail::call(api().semaphore_reset, semaphore_.get(), value); }
  // Until the value is reached; `deadline` in ns on the monotonic clock.
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

// A model, checked and canonical.
class Model {
 public:
  explicit Model(bp_model_t* model, std::shared_ptr<const void> keep = nullptr)
      : model_(model, [keep = std::move(keep)](bp_model_t* m) { api().model_destroy(m); }) {}

  // Lives as long as the model.
  view::Graph graph() const { return view::Graph(api().model_graph(model_.get())); }
  // What `backplane info --json` prints, less `uncovered`.
  std::string report() const { return detail::collect(api().model_report, get()); }
  bp_model_t* get() const { return model_.get(); }

 private:
  std::shared_ptr<bp_model_t> model_;
};

// A device's queue of work: new, or the framework's own. The environment outlives it.
class Stream {
 public:
  Stream(bp_env_t* env, uint64_t device, const bp_native_t* native = nullptr, int32_t priority = BP_PRIORITY_NORMAL) {
    const bp_stream_create_t how{sizeof how, priority, native, nullptr};
    bp_stream_t* stream = nullptr;
    detail::call(api().stream_create, env, device, &how, &stream);
    stream_ = std::shared_ptr<bp_stream_t>(stream, api().stream_destroy);
  }
  // Until all that it holds has ended; throws what runs in it failed with. `deadline` in ns on the monotonic clock.
  void wait(uint64_t deadline = BP_FOREVER) const { detail::call(api().stream_wait, get(), deadline); }
  bp_native_t native() const {
    bp_native_t native{};
    native.size = sizeof native;
    detail::call(api().stream_export, get(), &native);
    return native;
  }
  bp_stream_t* get() const { return stream_.get(); }

 private:
  std::shared_ptr<bp_stream_t> stream_;
};

// How a run is bounded and ordered.
struct RunOptions {
  std::chrono::nanoseconds timeout{0};  // 0: none
  const Cancel* cancel = nullptr;
  const Stream* stream = nullptr;  // with one, `run` puts the run into it and returns
  std::vector<bp_point_t> waits;
  std::vector<bp_point_t> signals;
  int32_t priority = 0;
  uint64_t trace_id = 0;
};

// A run state. One thread at a time; each thread makes its own of a shared session.
class Exec {
 public:
  // Binds memory to an input. It is kept alive, and used until the input is bound anew: write new data into it between
  // runs.
  void bind(uint32_t input, const Tensor& tensor) { bind_slot(input, tensor); }
  // Any memory, bound to input `slot` or to output `slot - BP_SLOT_OUTPUT`.
  void bind_memory(uint32_t slot, const bp_tensor_t& tensor) { detail::call(api().exec_bind, get(), slot, &tensor); }
  void bind(std::string_view input, const Tensor& tensor) { bind_slot(find_input(input), tensor); }
  // Outputs that are not bound are allocated by the loader.
  void bind_output(uint32_t output, const Tensor& tensor) { bind_slot(BP_SLOT_OUTPUT + output, tensor); }
  void bind_output(std::string_view output, const Tensor& tensor) {
    bind_slot(BP_SLOT_OUTPUT + find_output(output), tensor);
  }
  // New extents within the capacity of what was bound.
  void extents(uint32_t input, const std::vector<int64_t>& extents) {
    const bp_slot_extents_t slot{input, static_cast<uint32_t>(extents.size()), extents.data()};
    detail::call(api().exec_extents, get(), &slot, 1u, static_cast<uint32_t>(sizeof slot));
  }
  // The extent of a named dimension, in every bound input that has it.
  void symbol(std::string_view name, int64_t extent) {
    const bp_graph_t* graph = model_.graph().raw();
    for (uint32_t i = 0; i < graph->symbol_count; ++i) {
      if (view::text(bp_graph_symbol(graph, i)->name) == name) return detail::call(api().exec_symbol, get(), i, extent);
    }
    throw Error(BP_NOT_FOUND, "the model has no dimension named '" + std::string(name) + "'");
  }
  // The loader uses it no more; an output is allocated by the loader then.
  void unbind(uint32_t slot) { detail::call(api().exec_unbind, get(), slot); }

  // Runs and returns when the run has ended.
  void run(const RunOptions& options = {}) {
    bp_run_t run{};
    run.size = sizeof run;
    run.waits = options.waits.data();
    run.wait_count = static_cast<uint32_t>(options.waits.size());
    run.signals = options.signals.data();
    run.signal_count = static_cast<uint32_t>(options.signals.size());
    if (options.timeout.count() > 0) {
      const auto end = std::chrono::steady_clock::now().time_since_epoch() + options.timeout;
      run.deadline = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(end).count());
    }
    run.cancel = options.cancel == nullptr ? nullptr : options.cancel->get();
    run.stream = options.stream == nullptr ? nullptr : options.stream->get();
    run.priority = options.priority;
    run.trace_id = options.trace_id;
    detail::call(api().exec_run, get(), static_cast<const bp_run_t*>(&run));
  }
  // Starts a run; `run` and what it points at stay valid until `run.done` was called.
  void submit(const bp_run_t& run) { detail::call(api().exec_submit, get(), &run); }

  // An output of the last run, where it lies: valid until the next run or bind.
  bp_tensor_t output_view(uint32_t output) const {
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    detail::call(api().exec_output, get(), output, &tensor);
    return tensor;
  }
  // A copy of it in host memory.
  Tensor output(uint32_t output) const {
    const bp_tensor_t from = output_view(output);
    if (from.buffer.memory == nullptr || from.buffer.bytes == 0) return Tensor::copy(from);
    std::vector<char> staging(from.buffer.bytes);
    bp_tensor_t host = from;
    host.buffer = bp_buffer_t{0, 0, 0, nullptr, staging.data(), 0, from.buffer.bytes};
    const bp_copy_t copy{sizeof copy, 0, &from.buffer, &host.buffer, from.buffer.bytes, nullptr};
    detail::call(api().memory_copy, env_.get(), &copy);
    return Tensor::copy(host);
  }
  Tensor output(std::string_view name) const { return output(find_output(name)); }

  bp_exec_t* get() const { return exec_.get(); }

 private:
  friend class Session;
  Exec(std::shared_ptr<bp_env_t> env, Model model, std::shared_ptr<bp_session_t> session)
      : env_(std::move(env)), model_(std::move(model)), session_(std::move(session)) {
    bp_exec_t* exec = nullptr;
    detail::call(api().exec_create, session_.get(), static_cast<const bp_exec_desc_t*>(nullptr), &exec);
    exec_ = std::shared_ptr<bp_exec_t>(exec, api().exec_destroy);
  }
  void bind_slot(uint32_t slot, const Tensor& tensor) {
    const bp_tensor_t raw = tensor.abi();
    detail::call(api().exec_bind, get(), slot, &raw);
    bound_[slot] = tensor;
  }
  uint32_t find_input(std::string_view name) const { return found(model_.graph().find_input(name), "input", name); }
  uint32_t find_output(std::string_view name) const { return found(model_.graph().find_output(name), "output", name); }
  static uint32_t found(uint32_t index, const char* kind, std::string_view name) {
    if (index != BP_NONE) return index;
    throw Error(BP_NOT_FOUND,
                std::string("the model has no ") + kind + " '" + std::string(name) + "'; its graph names those it has");
  }

  std::shared_ptr<bp_env_t> env_;
  Model model_;
  std::map<uint32_t, Tensor> bound_;
  std::shared_ptr<bp_session_t> session_;
  std::shared_ptr<bp_exec_t> exec_;  // destroyed first
};

struct SessionOptions {
  std::map<std::string, std::pair<int64_t, int64_t>> symbols;  // the extents that named dimensions will have
  std::vector<std::string> devices;                            // preferred first; none: all
  uint32_t fallback = BP_FALLBACK_ALLOW;
  uint32_t compute_types = 0;                  // BP_COMPUTE_* that are allowed in addition to each node's own type
  std::map<std::string, std::string> pins;     // "op=Conv" → "cpu"
  std::map<std::string, std::string> options;  // "cpu.threads" → "4"
  uint32_t max_islands = 0;
  uint32_t flags = 0;  // BP_SESSION_*
  const Cancel* cancel = nullptr;
};

// A model placed on devices and compiled. Many threads may use one.
class Session {
 public:
  Exec exec() const { return Exec(env_, model_, session_); }
  const Model& model() const { return model_; }
  // Where node i of the model's graph went.
  bp_placed_node_t node(uint32_t i) const {
    bp_placed_node_t placed{};
    placed.size = sizeof placed;
    detail::call(api().session_node, static_cast<const bp_session_t*>(get()), i, &placed);
    return placed;
  }
  // What `backplane explain --json` prints.
  std::string report() const { return detail::collect(api().session_report, get()); }
  // Replaces a weight; the session was made with BP_SESSION_REFIT.
  void refit(std::string_view weight, const Tensor& tensor) const { refit({{weight, tensor}}); }
  // All of them or none.
  void refit(const std::vector<std::pair<std::string_view, Tensor>>& weights) const {
    std::vector<bp_tensor_t> tensors;
    std::vector<bp_named_tensor_t> named;
    for (const auto& weight : weights) tensors.push_back(weight.second.abi());
    for (size_t i = 0; i < weights.size(); ++i) named.push_back({view::text(weights[i].first), &tensors[i]});
    bp_session_refit_t what{};
    what.size = sizeof what;
    what.count = static_cast<uint32_t>(named.size());
    what.weights = named.data();
    what.stride = sizeof(bp_named_tensor_t);
    detail::call(api().session_refit, get(), static_cast<const bp_session_refit_t*>(&what));
  }
  // What a device (bp_device_info_t.id) said of a node. Text lives as long as the session.
  bp_node_verdict_t verdict(uint32_t node, uint64_t device) const {
    bp_node_verdict_t verdict{};
    verdict.size = sizeof verdict;
    detail::call(api().session_verdict, static_cast<const bp_session_t*>(get()), node, device, &verdict);
    return verdict;
  }
  // Reads a weight into `tensor`, which has its type and extents.
  void read_weight(std::string_view weight, Tensor& tensor) const {
    bp_tensor_t raw = tensor.abi();
    detail::call(api().session_read_weight, static_cast<const bp_session_t*>(get()), view::text(weight), &raw);
  }
  bp_session_t* get() const { return session_.get(); }

 private:
  friend class Environment;
  Session(std::shared_ptr<bp_env_t> env, Model model, bp_session_t* session)
      : env_(std::move(env)), model_(std::move(model)), session_(session, api().session_destroy) {}

  std::shared_ptr<bp_env_t> env_;
  Model model_;
  std::shared_ptr<bp_session_t> session_;  // destroyed first
};

// Memory of a device, released with this.
class Buffer {
 public:
  const bp_buffer_t& abi() const { return *buffer_; }
  // All of it or its beginning as a tensor; `extents` is borrowed.
  bp_tensor_t tensor(bp_dtype_t dtype, const std::vector<int64_t>& extents) const {
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = dtype;
    tensor.rank = static_cast<uint32_t>(extents.size());
    tensor.extents = extents.data();
    tensor.buffer = *buffer_;
    return tensor;
  }

 private:
  friend class Environment;
  Buffer(std::shared_ptr<bp_env_t> env, const bp_buffer_t& buffer)
      : buffer_(new bp_buffer_t(buffer), [env = std::move(env)](bp_buffer_t* b) {
          const bp_release_t what{sizeof what, 0, b, nullptr};
          api().memory_release(env.get(), &what);
          delete b;
        }) {}
  std::shared_ptr<bp_buffer_t> buffer_;
};

struct EnvironmentOptions {
  std::vector<std::string> backend_files;    // libraries or manifests
  std::vector<std::string> backend_folders;  // folders of manifests
  bool only_given = false;                   // look nowhere else
  std::map<std::string, std::string> options;
  uint32_t log_level = 0;                                          // BP_LOG_*; 0: BACKPLANE_LOG, otherwise errors
  uint32_t threads = 0;                                            // 0: all that the process may use
  std::vector<bp_plugin_query_t> plugins;                          // linked into the program
  std::function<void(uint32_t level, std::string_view line)> log;  // from any thread; empty: standard error
};

// A device as placement and options name it.
struct Device {
  uint32_t index;    // from 1
  std::string name;  // "cpu", "opencl:1"
  bp_device_info_t info;
};

// Backends that were found, and settings.
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
        } catch (...) {  // nothing may cross the ABI, and a lost log line breaks nothing
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
  // Throws BP_NOT_FOUND where none has this id.
  Device device(uint64_t id) const {
    for (Device& device : devices()) {
      if (device.info.id == id) return std::move(device);
    }
    throw Error(BP_NOT_FOUND, "there is no device with the id " + std::to_string(id));
  }
  // Every file that was considered, with the reason where it was refused. Text lives as long as the environment.
  std::vector<bp_candidate_t> candidates() const {
    std::vector<bp_candidate_t> result(api().env_candidate_count(get()));
    for (uint32_t i = 0; i < result.size(); ++i) {
      result[i].size = sizeof result[i];
      detail::call(api().env_candidate, static_cast<const bp_env_t*>(get()), i, &result[i]);
    }
    return result;
  }
  // Opens a device in the framework's own context, before anything else does.
  void open_device(uint64_t device, const bp_native_t& native) const {
    bp_device_open_t how{};
    how.size = sizeof how;
    how.native = &native;
    detail::call(api().env_open_device, get(), device, static_cast<const bp_device_open_t*>(&how));
  }
  // Gives up a device that hangs: nothing waits for it any more.
  void abandon_device(uint64_t device) const { detail::call(api().env_abandon_device, get(), device); }
  Stream stream(uint64_t device, const bp_native_t* native = nullptr) const { return Stream(get(), device, native); }
  // Memory of a device (bp_device_info_t.id), in one of its memory spaces.
  Buffer allocate(uint64_t device, uint64_t bytes, uint32_t space = 0) const {
    const bp_allocate_t what{sizeof what, space, bytes, nullptr, nullptr};
    bp_buffer_t buffer{};
    detail::call(api().memory_allocate, get(), device, &what, &buffer);
    return Buffer(env_, buffer);
  }
  // Memory that another library owns, which must live until external.release is called.
  Buffer import_memory(uint64_t device, const bp_external_t& external, uint32_t space = 0) const {
    const bp_import_t what{sizeof what, space, &external};
    bp_buffer_t buffer{};
    detail::call(api().memory_import, get(), device, &what, &buffer);
    return Buffer(env_, buffer);
  }
  // As a handle of the kind BP_EXTERNAL_*, owned by the caller.
  bp_external_t export_memory(const Buffer& buffer, uint32_t kind) const {
    const bp_export_t what{sizeof what, kind, &buffer.abi()};
    bp_external_t external{};
    external.size = sizeof external;
    detail::call(api().memory_export, get(), &what, &external);
    return external;
  }
  // Returns when it is done. Host memory: bp_buffer_t with its `address` and `bytes` alone.
  void copy(const bp_buffer_t& from, const bp_buffer_t& to, uint64_t bytes) const {
    const bp_copy_t what{sizeof what, 0, &from, &to, bytes, nullptr};
    detail::call(api().memory_copy, get(), &what);
  }
  // What `backplane list --json` prints.
  std::string report() const { return detail::collect(api().env_report, get()); }

  Model open(std::string_view path) const {
    bp_model_source_t source{};
    source.path = view::text(path);
    return open_source(source, nullptr);
  }
  // Bytes that the model keeps. `directory` is where external data may lie.
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

  // Collects spans of all sessions from now on; stop_trace returns them as Chrome/Perfetto JSON.
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
