// SPDX-License-Identifier: Apache-2.0
// A backend that passes every call on to PLUGIN, and counts the calls of slots and callbacks in both directions. All
// processes of a run share the counts, in the file that BACKPLANE_SLOT_COUNTS names.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "../struct_copy.h"
#include "backplane/loader.h"

namespace {

enum Id : uint32_t {
#define SLOT(table, slot) id_##table##_##slot,
#define CALLBACK SLOT
#define FUNCTION(table, slot)
#include "slots.inc"
#undef SLOT
  kSlots
};

// Maps the file of counts, with one count for each slot. [thread-safe]
uint64_t* open_counts() {
  const char* const name = std::getenv("BACKPLANE_SLOT_COUNTS");
  const int file = name == nullptr ? -1 : open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, kSlots * sizeof(uint64_t)) != 0) {
    std::fprintf(stderr, "counted: set BACKPLANE_SLOT_COUNTS to a file that can be written\n");
    std::abort();
  }
  void* const memory = mmap(nullptr, kSlots * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<uint64_t*>(memory);
}
uint64_t* const kCounts = open_counts();

void add(uint32_t id) {
  __atomic_add_fetch(&kCounts[id], 1, __ATOMIC_RELAXED);
}

using backplane::liar::taken;

// ---- Slots of tables ------------------------------------------------------------------------------------------------

template <uint32_t kId, class F>
struct Counted;
template <uint32_t kId, class R, class... A>
struct Counted<kId, R (*)(A...)> {
  inline static R (*original_)(A...) = nullptr;
  static R call(A... arguments) {
    add(kId);
    return original_(arguments...);
  }
};

// Replaces a slot by a function that counts its calls. A NULL slot stays NULL.
template <uint32_t kId, class F>
void count(F& slot) {
  if (slot == nullptr) return;
  Counted<kId, F>::original_ = slot;
  slot = Counted<kId, F>::call;
}

template <class T>
void count_slots(T& t) {
#define SLOT(table, slot) \
  if constexpr (std::is_same_v<T, table>) count<id_##table##_##slot>(t.slot);
#undef CALLBACK
#define CALLBACK(table, slot)
#include "slots.inc"
#undef SLOT
#undef CALLBACK
}

// A table of the plugin or the host: the original, and a copy whose slots count their calls.
template <class T>
struct Table {
  inline static T honest_, copy_;
};

// ---- Callbacks ------------------------------------------------------------------------------------------------------

// The member whose value a struct's callbacks receive as `self`.
template <class T>
struct Self {
  static constexpr void* T::*kMember = &T::self;
};
template <>
struct Self<bp_compile_t> {
  static constexpr void* bp_compile_t::*kMember = &bp_compile_t::progress_self;
};
template <>
struct Self<bp_review_t> {
  static constexpr void* bp_review_t::*kMember = &bp_review_t::split_self;
};
template <>
struct Self<bp_loop_t> {
  static constexpr void* bp_loop_t::*kMember = &bp_loop_t::context;
};

template <uint32_t kId, auto kSlot>
struct Passed;
template <uint32_t kId, class T, class R, class... A, R (*T::*kSlot)(void*, A...)>
struct Passed<kId, kSlot> {
  static R call(void* kept, A... arguments) {
    add(kId);
    const T& original = *static_cast<const T*>(kept);
    return (original.*kSlot)(original.*Self<T>::kMember, arguments...);
  }
};

// Replaces the callbacks of a struct by functions that count their calls. The copy of the original is never freed,
// because a callback may come at any time.
template <class T>
void count_callbacks(T& t) {
  T* kept = nullptr;
#define SLOT(table, slot)
#define CALLBACK(table, slot)                               \
  if constexpr (std::is_same_v<T, table>)                   \
    if (t.slot != nullptr) {                                \
      if (kept == nullptr) kept = new T(taken(t));          \
      t.slot = Passed<id_##table##_##slot, &T::slot>::call; \
    }
#include "slots.inc"
#undef SLOT
#undef CALLBACK
#undef FUNCTION
  if (kept != nullptr) t.*Self<T>::kMember = kept;
}

// A copy of a struct with counted callbacks, for the duration of one call.
template <class T>
class WithCallbacks {
 public:
  explicit WithCallbacks(const T* given) : given_(given) {
    if (given == nullptr) return;
    own_ = taken(*given);
    count_callbacks(own_);
  }
  T* operator->() { return &own_; }
  const T* get() const { return given_ == nullptr ? nullptr : &own_; }

 private:
  const T* given_;
  T own_{};
};

bp_status_t open_device(bp_backend_t* backend, uint32_t index, const bp_device_open_t* how, bp_device_t** out_device,
                        bp_error_t* error) {
  return Table<bp_device_api_t>::honest_.open(backend, index, WithCallbacks(how).get(), out_device, error);
}

bp_status_t query(bp_device_t* device, const bp_coverage_query_t* query, const bp_coverage_sink_t* sink,
                  bp_error_t* error) {
  return Table<bp_coverage_api_t>::honest_.query(device, query, WithCallbacks(sink).get(), error);
}

bp_status_t infer(bp_device_t* device, const bp_infer_t* what, const bp_infer_sink_t* sink, bp_error_t* error) {
  return Table<bp_coverage_api_t>::honest_.infer(device, what, WithCallbacks(sink).get(), error);
}

bp_status_t review(bp_device_t* device, const bp_compile_t* what, bp_review_t* out_review, bp_error_t* error) {
  const auto& honest = Table<bp_coverage_api_t>::honest_.review;
  if (out_review == nullptr || !BP_HAS(out_review, out_review->size, split))
    return honest(device, what, out_review, error);
  const auto split = out_review->split;
  void* const self = out_review->split_self;
  count_callbacks(*out_review);
  const bp_status_t status = honest(device, what, out_review, error);
  out_review->split = split;
  out_review->split_self = self;
  return status;
}

// Returns `what` with counted callbacks and a graph whose functions are counted. The copy of the graph is never freed,
// because the program may use it.
WithCallbacks<bp_compile_t> island(const bp_compile_t* what) {
  WithCallbacks<bp_compile_t> passed(what);
  if (what == nullptr || what->graph == nullptr) return passed;
  bp_graph_t* const graph = new bp_graph_t(taken(*what->graph));
  Table<bp_graph_api_t>::copy_ = taken(*graph->api);
  count_slots(Table<bp_graph_api_t>::copy_);
  graph->api = &Table<bp_graph_api_t>::copy_;
  passed->graph = graph;
  return passed;
}

bp_status_t compile(bp_device_t* device, const bp_compile_t* what, bp_program_t** out_program, bp_error_t* error) {
  return Table<bp_program_api_t>::honest_.compile(device, island(what).get(), out_program, error);
}

bp_status_t deserialize(bp_device_t* device, const bp_compile_t* what, bp_bytes_t blob, bp_program_t** out_program,
                        bp_error_t* error) {
  return Table<bp_cache_api_t>::honest_.deserialize(device, island(what).get(), blob, out_program, error);
}

bp_status_t run(bp_instance_t* instance, const bp_run_t* run, bp_error_t* error) {
  return Table<bp_instance_api_t>::honest_.run(instance, WithCallbacks(run).get(), error);
}

bp_status_t copy(bp_device_t* device, const bp_copy_t* what, bp_error_t* error) {
  const auto& honest = Table<bp_memory_api_t>::honest_.copy;
  if (what == nullptr) return honest(device, what, error);
  const WithCallbacks run(what->run);
  bp_copy_t passed = taken(*what);
  passed.run = run.get();
  return honest(device, &passed, error);
}

bp_status_t fill(bp_device_t* device, const bp_fill_t* what, bp_error_t* error) {
  const auto& honest = Table<bp_memory_api_t>::honest_.fill;
  if (what == nullptr) return honest(device, what, error);
  const WithCallbacks run(what->run);
  bp_fill_t passed = taken(*what);
  passed.run = run.get();
  return honest(device, &passed, error);
}

bp_status_t import(bp_device_t* device, const bp_import_t* what, bp_buffer_t* out_buffer, bp_error_t* error) {
  const auto& honest = Table<bp_memory_api_t>::honest_.import;
  if (what == nullptr) return honest(device, what, out_buffer, error);
  const WithCallbacks external(what->external);
  bp_import_t passed = taken(*what);
  passed.external = external.get();
  return honest(device, &passed, out_buffer, error);
}

void parallel_for(const bp_host_t* host, const bp_loop_t* loop) {
  Table<bp_host_t>::honest_.parallel_for(host, WithCallbacks(loop).get());
}

bp_status_t submit(const bp_host_t* host, const bp_task_t* task) {
  return Table<bp_host_t>::honest_.submit(host, WithCallbacks(task).get());
}

bp_status_t on_cancel(const bp_host_t* host, const bp_cancel_t* token, const bp_on_cancel_t* what,
                      bp_cancel_link_t** out_link) {
  return Table<bp_host_t>::honest_.on_cancel(host, token, WithCallbacks(what).get(), out_link);
}

// ---- The plugin -----------------------------------------------------------------------------------------------------

template <class F>
void replace(F& slot, F by) {
  if (slot != nullptr) slot = by;
}

// Returns the counting copy of a table, or NULL for NULL. `hook` replaces slots whose arguments contain callbacks.
template <class T, class Hook>
const T* counted(const T* table, const Hook& hook) {
  if (table == nullptr) return nullptr;
  T& copy = Table<T>::copy_;
  copy = Table<T>::honest_ = taken(*table);
  hook(copy);
  count_slots(copy);
  return &copy;
}
template <class T>
const T* counted(const T* table) {
  return counted(table, [](T&) {});
}

// The copy of the host's table is never freed, because a backend may use it until its `destroy` has returned.
bp_status_t create(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error) {
  const auto& honest = Table<bp_plugin_t>::honest_.create;
  if (how == nullptr || how->host == nullptr) return honest(how, out_backend, error);
  bp_host_t* const host = new bp_host_t(taken(*how->host));
  bp_host_t& original = Table<bp_host_t>::honest_;
  if (host->parallel_for != nullptr) original.parallel_for = host->parallel_for;
  if (host->submit != nullptr) original.submit = host->submit;
  if (host->on_cancel != nullptr) original.on_cancel = host->on_cancel;
  replace(host->parallel_for, parallel_for);
  replace(host->submit, submit);
  replace(host->on_cancel, on_cancel);
  count_slots(*host);
  host->containers = counted(host->containers);
  bp_backend_create_t passed = taken(*how);
  passed.host = host;
  return honest(&passed, out_backend, error);
}

}  // namespace

extern "C" BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) {
  static void* const kLibrary = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  static const auto kQueryPlugin =
      kLibrary == nullptr ? nullptr : reinterpret_cast<bp_plugin_query_t>(dlsym(kLibrary, BP_PLUGIN_SYMBOL));
  const bp_plugin_t* const answer = kQueryPlugin == nullptr ? nullptr : kQueryPlugin(offer);
  if (answer == nullptr || answer->version == 0) return answer;
  static bp_plugin_t plugin;
  plugin = *counted(answer, [](bp_plugin_t& p) { p.create = create; });
  plugin.device = counted(plugin.device, [](bp_device_api_t& t) { replace(t.open, open_device); });
  plugin.coverage = counted(plugin.coverage, [](bp_coverage_api_t& t) {
    replace(t.query, query);
    replace(t.review, review);
    replace(t.infer, infer);
  });
  plugin.program = counted(plugin.program, [](bp_program_api_t& t) { replace(t.compile, compile); });
  plugin.instance = counted(plugin.instance, [](bp_instance_api_t& t) { replace(t.run, run); });
  plugin.memory = counted(plugin.memory, [](bp_memory_api_t& t) {
    replace(t.copy, copy);
    replace(t.fill, fill);
    replace(t.import, import);
  });
  plugin.sync = counted(plugin.sync);
  plugin.cache = counted(plugin.cache, [](bp_cache_api_t& t) { replace(t.deserialize, deserialize); });
  plugin.weights = counted(plugin.weights);
  return &plugin;
}
