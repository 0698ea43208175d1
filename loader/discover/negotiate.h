// SPDX-License-Identifier: Apache-2.0
// Agreeing with a plugin on an ABI version, and checking what it offers.
#pragma once

#include <string_view>

#include "backplane/plugin.h"
#include "discover/refusal.h"

namespace backplane {

// A plugin's descriptor and tables as this loader knows them: slots that the plugin does not know are NULL. Where the
// plugin lacks an optional table, the pointer in `plugin` is NULL; otherwise it points into this struct.
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

// Asks the plugin and checks its answer. `file` is named in texts; `expected_id` is the manifest's, or empty.
// BP_REFUSED_DESCRIPTOR, _SANITIZER, _VERSION, _BY_PLUGIN, _ID.
Refusal negotiate(bp_plugin_query_t query, std::string_view file, std::string_view expected_id, PluginTables& out);
// The same for an answer that is known already.
Refusal negotiate(const bp_plugin_t* answer, std::string_view file, std::string_view expected_id, PluginTables& out);

}  // namespace backplane
