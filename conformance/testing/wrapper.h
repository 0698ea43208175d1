// SPDX-License-Identifier: Apache-2.0
// A backend with one lie: it passes every call on to the CPU backend and falsifies one thing.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "backplane/plugin.h"

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
  uint64_t number = 0;              // of the instance's runs, from 0
  uint32_t together = 1;            // runs going on in the process, this one included
  std::vector<std::string> memory;  // the lie's own, kept with the instance
};

// The hooks of a lie; NULL passes the call on unchanged.
struct Lie {
  void (*load)() = nullptr;                                            // in every query
  const bp_plugin_t* (*refusal)(const bp_plugin_t* honest) = nullptr;  // of a host
  void (*descriptor)(bp_plugin_t& plugin) = nullptr;
  void (*info)(bp_device_info_t& info) = nullptr;
  void (*verdict)(const std::string& op, bp_verdict_t& verdict) = nullptr;
  bp_status_t (*compile)(const std::string& op) = nullptr;  // anything but BP_OK is returned instead of compiling
  bp_status_t (*compile_nodes)(uint32_t nodes) = nullptr;   // likewise
  void (*bind)(bp_tensor_t& tensor) = nullptr;              // before it is passed on
  bool (*bind_refused)() = nullptr;                         // true: the refusal is not reported
  void (*settings)(bp_run_t& run) = nullptr;                // before it is passed on
  void (*before)(Run& run) = nullptr;
  bool skip = false;                     // does not run at all and says it did
  bool (*answered)(Run& run) = nullptr;  // true: `before` has the answer already
  void (*after)(Run& run) = nullptr;
};

// Rounded to the nearest number of fp16, infinite beyond its range.
float as_half(float x);
// Keeps the inputs in run.memory and rounds float inputs to 16 bits.
void narrow_inputs(Run& run);
// Puts back what was kept.
void restore_inputs(Run& run);

// Each lie's file defines this.
extern const Lie kLie;
// The plugin's id, which the build gives to each lie's file.
extern const bp_text_t kLieName;
#ifdef LIE_NAME
const bp_text_t kLieName = {LIE_NAME, sizeof LIE_NAME - 1};
#endif

}  // namespace backplane::liar
