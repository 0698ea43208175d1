// SPDX-License-Identifier: Apache-2.0
// A plugin's library in a separate process. It has the interface of an ordinary plugin: a descriptor with tables,
// whose functions forward calls to that process.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "base/status.h"
#include "isolate/descriptor.h"
#include "isolate/process.h"
#include "isolate/spawn.h"

namespace backplane::isolate {

struct Settings {
  std::filesystem::path library;
  int file = -1;                            // the open library; borrowed during `load`
  Program program;                          // backplane-isolated and its arguments
  std::chrono::milliseconds limit{20'000};  // for each call that does not compute, such as loading
};

// Why a library is not used: a BP_REFUSED_* code and a message.
struct Rejection {
  uint32_t code = 0;
  std::string text;
};

class Library {
 public:
  // Starts the process and loads the library in it. Returns null and sets `out_rejection` if the process cannot be
  // started, or the library crashes it or is refused.
  static std::shared_ptr<Library> load(Settings settings, Rejection& out_rejection);

  // The descriptor, as bp_plugin_query returns it. This object owns it, and must outlive every backend that was created
  // through it.
  const bp_plugin_t* plugin() const { return &plugin_; }
  // Must be in bp_backend_create_t.chain, because the descriptor's `create` finds this object by it.
  const bp_chain_t* chain() const { return &link_.chain; }

  // Ends the process that `load` started, unless a backend uses it already. The next `create` starts a new one.
  void rest() { first_ = nullptr; }

  // ---- for the functions in the tables ----
  static Library* of(const bp_chain_t* chain);
  const Settings& settings() const { return settings_; }
  // Returns a process that has loaded the library: the one that `load` started if no backend uses it, or a new one.
  // BP_STALE: the new process refuses the library or describes another plugin.
  Result<std::shared_ptr<Process>> process();
  const std::string& name() const { return name_; }

 private:
  struct Link {
    bp_chain_t chain;
    Library* library;
  };

  explicit Library(Settings settings);
  Result<std::shared_ptr<Process>> start(std::string& out_answer);
  Status describe(std::string answer);

  Settings settings_;
  Descriptor file_;
  std::shared_ptr<Process> first_;
  std::string name_;
  std::string description_;  // the process's description of the library; strings of plugin_ point into it
  std::vector<bp_opset_t> opsets_;
  bp_plugin_t plugin_{};
  bp_device_api_t device_{};
  bp_coverage_api_t coverage_{};
  bp_program_api_t program_{};
  bp_instance_api_t instance_{};
  bp_cache_api_t cache_{};
  bp_weights_api_t weights_{};
  Link link_{};
};

// The optional functions that a library offers, as flags in its process's description.
enum Offered : uint32_t {
  kHealth = 1,
  kReview = 2,
  kInfer = 4,
  kOpsets = 8,
  kOutputExtents = 16,
  kExtents = 32,
  kSerialize = 64,
  kValidate = 128,
  kDeserialize = 256,
  kRefit = 512,
  kReadWeight = 1024,
  kCache = 2048,
  kWeights = 4096,
};

}  // namespace backplane::isolate
