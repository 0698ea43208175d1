// SPDX-License-Identifier: Apache-2.0
// The harness as the host of a plugin: the host table, with faults on demand and counters.
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

// A plugin's registration for a callback; a separate thread polls the token.
struct bp_cancel_link_t {
  bp_cancel_link_t(const bp_cancel_t& token, const bp_on_cancel_t& what);

  std::jthread watcher;
};

struct bp_semaphore_t {
  // All [thread-safe].
  bp_status_t wait(uint64_t value, uint64_t deadline, const bp_cancel_t* cancel);
  void signal(uint64_t value, bool failed);
  bp_status_t query(uint64_t* out_value);

 private:
  bool failed(uint64_t value) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> failures_;  // values (first, second] have failed
};

namespace backplane::conform {

// Nanoseconds on the monotonic clock, the clock of deadlines.
uint64_t now_ns();

// A span, with its nodes copied.
struct Span {
  uint32_t kind;
  uint64_t begin, end;  // ns
  std::vector<uint64_t> nodes;
};

// Must outlive the backends that use it. [thread-safe]
class Host {
 public:
  explicit Host(uint32_t version = BP_ABI_VERSION, uint32_t threads = 2);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const bp_host_t* table() const { return &table_; }
  // Sets every slot that may be NULL to NULL. To be called before the table is used.
  void remove_optional_slots();
  // Lets `successes` more allocations succeed and fails all after them, until `stop_failing`.
  void fail_after(uint64_t successes);
  void stop_failing() { fail_after(UINT64_MAX); }

  // Starts collecting the spans that plugins report.
  void collect_spans() { tracing_ = true; }
  std::vector<Span> spans();
  // Waits for the tasks that plugins submitted. To be called before a backend is destroyed.
  void finish();

  uint64_t failures() const { return failures_; }  // failed allocations since the start
  uint64_t live_bytes();
  // The last misuse of the table by a plugin, in one line; empty if there was none.
  std::string misuse();

 private:
  struct Slots;
  struct Block {
    uint64_t bytes, alignment;
  };

  bp_host_t table_ = {};
  const uint32_t threads_;  // the number that loops use
  std::atomic<uint64_t> failures_ = 0, left_ = UINT64_MAX;
  std::atomic<bool> tracing_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t tasks_ = 0;  // running tasks
  std::vector<Span> spans_;
  std::map<void*, Block> blocks_;
  std::string misuse_;
};

}  // namespace backplane::conform
