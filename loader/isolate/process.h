// SPDX-License-Identifier: Apache-2.0
// The loader's side of one process in which a backend runs: starting it, calling it from any number of threads, and
// noticing how it ended.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backplane/host.h"
#include "base/status.h"
#include "isolate/channel.h"
#include "isolate/descriptor.h"
#include "isolate/message.h"
#include "isolate/operation.h"
#include "isolate/spawn.h"

namespace backplane::isolate {

// How long a call may take.
struct Patience {
  uint64_t deadline = 0;            // of the caller, ns on the monotonic clock; 0: none
  uint64_t limit_ns = 0;            // after which the process is killed whatever the caller said; 0: none
  const bp_host_t* host = nullptr;  // the host that `cancel` belongs to
  const bp_cancel_t* cancel = nullptr;
};

// Requests from the process during a call. The status of an answer is sent back to it; `out_files` are borrowed until
// the answer was sent.
class Answers {
 public:
  virtual ~Answers() = default;
  virtual Status answer(Operation question, Reader& in, Writer& out, std::vector<Descriptor>& out_files) = 0;
};

// One run by its numbers alone.
struct RunNumbers {
  uint64_t instance = 0, deadline = 0, id = 0, trace_id = 0;
  int32_t priority = 0;
  uint32_t tracing = 0;  // spans are wanted
};

class Process {
 public:
  using LogLine = std::function<void(uint32_t level, std::string_view text)>;

  // `name` begins the texts of errors: "backend cpu". `library` is passed as an open file.
  static Result<std::shared_ptr<Process>> start(std::string name, const Program& program, int library);
  // Ends the process at once.
  ~Process();
  Process(const Process&) = delete;

  void set_name(std::string name);
  // Where the log lines of the process go; empty: nowhere. When it returns, the one before is no longer called.
  void set_log(LogLine line);

  bool alive() const { return !ended_.load(std::memory_order_acquire); }
  // Whether it ended by SIGKILL that this process did not send, as the system does when memory is short.
  bool killed_by_others();
  // The status of every call once it has ended.
  Status lost(Operation during);
  // Lets it end by itself, within `grace`; then kills it.
  void end(std::chrono::milliseconds grace);
  void kill(std::string why);

  // Sends a request and returns what follows the status in the answer. BP_DEVICE_LOST where the process ended,
  // BP_TIMED_OUT where it had to be killed long after the caller's deadline.
  Result<std::string> call(Operation operation, const std::string& request, const std::vector<int>& files,
                           const Patience& patience, Answers* answers = nullptr);
  // A run without anything but numbers: it allocates nothing.
  Status run(const RunNumbers& run, const Patience& patience, Answers& answers);

 private:
  struct Lane {
    std::unique_ptr<Channel> channel;
    uint32_t number = 0;
    uint64_t calls = 0;
  };
  class Lease;
  class Waiting;

  Process(std::string name, pid_t child, Descriptor process, Descriptor control);
  void watch();
  void read_log();
  Result<Lane*> acquire();
  void give_back(Lane* lane);
  Result<std::string> converse(Lease& lease, Operation operation, const Patience& patience, Check& check,
                               Answers* answers);
  Status broken(Operation operation, const Status& status);

  const int owner_;  // the process that started it: a fork's child has no thread that watches
  const pid_t child_;
  Descriptor process_;  // a pidfd
  Descriptor control_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> idle_;
  bool reaped_ = false;
  std::string killed_why_;
  std::string how_;  // how the process ended
  bool killed_by_others_ = false;
  std::atomic<bool> ended_{false};

  std::mutex log_mutex_;
  LogLine log_;
  std::unique_ptr<std::thread> watcher_;
};

}  // namespace backplane::isolate
