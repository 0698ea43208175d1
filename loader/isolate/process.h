// SPDX-License-Identifier: Apache-2.0
// The loader's side of a process in which a backend runs. Starts the process, calls it from any number of threads, and
// determines how it ended.
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

// How long a call may take before the process is killed.
struct Patience {
  uint64_t deadline = 0;            // the caller's deadline in ns on the monotonic clock; 0: none
  uint64_t limit_ns = 0;            // limit on the call in ns, independent of the deadline; 0: none
  const bp_host_t* host = nullptr;  // the host to which the token `cancel` belongs
  const bp_cancel_t* cancel = nullptr;
};

// Replies to the process's requests during a call. The returned status is sent back, with `out` and `out_files` if the
// status is OK. `out_files` are closed in any case.
class Answers {
 public:
  virtual ~Answers() = default;
  virtual Status answer(Operation question, Reader& in, Writer& out, std::vector<Descriptor>& out_files) = 0;
};

// The numbers that the process needs for a run.
struct RunNumbers {
  uint64_t instance = 0, deadline = 0, id = 0, trace_id = 0;
  int32_t priority = 0;
  uint32_t tracing = 0;  // nonzero: spans are collected for the trace
};

class Process {
 public:
  using LogLine = std::function<void(uint32_t level, std::string_view text)>;

  // `name`, such as "backend cpu", begins error messages. `library` is the open file that the process loads. The
  // process is killed when the last reference is dropped.
  static Result<std::shared_ptr<Process>> start(std::string name, const Program& program, int library);
  ~Process();
  Process(const Process&) = delete;

  void set_name(std::string name);
  // Sets the receiver of the process's log lines; empty: none. After this returns, the previous receiver is not called.
  void set_log(LogLine line);

  // How long descriptions of devices have taken in this process, in ns.
  std::atomic<uint64_t> describing_ns{0};

  bool alive() const { return !ended_.load(std::memory_order_acquire); }
  // Whether a SIGKILL that this object did not send ended the process. The system may send one when memory is short.
  bool killed_by_others();
  // Returns BP_DEVICE_LOST with how the process ended, for a call of `during` that found it gone. Waits up to 0.5 s for
  // the process to end, then kills it.
  Status lost(Operation during);
  // Asks the process to exit, waits up to `grace` for it, then kills it.
  void end(std::chrono::milliseconds grace);
  // Kills the process. Later errors say "was killed: " and the first `why`. Does nothing after the process has ended,
  // and in a forked child.
  void kill(std::string_view why);

  // Kills a process that sent a reply that cannot be read, because it can no longer be trusted. Returns the call's
  // error.
  Status unreadable(Operation operation, std::string_view what = {});

  // Sends a request and returns the bytes after the reply's status. BP_DEVICE_LOST if the process ended; BP_TIMED_OUT
  // if it was killed because it had not replied a second after the caller's deadline.
  Result<std::string> call(Operation operation, const std::string& request, const std::vector<int>& files,
                           const Patience& patience, Answers* answers = nullptr);
  // Runs an instance without containers. Sends only numbers. A successful run makes no heap allocation if a lane is
  // idle and the process sends no requests.
  Status run(const RunNumbers& run, const Patience& patience, Answers& answers);

 private:
  struct Lane {
    std::unique_ptr<Channel> channel;
    uint32_t number = 0;
    uint64_t calls = 0;
  };
  class Lease;
  class Waiting;

  Process(std::string name, Descriptor control);
  static void discard(Process* process);
  Status launch(const Program& program, const std::vector<int>& files) noexcept;
  // Like `kill`, but the caller holds `mutex_` and the process has not been reaped.
  void kill_locked(std::string_view why);
  void watch();
  bool read_log();
  Result<Lane*> acquire(Operation operation, Check& check);
  void give_back(Lane* lane);
  Result<std::string> converse(Lease& lease, Operation operation, const Patience& patience, Check& check,
                               Answers* answers);
  Status broken(Operation operation, const Status& status);

  const int owner_;     // process id; a forked child has no watching thread
  pid_t child_ = -1;    // constant once the process was launched, as is process_
  Descriptor process_;  // a pidfd
  Descriptor control_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> idle_;
  bool reaped_ = true;  // there is no process: it was not launched, or has ended
  std::string killed_why_;
  std::string how_;  // how the process ended
  bool killed_by_others_ = false;
  std::atomic<bool> ended_{false};

  std::mutex log_mutex_;
  LogLine log_;
  std::unique_ptr<std::thread> watcher_;
};

}  // namespace backplane::isolate
