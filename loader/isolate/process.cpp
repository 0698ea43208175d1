// SPDX-License-Identifier: Apache-2.0
#include "isolate/process.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <new>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/coverage_limits.h"
#include "isolate/control.h"

namespace backplane::isolate {
namespace {

constexpr uint64_t kGraceNs = 1'000'000'000;         // ns after the caller's deadline
constexpr uint64_t kCancelGraceNs = 10'000'000'000;  // ns after a cancellation
constexpr size_t kMostLanes = 512;                   // calls in progress
constexpr size_t kMostWhy = 200;                     // bytes of the reason for a kill
constexpr int kMostLines = 512;  // lines of the log that are read at a time; the socket's buffer holds fewer
constexpr std::chrono::seconds kEndGrace{5};  // after a SIGKILL

// Sends a packet. Returns 0 or an errno value. Never blocks, because the process may not read its control socket.
int send_packet(int socket, const ControlPacket& packet, const std::vector<int>& files) {
  iovec part{const_cast<ControlPacket*>(&packet), sizeof packet};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))] = {};
  if (!files.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), files.data(), files.size() * sizeof(int));
  }
  ssize_t sent;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

}  // namespace

// Borrows a lane (a channel and its number) for one call. Kills the process if the call is not finished, because the
// process would wait for the rest of it forever.
class Process::Lease {
 public:
  Lease(Process& process, Lane* lane) : process_(process), lane_(lane) {}
  ~Lease() {
    if (finished_)
      process_.give_back(lane_);
    else
      process_.kill("a call to it was not finished");
  }
  Lease(const Lease&) = delete;
  Lane& lane() const { return *lane_; }
  void begin(const Patience& patience) const {
    Page& page = lane_->channel->page();
    page.call.store(++lane_->calls, std::memory_order_relaxed);
    const bool cancelled = patience.cancel && patience.host->cancelled(patience.host, patience.cancel);
    page.cancelled.store(cancelled, std::memory_order_relaxed);
  }
  void finish() { finished_ = true; }

 private:
  Process& process_;
  Lane* lane_;
  bool finished_ = false;
};

Process::Process(std::string name, Descriptor control)
    : owner_(getpid()), control_(std::move(control)), name_(std::move(name)) {
  // Reserved now, so that adding a lane, giving one back and killing the process need no memory later.
  lanes_.reserve(kMostLanes);
  idle_.reserve(kMostLanes);
  killed_why_.reserve(kMostWhy);
}

Result<std::shared_ptr<Process>> Process::start(std::string name, const Program& program, int library) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Status(BP_RESOURCE_EXHAUSTED, std::string("cannot create a socket for a backend: ") + std::strerror(errno));
  Descriptor own(ends[0]), other(ends[1]);
  std::shared_ptr<Process> started(new Process(std::move(name), std::move(own)), discard);
  std::promise<Status> launched;
  std::future<Status> result = launched.get_future();
  // The watching thread starts the process. The kernel kills the process when the thread that started it ends, not only
  // when the loader's process does (PR_SET_PDEATHSIG), and a thread of the framework may end at any time.
  try {
    started->watcher_ =
        std::make_unique<std::thread>([raw = started.get(), &program, files = std::vector<int>{other.get(), library},
                                       launched = std::move(launched)]() mutable {
          Status status = raw->launch(program, files);
          const bool is_running = status.ok();
          launched.set_value(std::move(status));
          if (is_running) raw->watch();
        });
  } catch (const std::system_error& error) {
    return Status(BP_RESOURCE_EXHAUSTED, std::string("cannot start a thread for a backend's process: ") + error.what());
  }
  BP_TRY(result.get());
  return started;
}

// Runs on the watching thread.
Status Process::launch(const Program& program, const std::vector<int>& files) noexcept {
  try {
    BP_ASSIGN(const pid_t child, spawn(program, files));
    process_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    if (!process_) {
      const int error = errno;
      ::kill(-child, SIGKILL);
      if (error != ESRCH) ::waitpid(child, nullptr, 0);
      return {BP_UNSUPPORTED, std::string("cannot get a descriptor of a backend's process: ") + std::strerror(error)};
    }
    child_ = child;
    reaped_ = false;
    return {};
  } catch (const std::bad_alloc&) {
    return {BP_RESOURCE_EXHAUSTED, "no memory is left to start a backend's process"};
  }
}

// Kills the process and deletes the object. If the process does not end, because it is stuck in a driver, its watching
// thread and this object stay.
void Process::discard(Process* process) {
  if (process->owner_ == getpid()) {
    process->kill("it is no longer needed");
    std::unique_lock lock(process->mutex_);
    if (!process->changed_.wait_for(lock, kEndGrace, [&] { return process->reaped_; })) return;
  }
  delete process;
}

Process::~Process() {
  if (!watcher_) return;
  if (owner_ == getpid())
    watcher_->join();
  else  // this is a forked child, which has no such thread
    static_cast<void>(watcher_.release());
}

void Process::set_name(std::string name) {
  const std::lock_guard lock(mutex_);
  name_ = std::move(name);
}

void Process::set_log(LogLine line) {
  if (owner_ != getpid()) return;  // the watching thread may have held the mutex during the fork
  const std::lock_guard lock(log_mutex_);
  log_ = std::move(line);
}

bool Process::killed_by_others() {
  const std::lock_guard lock(mutex_);
  return killed_by_others_;
}

void Process::kill(std::string_view why) {
  if (owner_ != getpid()) return;
  const std::lock_guard lock(mutex_);
  if (!reaped_) kill_locked(why);
}

void Process::kill_locked(std::string_view why) {
  if (killed_why_.empty()) killed_why_ = why.substr(0, killed_why_.capacity());
  ::kill(-child_, SIGKILL);
  ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);  // it may have joined another group
}

void Process::end(std::chrono::milliseconds grace) {
  if (owner_ != getpid()) return;
  ::shutdown(control_.get(), SHUT_WR);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, grace, [&] { return reaped_; });
  if (!reaped_) kill_locked("it did not exit when asked");
}

// Runs on the watching thread. Forwards the log until the process ends, then wakes all callers.
void Process::watch() {
  bool lost_sight = false;
  for (bool listening = true;;) {
    pollfd watched[] = {{process_.get(), POLLIN, 0}, {listening ? control_.get() : -1, POLLIN, 0}};
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) {
      lost_sight = true;
      break;
    }
    if (watched[1].revents) listening = read_log();
    if (watched[0].revents) break;
  }
  read_log();
  const std::lock_guard lock(mutex_);
  // Kills the process group before its leader is reaped. After that, the kernel could reuse the group's number.
  if (lost_sight)
    kill_locked("it could not be watched");
  else
    ::kill(-child_, SIGKILL);
  siginfo_t end{};
  int result;
  do result = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process_.get()), &end, WEXITED);
  while (result != 0 && errno == EINTR);
  reaped_ = true;
  if (!killed_why_.empty()) {
    how_ = "was killed: " + killed_why_;
  } else if (result == 0 && (end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED)) {
    const char* signal = sigabbrev_np(end.si_status);
    killed_by_others_ = end.si_status == SIGKILL;
    how_ = "crashed (SIG" + std::string(signal ? signal : "?") + ")";
  } else if (result == 0) {
    how_ = "ended the process (exit code " + std::to_string(end.si_status) + ")";
  } else {
    how_ = "ended the process";  // no details: the framework ignores SIGCHLD or reaps all children
  }
  ended_.store(true, std::memory_order_release);
  for (const auto& lane : lanes_) lane->channel->wake();
  changed_.notify_all();
}

// Forwards some lines of the log. Returns whether there may be more later. The number is bounded, because a process
// that the plugin started could go on logging and so keep the watching thread from noticing the end.
bool Process::read_log() {
  char packet[kMostLogBytes];
  for (int i = 0; i < kMostLines; ++i) {
    const ssize_t got = ::recv(control_.get(), packet, sizeof packet, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    uint32_t level;
    if (static_cast<size_t>(got) < sizeof level) continue;
    std::memcpy(&level, packet, sizeof level);
    const std::lock_guard lock(log_mutex_);
    if (log_ && level >= BP_LOG_ERROR && level <= BP_LOG_DEBUG)
      log_(level, {packet + sizeof level, static_cast<size_t>(got) - sizeof level});
  }
  return true;
}

Status Process::lost(Operation during) {
  std::unique_lock lock(mutex_);
  // A process that ends closes its sockets shortly before it can be reaped.
  if (!changed_.wait_for(lock, std::chrono::milliseconds(500), [&] { return reaped_; })) {
    kill_locked("it closed a descriptor that is not its own");
    changed_.wait_for(lock, kEndGrace, [&] { return reaped_; });
  }
  return Status(BP_DEVICE_LOST, name_ + " " + (reaped_ ? how_ : "does not end") + " while it " + activity(during))
      .with_flags(BP_ERROR_DEVICE_LOST);
}

// Returns an idle lane, or opens one. Waits while the process has not received the lanes that were opened before.
Result<Process::Lane*> Process::acquire(Operation operation, Check& check) {
  if (owner_ != getpid())
    return Status(BP_FORKED,
                  name_ + " was started by the process that this one was forked from: create a new environment");
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Lane* lane = idle_.back();
      idle_.pop_back();
      return lane;
    }
  }
  auto lane = std::make_unique<Lane>();
  Descriptor socket, page;
  BP_ASSIGN(lane->channel, Channel::make(socket, page));
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    {
      const std::lock_guard lock(mutex_);
      if (lanes_.size() == kMostLanes)
        return Status(BP_RESOURCE_EXHAUSTED,
                      name_ + ": more than " + std::to_string(kMostLanes) + " calls at the same time");
      lane->number = static_cast<uint32_t>(lanes_.size());
      const ControlPacket packet{ControlPacket::kNewChannel, lane->number, 0};
      const int error = send_packet(control_.get(), packet, {socket.get(), page.get()});
      if (error == 0) {
        lanes_.push_back(std::move(lane));
        return lanes_.back().get();
      }
      if (error == EPIPE || error == ECONNRESET || error == ENOTCONN) break;
    }
    BP_TRY(check.check());
  }
  return lost(operation);
}

void Process::give_back(Lane* lane) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(lane);
}

// Decides whether a caller keeps waiting for a call.
class Process::Waiting : public Check {
 public:
  Waiting(Process& process, Operation operation, const Patience& patience)
      : process_(process), operation_(operation), patience_(patience) {}

  // Called when the caller has a lane.
  void begin(const Lane& lane) { lane_ = &lane; }

  Status check() override {
    if (!process_.alive()) return process_.lost(operation_);
    const uint64_t now = monotonic_now();
    if (patience_.cancel && !cancelled_at_ && patience_.host->cancelled(patience_.host, patience_.cancel)) {
      if (!lane_) return {BP_CANCELLED, "the call was cancelled before it began"};
      cancelled_at_ = now;
      // A process that has not read the call yet ignores the packet below, and finds this mark when it reads the call.
      lane_->channel->page().cancelled.store(1, std::memory_order_relaxed);
    }
    // The socket may be full, because the process is slow or many calls are cancelled at once.
    if (cancelled_at_ && !is_sent_)
      is_sent_ = send_packet(process_.control_.get(), {ControlPacket::kCancel, lane_->number, lane_->calls}, {}) == 0;
    const bool has_deadline = patience_.deadline && patience_.deadline != BP_FOREVER;
    const bool late = has_deadline && is_over(std::max(patience_.deadline, begin_), kGraceNs, now);
    const bool stubborn = cancelled_at_ && is_over(cancelled_at_, kCancelGraceNs, now);
    const bool hangs = patience_.limit_ns && is_over(begin_, patience_.limit_ns, now);
    if (!late && !stubborn && !hangs) return {};
    process_.kill(stubborn ? "it ignored a cancellation" : "it did not return in time");
    Status lost = process_.lost(operation_);
    if (!late) return lost;
    return Status(BP_TIMED_OUT, std::string(lost.text())).with_flags(BP_ERROR_DEVICE_LOST);
  }

 private:
  // Whether more than `ns` have passed since `begin`. Subtracts, because `begin + ns` could wrap.
  static bool is_over(uint64_t begin, uint64_t ns, uint64_t now) { return now > begin && now - begin > ns; }

  Process& process_;
  const Lane* lane_ = nullptr;
  Operation operation_;
  const Patience& patience_;
  uint64_t begin_ = monotonic_now(), cancelled_at_ = 0;
  bool is_sent_ = false;  // whether the process was sent the cancellation
};

// Returns the error of a call in which the channel or a check failed with `status`. If the channel lost the process, or
// received bytes that are not a message, the error says how the process ended.
Status Process::broken(Operation operation, const Status& status) {
  if (status.code() == BP_CORRUPT) return unreadable(operation, status.text());
  const bool is_explained = status.flags() & BP_ERROR_DEVICE_LOST;
  return status.code() != BP_DEVICE_LOST || is_explained ? status : lost(operation);
}

Status Process::unreadable(Operation operation, std::string_view what) {
  kill("it sent a reply that cannot be read" + (what.empty() ? std::string() : " (" + std::string(what) + ")"));
  return lost(operation);
}

namespace {

// The largest reply to a call, in bytes. Descriptions of devices, and coverage, take several times as much memory once
// they have been read.
uint64_t most_reply(Operation operation) {
  switch (operation) {
    case Operation::kCountDevices:
    case Operation::kDeviceInfo:
    case Operation::kOpen:
    case Operation::kHealth:
    case Operation::kOpsets:
    case Operation::kInfer:
      return uint64_t{16} << 20;
    case Operation::kCoverage:
    case Operation::kReview:
      return 2 * kMaxAnswerBytes;  // includes the coverage of subgraphs, and the last part of a split
    default:
      return kMostReply;
  }
}

}  // namespace

// Replies to the process's requests until it replies to the call. Returns the bytes after the reply's status.
Result<std::string> Process::converse(Lease& lease, Operation operation, const Patience& patience, Check& check,
                                      Answers* answers) {
  Channel& channel = *lease.lane().channel;
  for (;;) {
    if (Status status = channel.await(check, patience.cancel ? 1000 : kSliceUs); !status.ok()) return status;
    if (channel.turn() == Turn::kDone) {
      lease.finish();
      return std::string();
    }
    auto received = channel.receive(most_reply(operation), check);
    if (!received.ok()) return broken(operation, received.status());
    Reader in(received->bytes);
    if (received->operation == Operation::kReply) {
      Status status = in.status();
      if (!in.ok()) return broken(operation, {BP_CORRUPT, "no status"});
      lease.finish();
      if (!status.ok()) return status;
      received->bytes.erase(0, sizeof(bp_status_t));
      return std::move(received->bytes);
    }
    Writer out;
    std::vector<Descriptor> files;
    Status answer;
    try {
      answer = answers ? answers->answer(received->operation, in, out, files)
                       : Status(BP_BAD_STATE, "this request is not allowed during the call");
    } catch (const std::bad_alloc&) {
      answer = {BP_RESOURCE_EXHAUSTED, "the loader is out of memory"};
    }
    Writer reply;
    reply.status(answer);
    std::vector<int> numbers;
    if (answer.ok())
      for (const Descriptor& file : files) numbers.push_back(file.get());
    channel.pass(Turn::kMessage);
    if (Status status =
            channel.send(Operation::kReply, reply.take() + (answer.ok() ? out.take() : std::string()), numbers, check);
        !status.ok())
      return broken(operation, status);
    BP_TRY(check.check());  // a process must not delay the caller forever with endless requests
  }
}

Result<std::string> Process::call(Operation operation, const std::string& request, const std::vector<int>& files,
                                  const Patience& patience, Answers* answers) {
  if (!alive()) return lost(operation);
  if (request.size() > kMostRequest)
    return Status(BP_UNSUPPORTED, "a call to an isolated backend needs a message of " + std::to_string(request.size()) +
                                      " bytes; the limit is " + std::to_string(kMostRequest));
  Waiting check(*this, operation, patience);
  BP_ASSIGN(Lane * lane, acquire(operation, check));
  Lease lease(*this, lane);
  check.begin(*lane);
  lease.begin(patience);
  lane->channel->pass(Turn::kMessage);
  if (Status status = lane->channel->send(operation, request, files, check); !status.ok())
    return broken(operation, status);
  return converse(lease, operation, patience, check, answers);
}

Status Process::run(const RunNumbers& run, const Patience& patience, Answers& answers) {
  if (!alive()) return lost(Operation::kRun);
  Waiting check(*this, Operation::kRun, patience);
  BP_ASSIGN(Lane * lane, acquire(Operation::kRun, check));
  Lease lease(*this, lane);
  check.begin(*lane);
  lease.begin(patience);
  Page& page = lane->channel->page();
  page.instance.store(run.instance, std::memory_order_relaxed);
  page.deadline.store(run.deadline, std::memory_order_relaxed);
  page.id.store(run.id, std::memory_order_relaxed);
  page.trace_id.store(run.trace_id, std::memory_order_relaxed);
  page.priority.store(run.priority, std::memory_order_relaxed);
  page.tracing.store(run.tracing, std::memory_order_relaxed);
  page.cancellable.store(patience.cancel != nullptr, std::memory_order_relaxed);
  lane->channel->pass(Turn::kRun);
  return converse(lease, Operation::kRun, patience, check, &answers).take_status();
}

}  // namespace backplane::isolate
