// SPDX-License-Identifier: Apache-2.0
// The harness in the role of a plugin's host: the host table, with faults on demand and with counters.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backplane/host.h"

struct bp_cancel_t {
  std::atomic<bool> set = false;
};

// A plugin's registration of a callback for a cancel token. A separate thread polls the token.
struct bp_cancel_link_t {
  bp_cancel_link_t(const bp_cancel_t& token, const bp_on_cancel_t& what);

  std::jthread watcher;
};

struct bp_semaphore_t {
  // All functions are [thread-safe].
  bp_status_t wait(uint64_t value, uint64_t deadline, const bp_cancel_t* cancel);
  void signal(uint64_t value, bool failed);
  bp_status_t query(uint64_t* out_value);

 private:
  bool failed(uint64_t value) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> failures_;  // values in (first, second] have failed
};

namespace backplane::conform {

// Nanoseconds on the monotonic clock, which deadlines use.
uint64_t now_ns();

// A span that a plugin reported, with a copy of its nodes.
struct Span {
  uint32_t kind;
  uint64_t begin, end;  // in nanoseconds
  std::vector<uint64_t> nodes;
};

// Must outlive the backends that use it. [thread-safe]
class Host {
 public:
  explicit Host(uint32_t version = BP_ABI_VERSION, uint32_t threads = 2);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const bp_host_t* table() const { return &table_; }
  // Sets the optional slots to NULL. Must be called before the table is used.
  void remove_optional_slots();
  // Lets `successes` more allocations succeed, then fails every allocation until `stop_failing`.
  void fail_after(uint64_t successes);
  void stop_failing() { fail_after(UINT64_MAX); }

  // Turns tracing on, so that plugins report spans.
  void collect_spans() { tracing_ = true; }
  std::vector<Span> spans();
  // Waits for the tasks that plugins submitted. The destructor of Backend does so before it destroys the backend.
  void finish();

  uint64_t failures() const { return failures_; }  // number of allocations failed so far
  uint64_t live_bytes();
  // A description, in one line, of the last misuse of the table by a plugin; empty if there was none.
  std::string misuse();

 private:
  struct Slots;
  struct Block {
    uint64_t bytes, alignment;
  };

  bp_host_t table_ = {};
  const uint32_t threads_;  // the number of threads that loops use
  std::atomic<uint64_t> failures_ = 0, left_ = UINT64_MAX;
  std::atomic<bool> tracing_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t tasks_ = 0;  // number of running tasks
  std::vector<Span> spans_;
  std::map<void*, Block> blocks_;
  std::string misuse_;
};

}  // namespace backplane::conform
