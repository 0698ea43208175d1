// SPDX-License-Identifier: Apache-2.0
// A backend with one lie: it passes every call on to an honest backend and falsifies one thing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "testing/struct_copy.h"

namespace backplane::liar {

struct Bound {
  bp_tensor_t tensor = {};
  std::vector<int64_t> extents;

  uint64_t count() const {
    uint64_t n = 1;
    for (const int64_t extent : extents) n *= static_cast<uint64_t>(extent);
    return n;
  }
  bool is_float() const { return tensor.dtype == BP_DTYPE_FLOAT; }
  char* bytes() const { return static_cast<char*>(tensor.buffer.address) + tensor.buffer.offset; }
  float get(uint64_t i) const {
    float value;
    std::memcpy(&value, bytes() + i * sizeof value, sizeof value);
    return value;
  }
  void set(uint64_t i, float value) const { std::memcpy(bytes() + i * sizeof value, &value, sizeof value); }
};

// A lie's view of a run.
struct Run {
  std::string op;      // the operator of the program's first node
  uint32_t nodes = 0;  // number of the program's nodes
  std::vector<Bound> inputs, outputs;
  uint64_t number = 0;              // number of the instance's earlier runs
  uint32_t together = 1;            // number of runs in progress in the process, including this one
  std::vector<std::string> memory;  // for the lie's own use; kept until the instance is destroyed
};

// The hooks of a lie. A NULL hook passes the call on unchanged.
struct Lie {
  void (*load)() = nullptr;                                            // called in every bp_plugin_query
  const bp_plugin_t* (*refusal)(const bp_plugin_t* honest) = nullptr;  // called if the honest plugin refuses the host
  void (*descriptor)(bp_plugin_t& plugin) = nullptr;
  void (*info)(bp_device_info_t& info) = nullptr;
  void (*verdict)(const std::string& op, bp_verdict_t& verdict) = nullptr;
  bp_status_t (*compile)(const std::string& op) = nullptr;  // any status except BP_OK is returned instead of compiling
  bp_status_t (*compile_nodes)(uint32_t nodes) = nullptr;   // like `compile`, for the number of the program's nodes
  void (*bind)(bp_tensor_t& tensor) = nullptr;              // changes the tensor before it is passed on
  bool (*bind_refused)() = nullptr;                         // if it returns true, a refusal is reported as success
  void (*settings)(bp_run_t& run) = nullptr;                // changes the settings before they are passed on
  void (*before)(Run& run) = nullptr;
  bool skip = false;                     // reports success without running
  bool (*answered)(Run& run) = nullptr;  // if it returns true, reports success without running
  void (*after)(Run& run) = nullptr;
};

// Rounds to the nearest fp16 number, and to infinity beyond the range of fp16.
float as_half(float x);
// Copies the inputs to run.memory, then rounds fp32 inputs to fp16.
void narrow_inputs(Run& run);
// Restores the inputs from run.memory.
void restore_inputs(Run& run);

// Each lie's file defines this.
extern const Lie kLie;
// The plugin's id, which the build defines for the file of each lie.
extern const bp_text_t kLieName;
#ifdef LIE_NAME
const bp_text_t kLieName = {LIE_NAME, sizeof LIE_NAME - 1};
#endif

}  // namespace backplane::liar
