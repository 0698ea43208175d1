// SPDX-License-Identifier: Apache-2.0
// offered PLUGIN…: prints the slots that are not NULL in the plugins' tables, as one "table.slot" per line.
#include <cstdio>
#include <type_traits>

#include "host/plugin.h"

namespace {

#define SLOT(table, slot)                 \
  if constexpr (std::is_same_v<T, table>) \
    if (t->slot != nullptr) std::printf("%s.%s\n", name, #slot);
#define CALLBACK(table, slot)
#define FUNCTION(table, slot)
template <class T>
void print(const T* t, const char* name) {
  if (t == nullptr) return;
#include "slots.inc"
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const backplane::conform::Library library(argv[i]);
    const bp_plugin_t* const plugin = library.query();
    if (plugin == nullptr || plugin->version == 0) {
      std::fprintf(stderr, "%s refuses this host\n", argv[i]);
      return 1;
    }
    print(plugin, "bp_plugin_t");
    print(plugin->device, "bp_device_api_t");
    print(plugin->coverage, "bp_coverage_api_t");
    print(plugin->program, "bp_program_api_t");
    print(plugin->instance, "bp_instance_api_t");
    print(plugin->memory, "bp_memory_api_t");
    print(plugin->sync, "bp_sync_api_t");
    print(plugin->cache, "bp_cache_api_t");
    print(plugin->weights, "bp_weights_api_t");
  }
}
