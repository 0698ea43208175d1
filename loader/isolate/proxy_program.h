// SPDX-License-Identifier: Apache-2.0
// A program of an isolated backend, and the functions of the tables for programs, the cache and weights.
#pragma once

#include <cstdint>
#include <vector>

#include "backplane/plugin.h"
#include "isolate/graph_wire.h"
#include "isolate/proxy_device.h"

namespace backplane::isolate {

// The object to which a bp_program_t of an isolated plugin points. Lost when its process ends.
struct ProxyProgram {
  ProxyBackend& backend;
  Remote remote;
  Graphs graphs;                              // the loader's graphs, which must outlive the program
  std::vector<uint32_t> in_kinds, out_kinds;  // BP_KIND_* of the inputs and outputs
  bp_program_info_t info{};
  std::vector<bp_inplace_t> inplace;
};

// Fill a table. Optional functions that the library lacks stay null.
void fill_program_table(uint32_t offered, bp_program_api_t& out);
void fill_cache_table(uint32_t offered, bp_cache_api_t& out);
void fill_weights_table(uint32_t offered, bp_weights_api_t& out);

}  // namespace backplane::isolate
