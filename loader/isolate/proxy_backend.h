// SPDX-License-Identifier: Apache-2.0
// The loader's side of an isolated backend: holds the process in which the backend runs, and starts a new one after
// that process has ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backplane/plugin.h"
#include "base/status.h"
#include "isolate/library.h"
#include "isolate/process.h"

namespace backplane::isolate {

using Options = std::vector<std::pair<std::string, std::string>>;

// The object to which a bp_backend_t of an isolated plugin points. Survives the processes in which the backend runs.
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

  // The properties that identify device `index` in every process of the backend, from its first description; empty if
  // it was never described.
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

}  // namespace backplane::isolate
