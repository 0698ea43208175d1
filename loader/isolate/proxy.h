// SPDX-License-Identifier: Apache-2.0
// The objects that an isolated backend's opaque handles point at in the loader's process, and its tables' functions.
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
  // The process, in which the backend was created; a new one where the last one has ended. BP_DEVICE_LOST while a new
  // one would come too soon after failures.
  Result<std::shared_ptr<Process>> running();
  // A run ended well: the next failure is the first one again.
  void succeeded() { failures_.store(0, std::memory_order_relaxed); }

  // Time limits for setup calls and for compute calls.
  Patience short_patience() const;
  Patience long_patience(const bp_cancel_t* cancel) const;

  // Text of device descriptions, which lives as long as the backend.
  bp_text_t keep(std::string_view text);
  const bp_option_t* keep(std::vector<bp_option_t> options);

 private:
  Library& library_;
  const bp_host_t* host_;
  std::string directory_;
  Options options_;
  std::mutex mutex_;
  std::shared_ptr<Process> process_;
  std::atomic<uint32_t> failures_{0};  // processes that ended since a run ended well
  uint64_t not_before_ = 0;            // ns: when the next process may be started
  std::mutex texts_mutex_;
  std::deque<std::string> texts_;
  std::deque<std::vector<bp_option_t>> option_lists_;
};

// An object in a process.
struct Remote {
  std::shared_ptr<Process> process;
  uint64_t handle = 0;
};

// A bp_device_t. Opened again in a new process where the old one has ended.
struct ProxyDevice {
  ProxyBackend& backend;
  uint32_t index;
  uint64_t id;
  std::string options;  // as they are sent

  std::mutex mutex;
  Remote remote;
  std::deque<std::string> opset_texts;
  std::vector<bp_opset_t> opsets;

  // Where it is open now.
  Result<Remote> live();
  // An operation of the device itself, whose request is its handle and `rest`. It leaves nothing behind where it fails,
  // so that it is tried again where the process was killed from outside. `out_remote` may be null.
  Result<std::string> call(Operation operation, const std::string& rest, const Patience& patience, Answers* answers,
                           Remote* out_remote = nullptr);
};

// A bp_program_t. Lost with its process.
struct ProxyProgram {
  ProxyBackend& backend;
  Remote remote;
  Graphs graphs;                              // of the loader, which live as long as the program
  std::vector<uint32_t> in_kinds, out_kinds;  // BP_KIND_*
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
  const bp_compile_t* what_;  // whose progress is reported
};

// The functions of the tables, without the optional ones that the library lacks.
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

// A text with BP_OK.
void explain(bp_error_t* error, std::string_view text);
// A reply whose bytes are not what was expected.
Status malformed(const ProxyBackend& backend, Operation operation);
void write_options(const bp_option_t* options, uint32_t count, uint32_t stride, Writer& out);
// A chain with something that is required, or a native handle: refused by name.
Status refuse_chain(const bp_chain_t* chain);
// Flags that must be understood are refused: none is passed on. Hints are ignored.
Status refuse_flags(uint32_t flags, std::string_view name);
// Type, extents and strides of a tensor, without its memory.
void write_tensor_form(const bp_tensor_t& tensor, Writer& out);

}  // namespace backplane::isolate
