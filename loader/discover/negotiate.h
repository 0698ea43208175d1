// SPDX-License-Identifier: Apache-2.0
// Agrees with a plugin on a version of the ABI, and checks its tables.
#pragma once

#include <string_view>

#include "backplane/plugin.h"
#include "discover/refusal.h"

namespace backplane {

// A plugin's descriptor and tables in this loader's version. Slots that the plugin lacks are NULL. The pointers in
// `plugin` point to the tables in this struct; that of an optional table is NULL if the plugin lacks the table.
struct PluginTables {
  bp_plugin_t plugin{};
  bp_device_api_t device{};
  bp_coverage_api_t coverage{};
  bp_program_api_t program{};
  bp_instance_api_t instance{};
  bp_memory_api_t memory{};
  bp_sync_api_t sync{};
  bp_cache_api_t cache{};
  bp_weights_api_t weights{};

  PluginTables() = default;
  PluginTables(const PluginTables&) = delete;
};

// The refusal of a plugin with another id than its manifest states.
Refusal wrong_id(std::string_view file, std::string_view id, std::string_view expected);
// Queries the plugin and checks the result. `file` is its name in errors; `expected_id` is the id in the manifest, or
// empty. BP_REFUSED_DESCRIPTOR, _SANITIZER, _VERSION, _BY_PLUGIN, _ID.
Refusal negotiate(bp_plugin_query_t query, std::string_view file, std::string_view expected_id, PluginTables& out);
// Checks `answer`, the descriptor that a plugin has already returned, in the same way.
Refusal negotiate(const bp_plugin_t* answer, std::string_view file, std::string_view expected_id, PluginTables& out);

}  // namespace backplane
