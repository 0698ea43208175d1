// SPDX-License-Identifier: Apache-2.0
// Calls the plugin through its C ABI as a host would, for tests.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backplane/plugin.h"

namespace backplane::cpu::testing {

// A tensor in host memory.
struct HostTensor {
  bp_dtype_t dtype = BP_DTYPE_FLOAT;
  std::vector<int64_t> extents;
  std::string bytes;

  template <class T>
  static HostTensor of(bp_dtype_t dtype, std::vector<int64_t> extents, const std::vector<T>& data) {
    return {dtype, std::move(extents),
            std::string(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T))};
  }
  static HostTensor of_texts(std::vector<int64_t> extents, const std::vector<std::string>& texts);
  std::vector<std::string> texts() const;
  template <class T>
  std::vector<T> as() const {
    const auto* data = reinterpret_cast<const T*>(bytes.data());
    return std::vector<T>(data, data + bytes.size() / sizeof(T));  // NOLINT(bugprone-sizeof-expression): counts T
  }
  bp_tensor_t view();
};

// A bp_error_t with its text buffer.
struct ErrorText {
  char text[512] = {};
  bp_error_t error{sizeof(bp_error_t), BP_OK, BP_NO_NODE, 0, 0, 0, text, sizeof(text), 0};
  std::string str() const { return {text, error.text_size < sizeof(text) ? error.text_size : sizeof(text)}; }
};

// The plugin's backend, created by a minimal host, and its device. Aborts the test program if the plugin cannot be
// loaded or its device cannot be opened.
class Plugin {
 public:
  // `options`: options of the plugin, in addition to "threads".
  explicit Plugin(std::string threads = "2", std::map<std::string, std::string> options = {});
  ~Plugin();
  bp_plugin_query_t query;
  const bp_plugin_t* api;
  bp_backend_t* backend = nullptr;
  bp_device_t* device = nullptr;
  std::vector<std::string> log;  // all lines that the plugin logged
  bp_status_t status = BP_OK;    // from creating the backend; if `options` is empty, failure aborts the test program
  std::string error;

 private:
  std::map<std::string, std::string> options_;
  bp_host_t host_{};
};

// The result of one Compiled::run.
struct Outcome {
  bp_status_t status = BP_OK;
  std::string text;
  uint64_t node = BP_NO_NODE;
  std::vector<HostTensor> outputs;
};

class Compiled {
 public:
  // `compute_types`: BP_COMPUTE_* that the session allows.
  Compiled(Plugin& plugin, const bp_graph_t* graph, uint32_t compute_types = 0);
  ~Compiled();
  // Runs a new instance of the program. All outputs are requested through bp_run_t.output.
  Outcome run(std::vector<HostTensor> inputs, uint64_t deadline = 0);
  uint32_t shapes() const;

  Plugin& plugin;
  const bp_graph_t* graph;
  bp_program_t* program = nullptr;
  bp_status_t status = BP_OK;
  std::string text;
};

// The CPU time of this process, in seconds.
double cpu_seconds();

}  // namespace backplane::cpu::testing
