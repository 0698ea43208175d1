// SPDX-License-Identifier: Apache-2.0
// A backend that passes every call on to PLUGIN and counts the slots that are called, in both directions. The counts
// lie in the file that BACKPLANE_SLOT_COUNTS names, which all processes of a run share.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "backplane/plugin.h"

namespace {

enum Id : uint32_t {
#define SLOT(table, slot) id_##table##_##slot,
#include "slots.inc"
#undef SLOT
  kSlots
};

// One for each slot. [thread-safe]
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
uint64_t* const counts = open_counts();

template <uint32_t id, class F>
struct Counted;
template <uint32_t id, class R, class... A>
struct Counted<id, R (*)(A...)> {
  inline static R (*original)(A...) = nullptr;
  static R call(A... arguments) {
    __atomic_add_fetch(&counts[id], 1, __ATOMIC_RELAXED);
    return original(arguments...);
  }
};

// Slots keep whether they are NULL.
template <uint32_t id, class F>
void count(F& slot) {
  if (slot == nullptr) return;
  Counted<id, F>::original = slot;
  slot = Counted<id, F>::call;
}

// The counting copy of a table, NULL for NULL.
template <class T>
struct Table {
  inline static T copy;
};

template <class T>
void count_slots(T& t) {
#define SLOT(table, slot) \
  if constexpr (std::is_same_v<T, table>) count<id_##table##_##slot>(t.slot);
#include "slots.inc"
#undef SLOT
}

template <class T>
const T* counted(const T* table) {
  if (table == nullptr) return nullptr;
  Table<T>::copy = *table;
  count_slots(Table<T>::copy);
  return &Table<T>::copy;
}

// As much of a sized struct as both sides know; the rest is zero.
template <class T>
T* copy(const T& given) {
  T* const known = new T{};
  std::memcpy(known, &given, std::min<size_t>(given.size, sizeof(T)));
  return known;
}

bp_status_t (*honest_create)(const bp_backend_create_t*, bp_backend_t**, bp_error_t*) = nullptr;

// The copy of the host's table is kept: a backend may use it until its `destroy` returned.
bp_status_t create(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error) {
  if (how == nullptr || how->host == nullptr) return honest_create(how, out_backend, error);
  bp_host_t* const host = copy(*how->host);
  count_slots(*host);
  bp_backend_create_t passed = *how;
  passed.host = host;
  return honest_create(&passed, out_backend, error);
}

bp_status_t (*honest_compile)(bp_device_t*, const bp_compile_t*, bp_program_t**, bp_error_t*) = nullptr;

// The program keeps the graph, so the copy is kept too.
bp_status_t compile(bp_device_t* device, const bp_compile_t* what, bp_program_t** out_program, bp_error_t* error) {
  if (what == nullptr || what->graph == nullptr) return honest_compile(device, what, out_program, error);
  bp_graph_t* const graph = copy(*what->graph);
  graph->api = counted(graph->api);
  bp_compile_t passed = *what;
  passed.graph = graph;
  return honest_compile(device, &passed, out_program, error);
}

}  // namespace

extern "C" BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) {
  static void* const library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  static const auto query =
      library == nullptr ? nullptr : reinterpret_cast<bp_plugin_query_t>(dlsym(library, BP_PLUGIN_SYMBOL));
  const bp_plugin_t* const answer = query == nullptr ? nullptr : query(offer);
  if (answer == nullptr || answer->version == 0) return answer;
  static bp_plugin_t plugin;
  plugin = *answer;
  honest_create = plugin.create;
  plugin.create = create;
  count_slots(plugin);
  plugin.device = counted(plugin.device);
  plugin.coverage = counted(plugin.coverage);
  static bp_program_api_t program;
  program = *plugin.program;
  honest_compile = program.compile;
  program.compile = compile;
  plugin.program = counted(&program);
  plugin.instance = counted(plugin.instance);
  plugin.memory = counted(plugin.memory);
  plugin.sync = counted(plugin.sync);
  plugin.cache = counted(plugin.cache);
  plugin.weights = counted(plugin.weights);
  return &plugin;
}
