// SPDX-License-Identifier: Apache-2.0
// The loader's bp_host_t. The services belong to an environment. A Host offers them to one backend, together with that
// backend's options, and labels the backend's log lines with its id.
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

// Log, threads, allocator, topology and trace, as bp_env_desc_t configures them.
class Services {
 public:
  explicit Services(const bp_env_desc_t& desc);
  ~Services();
  Log& log() { return log_; }
  Trace& trace() { return trace_; }
  uint32_t thread_count() const;
  void parallel_for(const bp_loop_t& loop);
  // Documented at bp_host_t.submit in host.h of the ABI.
  Status submit(const bp_task_t& task);
  // Returns NULL if memory is exhausted or `alignment` is not a power of two up to 4096.
  void* allocate(uint64_t bytes, uint64_t alignment);
  // Like `allocate`, but sizes of at least kSharedFrom (services.cpp) are allocated in shared blocks, unless the
  // framework supplies an allocator, or no block can be allocated. The processes of isolated
  // backends can map such blocks, and change them at any time.
  void* allocate_shareable(uint64_t bytes, uint64_t alignment);
  // Frees what either function returned.
  void release(void* memory, uint64_t bytes, uint64_t alignment);
  Status topology(bp_topology_t& out);

 private:
  struct Impl;
  Log log_;
  Trace trace_;
  std::unique_ptr<Impl> impl_;
};

class Host {
 public:
  using Options = std::map<std::string, std::string, std::less<>>;
  Host(std::shared_ptr<Services> services, std::string backend_id, Options options, uint32_t version);
  Host(const Host&) = delete;  // the table points to this object
  const bp_host_t* table() const { return &table_; }
  Services& services() const { return *services_; }
  const Options& options() const { return options_; }
  const std::string& backend_id() const { return backend_id_; }
  // The id of the backend's device 0. Spans that name no device belong to it.
  void set_first_device(uint64_t id) { first_device_ = id; }
  uint64_t first_device() const { return first_device_; }
  // Runs a task of the backend on another thread.
  Status submit(const bp_task_t& task);
  // Waits until all tasks of the backend have ended.
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
  const int owner_;  // process id; a forked child lacks the threads that run the tasks
  bp_host_t table_;
};

}  // namespace backplane
