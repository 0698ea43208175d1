// SPDX-License-Identifier: Apache-2.0
// The loader's bp_host_t. Services belong to an environment; a Host is one backend's view of them, with its own
// options and its name before each log line.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backplane/loader.h"
#include "base/status.h"
#include "host/log.h"
#include "host/trace.h"

namespace backplane {

// Log, threads, allocator, topology, trace: created from bp_env_desc_t.
class Services {
 public:
  explicit Services(const bp_env_desc_t& desc);
  ~Services();
  Log& log() { return log_; }
  Trace& trace() { return trace_; }
  uint32_t thread_count() const;
  void parallel_for(const bp_loop_t& loop);
  // See bp_host_t.submit in the ABI's host.h.
  Status submit(const bp_task_t& task);
  // Uses shared blocks for large sizes if `share_large_memory` was called and the framework supplies no allocator.
  void* allocate(uint64_t bytes, uint64_t alignment);
  void release(void* memory, uint64_t bytes, uint64_t alignment);
  // Makes later allocations above a certain size mappable by the processes of isolated backends.
  void share_large_memory() { shares_.store(true, std::memory_order_relaxed); }
  Status topology(bp_topology_t& out);

 private:
  struct Impl;
  Log log_;
  Trace trace_;
  std::atomic<bool> shares_{false};
  std::unique_ptr<Impl> impl_;
};

class Host {
 public:
  using Options = std::map<std::string, std::string, std::less<>>;
  Host(std::shared_ptr<Services> services, std::string backend_id, Options options, uint32_t version);
  Host(const Host&) = delete;  // the table points to it
  const bp_host_t* table() const { return &table_; }
  Services& services() const { return *services_; }
  const Options& options() const { return options_; }
  const std::string& backend_id() const { return backend_id_; }
  // The id of the backend's device 0, for spans that name no device.
  void set_first_device(uint64_t id) { first_device_ = id; }
  uint64_t first_device() const { return first_device_; }
  // Runs a task of the backend on another thread.
  Status submit(const bp_task_t& task);
  // Waits until all tasks have finished.
  void finish();

 private:
  struct Task;
  std::shared_ptr<Services> services_;
  std::string backend_id_;
  Options options_;
  uint64_t first_device_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t tasks_ = 0;
  const int owner_;  // process id: a forked child has no threads that would finish the tasks
  bp_host_t table_;
};

}  // namespace backplane
