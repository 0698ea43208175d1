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

// A run as a lie sees it.
struct Run {
  std::string op;      // of the program's first node
  uint32_t nodes = 0;  // of the program
  std::vector<Bound> inputs, outputs;
  uint64_t number = 0;              // counts the instance's runs, from 0
  uint32_t together = 1;            // runs in progress in the process, including this one
  std::vector<std::string> memory;  // for the lie's own use, kept with the instance
};

// The hooks of a lie; NULL passes the call on unchanged.
struct Lie {
  void (*load)() = nullptr;                                            // in every call of bp_plugin_query
  const bp_plugin_t* (*refusal)(const bp_plugin_t* honest) = nullptr;  // called if the honest plugin refuses the host
  void (*descriptor)(bp_plugin_t& plugin) = nullptr;
  void (*info)(bp_device_info_t& info) = nullptr;
  void (*verdict)(const std::string& op, bp_verdict_t& verdict) = nullptr;
  bp_status_t (*compile)(const std::string& op) = nullptr;  // anything but BP_OK is returned instead of compiling
  bp_status_t (*compile_nodes)(uint32_t nodes) = nullptr;   // likewise
  void (*bind)(bp_tensor_t& tensor) = nullptr;              // before it is passed on
  bool (*bind_refused)() = nullptr;                         // true: the refusal is not reported
  void (*settings)(bp_run_t& run) = nullptr;                // before it is passed on
  void (*before)(Run& run) = nullptr;
  bool skip = false;                     // reports success without running
  bool (*answered)(Run& run) = nullptr;  // true: reports success without running, as the outputs are right already
  void (*after)(Run& run) = nullptr;
};

// Rounds to the nearest fp16 number, to infinity beyond the range of fp16.
float as_half(float x);
// Keeps the inputs in run.memory and rounds fp32 inputs to fp16.
void narrow_inputs(Run& run);
// Restores the inputs from run.memory.
void restore_inputs(Run& run);

// Each lie's file defines this.
extern const Lie kLie;
// The plugin's id, which the build defines for each lie's file.
extern const bp_text_t kLieName;
#ifdef LIE_NAME
const bp_text_t kLieName = {LIE_NAME, sizeof LIE_NAME - 1};
#endif

}  // namespace backplane::liar
