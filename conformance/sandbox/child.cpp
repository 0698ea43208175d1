// SPDX-License-Identifier: Apache-2.0
#include "sandbox/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/printable.h"
#include "sandbox/channel.h"
#include "sandbox/cpu_starvation.h"

namespace backplane::conform {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kRecords = 3;
constexpr size_t kMaxReason = 64 << 10;  // bytes; a reason may contain a message from the plugin
constexpr milliseconds kTick{100};       // shorter waits for a processor do not extend the deadline

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

// Prints the output of a child and its plugin to standard error. Each line is marked as the plugin's and made
// printable. Lines beyond kMaxLines are only counted.
class Printed {
 public:
  void append(std::string_view text) {
    for (const char c : text) {
      if (c == '\n')
        finish_line();
      else if (line_.size() < kMaxLineBytes)
        line_ += c;
    }
  }
  ~Printed() {
    if (!line_.empty()) finish_line();
    if (lines_ > kMaxLines)
      print(fmt::format("plugin: and {} more {}\n", lines_ - kMaxLines, lines_ - kMaxLines == 1 ? "line" : "lines"));
  }

 private:
  static constexpr size_t kMaxLineBytes = 1000;
  static constexpr uint64_t kMaxLines = 200;

  void finish_line() {
    if (++lines_ <= kMaxLines) print(fmt::format("plugin: {}\n", cli::printable(line_)));
    line_.clear();
  }
  // Ignores errors, which fmt::print throws: a full disk or a closed descriptor must not end the run.
  static void print(const std::string& text) { std::fputs(text.c_str(), stderr); }

  std::string line_;
  uint64_t lines_ = 0;
};

// A child process and the channel to it. The child runs in its own session, so it has no terminal. The destructor kills
// it.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, uint64_t memory) : key_(make_channel_key()), records_(key_) {
    std::array<int, 2> requests = {-1, -1}, answers = {-1, -1}, printed = {-1, -1};
    int error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, requests.data()) != 0 ? errno : 0;
    for (auto* ends : {&answers, &printed}) {
      if (error == 0 && pipe2(ends->data(), O_CLOEXEC) != 0) error = errno;
    }
    if (error == 0) error = spawn(arguments, requests[1], answers[1], printed[1]);
    for (const int end : {requests[1], answers[1], printed[1]}) close(end);
    requests_ = requests[0];
    answers_ = answers[0];
    printed_ = printed[0];
    if (error != 0) {
      close_all();
      check(error, "a child process cannot be started");
    }
    fcntl(printed_, F_SETFL, O_NONBLOCK);
    limit(memory);
    // The child waits for the key, so its limits are set before it does anything else.
    std::string_view key(reinterpret_cast<const char*>(key_.data()), key_.size());
    send(key, Clock::now() + std::chrono::seconds(1));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!reaped_) reap();
    close_all();
  }

  enum Event { kRecord, kEnd, kTimeout, kForged };
  // Receives the next record, or reports why there is none.
  Event next(Clock::time_point deadline, uint32_t of_case, uint64_t most, std::string& out_content) {
    for (;;) {
      const Unsealer::State state = records_.next(of_case, most, out_content);
      if (state != Unsealer::State::kIncomplete) return state == Unsealer::State::kRecord ? kRecord : kForged;
      if (!wait(answers_, POLLIN, deadline)) return kTimeout;
      char piece[65536];
      const ssize_t size = read(answers_, piece, sizeof piece);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return kEnd;
      records_.append(piece, static_cast<size_t>(size));
    }
  }

  // Sends bytes from the front of `left`. Returns false if it could not send everything in time. Returns true even if
  // the child has ended, which `next` will report.
  bool send(std::string_view& left, Clock::time_point deadline) {
    while (!left.empty()) {
      if (!wait(requests_, POLLOUT, deadline)) return false;
      const ssize_t size = ::send(requests_, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (size < 0) return true;
      left.remove_prefix(static_cast<size_t>(size));
    }
    return true;
  }

  pid_t id() const { return pid_; }
  Starvation starvation() const { return starvation_of(pid_); }

  // Waits for the child to exit, and kills it at the deadline. Describes how it ended; empty if it ended normally.
  std::string end(Clock::time_point deadline) {
    siginfo_t info = {};
    bool lingered = false;
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
      lingered = Clock::now() >= deadline;
      if (lingered) break;
      drain();
      std::this_thread::sleep_for(milliseconds(1));
    }
    const int status = reap();
    if (lingered) return "the process did not exit in time";
    if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit status {}", WEXITSTATUS(status));
  }

 private:
  // Waits for the descriptor, and meanwhile reads printed output. Returns false at the deadline.
  bool wait(int descriptor, short events, Clock::time_point deadline) {
    for (;;) {
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return false;
      pollfd both[] = {{descriptor, events, 0}, {prints_ ? printed_ : -1, POLLIN, 0}};
      if (poll(both, std::size(both), static_cast<int>(std::min<int64_t>(left, INT32_MAX))) <= 0) continue;
      if (both[1].revents != 0) drain();
      if (both[0].revents != 0) return true;
    }
  }
  void drain() {
    char piece[4096];
    for (int i = 0; prints_ && i < 64; ++i) {
      const ssize_t size = read(printed_, piece, sizeof piece);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
      prints_ = size > 0;
      if (prints_) lines_.append({piece, static_cast<size_t>(size)});
    }
  }
  void close_all() const {
    for (const int end : {requests_, answers_, printed_}) close(end);
  }
  int spawn(const std::vector<std::string>& arguments, int requests, int answers, int printed) {
    std::string program = "/proc/self/exe";
    std::vector<std::string> strings = arguments;
    std::vector<char*> argv = {program.data()};
    for (std::string& string : strings) argv.push_back(string.data());
    argv.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    // Standard output and error come first, because `printed` may have the number kRecords, which is overwritten below.
    posix_spawn_file_actions_adddup2(&files, printed, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, printed, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&files, requests, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, answers, kRecords);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    const int error = posix_spawn(&pid_, program.c_str(), &files, &attributes, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return error;
  }
  void limit(uint64_t memory) const {
    // The hard limit stays, because the runtime of a sanitizer, which may start in the child at the same time, aborts
    // if it cannot write back the hard limit that it has read.
    rlimit core = {};
    prlimit(pid_, RLIMIT_CORE, nullptr, &core);
    core.rlim_cur = 0;
    prlimit(pid_, RLIMIT_CORE, &core, nullptr);
    const rlimit own = {memory, memory};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers' shadow memory exceeds any limit
    if (memory != 0) prlimit(pid_, RLIMIT_DATA, &own, nullptr);      // not RLIMIT_AS, because drivers reserve addresses
#else
    (void)own;
#endif
  }
  // Kills the whole group before the wait, after which the group's id may belong to another process.
  int reap() {
    int status = 0;
    kill(-pid_, SIGKILL);
    waitpid(pid_, &status, 0);
    reaped_ = true;
    drain();
    return status;
  }

  ChannelKey key_;
  Unsealer records_;
  pid_t pid_ = -1;
  int answers_ = -1, requests_ = -1, printed_ = -1;
  Printed lines_;
  bool prints_ = true;  // false once no process holds the other end of `printed_`
  bool reaped_ = false;
};

struct End {
  size_t next;                  // the first case without a result
  std::optional<Result> crash;  // result of the case before `next` if it crashed; not reported yet
};

// Thrown through the code that judges a case if the child does not reply or sends a forged record.
struct NoReply {
  Child::Event event;
};

// Exchanges records with a child and measures the time spent waiting for it.
class Conversation {
 public:
  Conversation(Child& child, const ChildSettings& settings) : child_(child), settings_(settings) {}

  Child::Event next(uint32_t of_case, uint64_t most, std::string& out_content) {
    begin();
    // The time without a processor in earlier cases must not extend this deadline, so it is read and subtracted.
    // Reading it takes a while, so this is done only if the record does not come at once.
    const Clock::time_point soon = std::min(start_ + kTick, deadline());
    if (const Child::Event event = child_.next(soon, of_case, most, out_content); event != Child::kTimeout)
      return event;
    starvation_before_ = child_.starvation();
    for (;;) {
      const Child::Event event = child_.next(deadline(), of_case, most, out_content);
      if (event != Child::kTimeout || !may_wait_on()) return event;
    }
  }
  // Throws NoReply.
  void send(const std::string& request) {
    begin();
    const std::string frame = framed(request);
    for (std::string_view left = frame; !child_.send(left, deadline());) {
      if (!may_wait_on()) throw NoReply{Child::kTimeout};
    }
  }
  // Throws NoReply.
  std::string ask(uint32_t of_case, const std::string& request, uint64_t most) {
    send(request);
    std::string reply;
    if (const Child::Event event = next(of_case, most, reply); event != Child::kRecord) throw NoReply{event};
    return reply;
  }
  // Throws NoReply.
  Result judge(const Case& one, uint32_t of_case) {
    const auto start = Clock::now();
    RemoteDevice device([&](const std::string& request, uint64_t most) { return ask(of_case, request, most); },
                        settings_.seed);
    Result result;
    try {
      result = one.judge(device);
    } catch (const Breach& breach) {
      result = failed(breach.what());
    } catch (const std::exception& error) {
      result.reason = error.what();
    }
    if (settings_.inspect) settings_.inspect(child_.id());
    send("");
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return result;
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  std::string lateness() const {
    std::string text = fmt::format("no result after {:.1f} s", seconds());
    if (starved_for_ >= kTick) {
      text +=
          fmt::format(", {:.1f} s of them without a processor", std::chrono::duration<double>(starved_for_).count());
    }
    return text;
  }

 private:
  void begin() {
    start_ = Clock::now();
    starved_for_ = milliseconds(0);
  }
  Clock::time_point deadline() const { return start_ + settings_.deadline + starved_for_; }
  // Called at the deadline. Updates the time without a processor, and returns true if that moved the deadline by
  // more than kTick.
  bool may_wait_on() {
    const milliseconds seen =
        std::min(time_starved(starvation_before_, child_.starvation()), kPatience * settings_.deadline);
    return std::exchange(starved_for_, seen) + kTick < seen;
  }

  Child& child_;
  const ChildSettings& settings_;
  Clock::time_point start_ = Clock::now();
  milliseconds starved_for_{0};   // time without a processor, which extends the deadline
  Starvation starvation_before_;  // the child's when this exchange began
};

constexpr const char* kForgery =
    "the plugin's process sent a record that is not the harness's: the plugin writes to the harness's descriptors";

void wait_until_ready(Child& child, Conversation& conversation, const ChildSettings& settings) {
  std::string record;
  const Child::Event event = conversation.next(kNoCase, kMaxRecord, record);
  if (event == Child::kTimeout)
    throw Fatal(fmt::format("the child process is not ready after {:.1f} s; the limit is --timeout, or 20 s without it",
                            conversation.seconds()));
  if (event == Child::kForged) throw Fatal(kForgery);
  if (event == Child::kEnd) {
    const std::string why = child.end(Clock::now() + settings.deadline);
    throw Fatal(fmt::format("the child process ended before its first case: {}", why.empty() ? "exit status 0" : why));
  }
  if (record.starts_with("fatal ")) throw Fatal(record.substr(strlen("fatal ")));
}

// Returns the result of a case. Throws NoReply.
Result result_of(Conversation& conversation, const Case& one, uint32_t of_case) {
  if (one.judge) return conversation.judge(one, of_case);
  std::string line;
  if (const Child::Event event = conversation.next(of_case, kMaxRecord, line); event != Child::kRecord)
    throw NoReply{event};
  Result result;
  if (!from_json_line(line, result)) throw NoReply{Child::kForged};
  return result;
}

// Runs the cases from `first` on in one child until it ends. Reports all results except a crash, which is left to the
// caller.
End run_once(const ChildSettings& settings, const std::vector<Case>& cases, size_t first,
             const std::function<void(Result)>& report) {
  std::vector<std::string> arguments = settings.arguments;
  for (size_t i = first; i < cases.size(); ++i)
    arguments.push_back(cases[i].argument.empty() ? cases[i].name : cases[i].argument);
  Child child(arguments, settings.memory);
  Conversation conversation(child, settings);
  wait_until_ready(child, conversation, settings);

  for (size_t current = first; current < cases.size(); ++current) {
    const std::string& name = cases[current].name;
    try {
      Result result = result_of(conversation, cases[current], static_cast<uint32_t>(current - first));
      result.name = name;
      report(std::move(result));
    } catch (const NoReply& silence) {
      const double seconds = conversation.seconds();
      if (silence.event == Child::kTimeout) {
        report({name, State::kTimeout, conversation.lateness(), seconds, 0});
        return {current + 1, {}};
      }
      if (silence.event == Child::kForged) {
        report({name, State::kFail, kForgery, seconds, 0});
        return {current + 1, {}};
      }
      const std::string why = child.end(Clock::now() + settings.deadline);
      const std::string reason = why.empty() ? "the process ended without a result" : why;
      return {current + 1, Result{name, State::kCrash, reason, seconds, 0}};
    }
  }
  std::string more;
  const Child::Event event = conversation.next(kNoCase, kMaxRecord, more);
  const double seconds = conversation.seconds();
  if (event == Child::kTimeout) {
    report({"(end of process)", State::kTimeout, "the backend did not unload in time", seconds, 0});
  } else if (event == Child::kEnd) {
    const std::string why = child.end(Clock::now() + settings.deadline);
    if (!why.empty()) report({"(end of process)", State::kCrash, "unloading the backend failed: " + why, seconds, 0});
  } else {
    report({"(end of process)", State::kFail, kForgery, seconds, 0});
  }
  return {cases.size(), {}};
}

// True if the last case crashes when the cases from `first` on run before it in the same process.
bool crashes_after(const ChildSettings& settings, const std::vector<Case>& cases, size_t first) {
  const End end = run_once(settings, cases, first, [](const Result&) {});
  return end.crash && end.next == cases.size();
}

// Text to append to the crash reason of the last case: the earlier case that it needs, or that the crash did not recur.
// Empty if the case crashes alone.
std::string prior_culprit(const ChildSettings& settings, const std::vector<Case>& cases, size_t first) {
  const size_t last = cases.size() - 1;
  if (first == last || crashes_after(settings, cases, last)) return "";
  if (!crashes_after(settings, cases, first)) return "; the crash did not recur in two more attempts";
  size_t crashes = first, passes = last;  // first case of an attempt that crashes, and of one that passes
  while (passes - crashes > 1) {
    const size_t middle = crashes + (passes - crashes) / 2;
    (crashes_after(settings, cases, middle) ? crashes : passes) = middle;
  }
  return "; it crashes only after " + cases[crashes].name;
}

}  // namespace

void run_in_children(const ChildSettings& settings, std::vector<Case> cases,
                     const std::function<void(Result)>& report) {
  for (size_t first = 0; first < cases.size();) {
    End end = run_once(settings, cases, first, report);
    if (end.crash) {
      const std::vector<Case> until(cases.begin(), cases.begin() + static_cast<int64_t>(end.next));
      end.crash->reason += prior_culprit(settings, until, first);
      report(std::move(*end.crash));
    }
    first = end.next;
  }
}

int answer(const std::vector<std::string>& names, const std::function<ChildCases()>& set_up) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);   // the child must not outlive the harness
  close_range(kRecords + 1, ~0u, 0);  // closes the harness's files, so that the plugin cannot reach them
  Channel channel(STDIN_FILENO, kRecords);
  ChildCases cases;
  try {
    cases = set_up();
  } catch (const std::exception& error) {
    channel.send(kNoCase, std::string("fatal ") + error.what());
    return 1;
  }
  channel.send(kNoCase, "ready");
  for (uint32_t i = 0; i < names.size(); ++i) {
    if (const ChildCases::Serve serve = cases.serve ? cases.serve(names[i]) : nullptr) {
      while (const std::optional<std::string> request = channel.receive()) channel.send(i, serve(*request));
      continue;
    }
    const auto start = Clock::now();
    Result result;
    try {
      result = cases.run(names[i]);
    } catch (const std::exception& error) {
      result.reason = error.what();
    }
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (result.reason.size() > kMaxReason) result.reason.resize(kMaxReason);
    channel.send(i, to_json_line(result));
  }
  return 0;
}

}  // namespace backplane::conform
