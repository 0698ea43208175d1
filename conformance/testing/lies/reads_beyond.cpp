// SPDX-License-Identifier: Apache-2.0
// Reads the first byte after the graph's array of types.
#include "testing/wrapper.h"

namespace backplane::liar {

static bp_program_api_t program_api;
static bp_status_t (*honest_compile)(bp_device_t*, const bp_compile_t*, bp_program_t**, bp_error_t*);

static bp_status_t compile(bp_device_t* device, const bp_compile_t* what, bp_program_t** out_program,
                           bp_error_t* error) {
  const bp_graph_t& graph = *what->graph;
  static_cast<void>(*reinterpret_cast<const volatile char*>(bp_graph_type(&graph, graph.type_count)));
  return honest_compile(device, what, out_program, error);
}

static void falsify(bp_plugin_t& plugin) {
  program_api = taken(*plugin.program);
  honest_compile = program_api.compile;
  program_api.compile = compile;
  plugin.program = &program_api;
}

const Lie kLie = {.descriptor = falsify};

}  // namespace backplane::liar
