// SPDX-License-Identifier: Apache-2.0
// The objects that an isolated backend's opaque handles point to in the loader's process, and its tables' functions.
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

// A bp_backend_t. It outlives the processes that it runs in.
class ProxyBackend {
 public:
  ProxyBackend(Library& library, const bp_backend_create_t& how);
  ~ProxyBackend();

  Library& library() const { return library_; }
  const bp_host_t* host() const { return host_; }
  // Returns the process in which the backend was created, or a new one if that has ended. BP_DEVICE_LOST if a new one
  // would start too soon after failures.
  Result<std::shared_ptr<Process>> running();
  // Called after a successful run: failures are counted from 0 again.
  void succeeded() { failures_.store(0, std::memory_order_relaxed); }

  // Time limits for setup calls and for compute calls.
  Patience short_patience() const;
  Patience long_patience(const bp_cancel_t* cancel) const;

  // Keep copies of a device description's strings and options as long as the backend lives.
  bp_text_t keep(std::string_view text);
  const bp_option_t* keep(std::vector<bp_option_t> options);

 private:
  Library& library_;
  const bp_host_t* host_;
  std::string directory_;
  Options options_;
  std::mutex mutex_;
  std::shared_ptr<Process> process_;
  std::atomic<uint32_t> failures_{0};  // processes that failed since the last successful run
  uint64_t not_before_ = 0;            // ns: when the next process may be started
  std::mutex texts_mutex_;
  std::deque<std::string> texts_;
  std::deque<std::vector<bp_option_t>> option_lists_;
};

// A handle that is valid in `process`.
struct Remote {
  std::shared_ptr<Process> process;
  uint64_t handle = 0;
};

// A bp_device_t. Opened again in a new process if the old one has ended.
struct ProxyDevice {
  ProxyBackend& backend;
  uint32_t index;
  uint64_t id;
  std::string options;  // as sent to the process

  std::mutex mutex;
  Remote remote;
  std::deque<std::string> opset_texts;
  std::vector<bp_opset_t> opsets;

  // Returns the device's handle in the running process, in which it is opened if it is not yet open there.
  Result<Remote> live();
  // Calls an operation of the device: the request is its handle and `rest`. A failed one leaves nothing behind, so it
  // is tried again if the process was killed from outside. `out_remote` may be null.
  Result<std::string> call(Operation operation, const std::string& rest, const Patience& patience, Answers* answers,
                           Remote* out_remote = nullptr);
};

// A bp_program_t. Lost with its process.
struct ProxyProgram {
  ProxyBackend& backend;
  Remote remote;
  Graphs graphs;                              // the loader's, which live as long as the program
  std::vector<uint32_t> in_kinds, out_kinds;  // BP_KIND_*
  bp_program_info_t info{};
  std::vector<bp_inplace_t> inplace;
};

// Serves a plugin's requests about graphs.
class GraphAnswers : public Answers {
 public:
  explicit GraphAnswers(const Graphs& graphs, const bp_compile_t* what = nullptr) : graphs_(graphs), what_(what) {}
  Status answer(Operation question, Reader& in, Writer& out, std::vector<Descriptor>& out_files) override;

 private:
  Status weight(const bp_graph_t& graph, uint32_t index, Writer& out, std::vector<Descriptor>& out_files);

  const Graphs& graphs_;
  const bp_compile_t* what_;  // receives the progress; may be null
};

// Fill the tables with functions, without the optional ones that the library lacks.
void fill_device_table(uint32_t offered, bp_device_api_t& out);
void fill_coverage_table(uint32_t offered, bp_coverage_api_t& out);
void fill_program_table(uint32_t offered, bp_program_api_t& out);
void fill_instance_table(uint32_t offered, bp_instance_api_t& out);
void fill_cache_table(uint32_t offered, bp_cache_api_t& out);
void fill_weights_table(uint32_t offered, bp_weights_api_t& out);

// ---- helpers --------------------------------------------------------------------------------------------------------

// Calls `body`, which returns a Status, and fills the caller's error. No exception leaves it.
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

// Writes a message that accompanies BP_OK.
void explain(bp_error_t* error, std::string_view text);
// The status for a reply that cannot be read.
Status malformed(const ProxyBackend& backend, Operation operation);
void write_options(const bp_option_t* options, uint32_t count, uint32_t stride, Writer& out);
// BP_UNSUPPORTED, with the extension's name, if the chain has a required extension.
Status refuse_chain(const bp_chain_t* chain);
// BP_UNSUPPORTED if a flag is set that must be understood: none is passed on. Hints are ignored.
Status refuse_flags(uint32_t flags, std::string_view name);
// Writes a tensor's type, layout, extents and strides, without its memory.
void write_tensor_form(const bp_tensor_t& tensor, Writer& out);

}  // namespace backplane::isolate
