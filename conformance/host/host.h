// SPDX-License-Identifier: Apache-2.0
// What the harness lends a plugin: the host table, with faults on demand and a count of everything.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "backplane/host.h"

struct bp_cancel_t {
  std::atomic<bool> set = false;
};

struct bp_semaphore_t {
  // All [thread-safe].
  bp_status_t wait(uint64_t value, uint64_t deadline, const bp_cancel_t* cancel);
  void signal(uint64_t value, bp_status_t status);
  bp_status_t query(uint64_t* out_value);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_ = 0;
  bp_status_t status_ = BP_OK;
};

namespace backplane::conform {

// Nanoseconds on the monotonic clock, the clock of deadlines.
uint64_t now_ns();

// Lives longer than the backends that it was given to. [thread-safe]
class Host {
 public:
  explicit Host(uint32_t version = BP_ABI_VERSION, uint32_t threads = 2);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const bp_host_t* table() const { return &table_; }
  // Takes away every slot that may be NULL. Before the table is given to anybody.
  void strip();
  // Lets `successes` more allocations succeed and fails all after them, until `heal`.
  void fail_after(uint64_t successes);
  void heal() { fail_after(UINT64_MAX); }

  uint64_t failures() const { return failures_; }  // of allocations, since the beginning
  uint64_t live_bytes();
  // What the plugin did wrong with the table: one line, or empty.
  std::string misuse();

 private:
  struct Slots;
  struct Block {
    uint64_t bytes, alignment;
  };

  bp_host_t table_ = {};
  const uint32_t threads_;  // that loops use
  std::atomic<uint64_t> failures_ = 0, left_ = UINT64_MAX;
  std::mutex mutex_;
  std::map<void*, Block> blocks_;
  std::string misuse_;
};

}  // namespace backplane::conform
