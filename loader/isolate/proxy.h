// SPDX-License-Identifier: Apache-2.0
// The objects behind an isolated backend's opaque handles in the loader's process, and the functions in its tables.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backplane/plugin.h"
#include "base/status.h"
#include "isolate/graph_wire.h"
#include "isolate/library.h"
#include "isolate/message.h"
#include "isolate/process.h"

namespace backplane::isolate {

using Options = std::vector<std::pair<std::string, std::string>>;

// Behind a bp_backend_t. Survives the processes in which the backend runs.
class ProxyBackend {
 public:
  ProxyBackend(Library& library, const bp_backend_create_t& how);
  ~ProxyBackend();

  Library& library() const { return library_; }
  const bp_host_t* host() const { return host_; }
  // Returns the process in which the backend was created. If it has ended, starts a new one and creates the backend
  // there. If the pause after repeated failures is not over, waits for its end if that is near (0.4 s at most), else
  // returns BP_DEVICE_LOST.
  Result<std::shared_ptr<Process>> running();
  // Called after a successful run. Resets the count of failures.
  void succeeded() { failures_.store(0, std::memory_order_relaxed); }

  // Time limits: short for setup calls, long for calls that compute.
  Patience short_patience() const;
  Patience long_patience(const bp_cancel_t* cancel) const;

  // What identifies the device `index`, from its first description; empty if it was never described.
  std::string identity_of(uint32_t index);
  void identify(uint32_t index, std::string identity);

  // Keep strings and option lists of device descriptions until the backend is destroyed. The first copies the string;
  // the strings in `options` must be kept already.
  bp_text_t keep(std::string_view text);
  const bp_option_t* keep(std::vector<bp_option_t> options);

 private:
  Library& library_;
  const bp_host_t* host_;
  std::string directory_;
  Options options_;
  std::mutex mutex_;
  std::shared_ptr<Process> process_;
  std::atomic<uint32_t> failures_{0};  // failed processes since the last successful run
  uint64_t not_before_ = 0;            // the earliest start of the next process, ns on the monotonic clock
  std::mutex texts_mutex_;
  std::deque<std::string> texts_;
  std::deque<std::vector<bp_option_t>> option_lists_;
  std::map<uint32_t, std::string> identities_;  // by index
};

// An object in `process`, with its number there.
struct Remote {
  std::shared_ptr<Process> process;
  uint64_t handle = 0;
};

// Behind a bp_device_t. If the process has ended, the device is opened again in the next one.
struct ProxyDevice {
  ProxyBackend& backend;
  uint32_t index;  // when it was first described; another process may give the device another index
  uint64_t id;
  std::string options;  // as sent to the process

  std::mutex mutex;
  Remote remote;
  std::deque<std::string> opset_texts;
  std::vector<bp_opset_t> opsets;

  // Returns the device's handle in the running process. Opens the device there first, if needed.
  Result<Remote> live();
  // Sends a request that consists of the device's handle and `rest`. A call whose process ended has no lasting effect,
  // so it is repeated once if the process was killed from outside. `out_remote` is the device in the process that
  // replied.
  Result<std::string> call(Operation operation, const std::string& rest, const Patience& patience, Answers* answers,
                           Remote& out_remote);
};
inline ProxyDevice& device_of(bp_device_t* device) {
  return *reinterpret_cast<ProxyDevice*>(device);
}

// Behind a bp_program_t. Lost when its process ends.
struct ProxyProgram {
  ProxyBackend& backend;
  Remote remote;
  Graphs graphs;                              // the loader's graphs, which must outlive the program
  std::vector<uint32_t> in_kinds, out_kinds;  // BP_KIND_* of the inputs and outputs
  bp_program_info_t info{};
  std::vector<bp_inplace_t> inplace;
};

// Answers a plugin's requests about graphs.
class GraphAnswers : public Answers {
 public:
  explicit GraphAnswers(const Graphs& graphs, const bp_compile_t* what = nullptr) : graphs_(graphs), what_(what) {}
  Status answer(Operation question, Reader& in, Writer& out, std::vector<Descriptor>& out_files) override;

 private:
  Status weight(const bp_graph_t& graph, uint32_t index, Writer& out, std::vector<Descriptor>& out_files);

  const Graphs& graphs_;
  const bp_compile_t* what_;  // its `progress` is called; may be null
};

// Fill a table with functions. Optional functions that the library lacks stay null, except `health` and `abandon`.
void fill_device_table(uint32_t offered, bp_device_api_t& out);
void fill_coverage_table(uint32_t offered, bp_coverage_api_t& out);
void fill_program_table(uint32_t offered, bp_program_api_t& out);
void fill_instance_table(uint32_t offered, bp_instance_api_t& out);
void fill_cache_table(uint32_t offered, bp_cache_api_t& out);
void fill_weights_table(uint32_t offered, bp_weights_api_t& out);

// ---- helpers --------------------------------------------------------------------------------------------------------

// Calls `body`, which returns a Status, and writes the result into `error`. Catches all exceptions.
template <class F>
bp_status_t fenced(bp_error_t* error, F&& body) noexcept {
  try {
    return Status(body()).write(error);
  } catch (const std::bad_alloc&) {
    return BP_RESOURCE_EXHAUSTED;
  } catch (...) {
    return BP_INTERNAL;
  }
}

// Writes a message into `error` although the call returns BP_OK.
void explain(bp_error_t* error, std::string_view text);
void write_options(const bp_option_t* options, uint32_t count, uint32_t stride, Writer& out);
// BP_UNSUPPORTED if the chain contains a required extension. Extensions are not sent to the process.
Status refuse_chain(const bp_chain_t* chain);
// BP_UNSUPPORTED if `flags` has a bit that must be understood. `flags` are not sent to the process; hints are ignored.
Status refuse_flags(uint32_t flags, std::string_view name);
// Writes a tensor's type, layout, extents and strides, but not its elements.
void write_tensor_form(const bp_tensor_t& tensor, Writer& out);

}  // namespace backplane::isolate
