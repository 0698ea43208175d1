// SPDX-License-Identifier: Apache-2.0
// How a process ended, as errors report it, and processes that misbehave. This program is also such a process:
// Process.InTheProcess does what kRole says.
#include "isolate/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "isolate/control.h"
#include "testing/emulated.h"

namespace backplane::isolate::process {
namespace {

using ::testing::HasSubstr;

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kRole = "BACKPLANE_TEST_ROLE";

std::shared_ptr<Process> start(const Program& program) {
  const Descriptor library(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto process = Process::start("backend x", program, library.get());
  EXPECT_TRUE(process.ok()) << process.status().text();
  return process.ok() ? *process : nullptr;
}

// Starts a shell with `script`. Its descriptor 3 is the control socket.
std::shared_ptr<Process> start(const std::string& script) {
  return start(Program{"/bin/sh", {"-c", script}, {"PATH=/usr/bin:/bin"}});
}

std::shared_ptr<Process> start_as(const std::string& role) {
  return start(Program{"/proc/self/exe", {"--gtest_filter=Process.InTheProcess"}, {kRole + ("=" + role)}});
}

std::string text_of(const Status& status) {
  return std::string(status.text());
}

template <class F>
bool within(milliseconds limit, F holds) {
  for (const auto end = Clock::now() + limit; !holds(); std::this_thread::sleep_for(milliseconds(5)))
    if (Clock::now() > end) return false;
  return true;
}

// ---- in the process -------------------------------------------------------------------------------------------------

class Patient : public Check {
 public:
  Status check() override { return {}; }
};

// Takes the channel of the first call.
std::unique_ptr<Channel> accept() {
  ControlPacket packet{};
  iovec part{&packet, sizeof packet};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(kControlSocket, &message, 0) != sizeof packet) _exit(1);
  int files[2];
  std::memcpy(files, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof files);
  return Channel::take(Descriptor(files[0]), Descriptor(files[1]));
}

void reply(const Channel& channel, const Status& status) {
  Patient patient;
  channel.pass(Turn::kMessage);
  static_cast<void>(channel.send(Operation::kReply, Writer().status(status).take(), {}, patient));
}

// Sends lines of a log until the loader closes the socket, at most for twenty seconds.
[[noreturn]] void talk(milliseconds pause) {
  const char line[] = "\3\0\0\0talk";
  for (const auto end = Clock::now() + seconds(20); Clock::now() < end; std::this_thread::sleep_for(pause))
    if (::send(kControlSocket, line, sizeof line - 1, MSG_NOSIGNAL) < 0) break;
  _exit(0);
}

void play(const std::string& role) {
  Patient patient;
  if (role == "talks") talk(milliseconds(5));
  if (role == "leaves_group") {
    if (::setpgid(0, ::getpgid(::getppid())) != 0) _exit(1);
    talk(milliseconds(5));
  }
  if (role == "leaves_a_talker") {
    if (::fork() == 0) {
      ::setsid();
      talk(milliseconds(0));
    }
    std::this_thread::sleep_for(milliseconds(300));
    _exit(7);
  }
  const auto channel = accept();
  if (role == "reads_late") within(seconds(60), [&] { return channel->page().cancelled != 0; });
  static_cast<void>(channel->await(patient, kSliceUs));
  const bool cancelled = channel->page().cancelled.load();
  static_cast<void>(channel->receive(kMostRequest, patient));
  if (role == "reads_late") reply(*channel, cancelled ? Status(BP_CANCELLED, "cancelled") : Status());
  if (role == "asks") {
    channel->pass(Turn::kMessage);
    static_cast<void>(channel->send(Operation::kProgress, {}, {}, patient));
    static_cast<void>(channel->await(patient, kSliceUs));
    auto answer = channel->receive(kMostRequest, patient);
    if (!answer.ok()) _exit(1);
    reply(*channel, Reader(answer->bytes).status());
  }
  ::alarm(60);
  for (;;) ::pause();
}

TEST(Process, InTheProcess) {
  const char* role = std::getenv(kRole);
  if (!role) GTEST_SKIP() << "the other tests start this one";
  play(role);
}

// ---- the tests ------------------------------------------------------------------------------------------------------

TEST(Process, ThatDoesNotExitWhenAskedWasKilledByTheLoader) {
  const auto process = start("exec sleep 1000");
  ASSERT_TRUE(process);
  process->end(milliseconds(20));
  EXPECT_THAT(text_of(process->lost(Operation::kRun)),
              HasSubstr("backend x was killed: it did not exit when asked while it ran"));
  EXPECT_FALSE(process->killed_by_others());
}

TEST(Process, ThatExitsWhenAskedWasNotKilled) {
  const auto process = start("cat <&3 >/dev/null; exit 7");
  ASSERT_TRUE(process);
  process->end(seconds(60));
  EXPECT_THAT(text_of(process->lost(Operation::kRun)), HasSubstr("ended the process (exit code 7)"));
  EXPECT_FALSE(process->killed_by_others());
}

TEST(Process, ThatSomebodyElseKillsIsReportedAsSuch) {
  const auto process = start("kill -9 $$");
  ASSERT_TRUE(process);
  process->end(seconds(60));
  EXPECT_THAT(text_of(process->lost(Operation::kRun)), HasSubstr("crashed (SIGKILL)"));
  EXPECT_TRUE(process->killed_by_others());
}

TEST(Process, ThatSendsAnUnreadableReplyIsKilled) {
  const auto process = start("exec sleep 1000");
  ASSERT_TRUE(process);
  EXPECT_THAT(text_of(process->unreadable(Operation::kOpen, "too short")),
              HasSubstr("was killed: it sent a reply that cannot be read (too short) while it opened a device"));
  EXPECT_FALSE(process->alive());
}

TEST(Process, ThatLeavesItsGroupCanBeKilled) {
  if (backplane::testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  const auto process = start_as("leaves_group");
  ASSERT_TRUE(process);
  std::atomic<bool> has_left{false};
  process->set_log([&](uint32_t, std::string_view) { has_left = true; });
  ASSERT_TRUE(within(seconds(60), [&] { return has_left.load(); }));
  process->end(milliseconds(20));
  EXPECT_THAT(text_of(process->lost(Operation::kRun)), HasSubstr("was killed: it did not exit when asked"));
  process->set_log({});
}

// A child of the process, in a session of its own, goes on logging faster than the log is read.
TEST(Process, WhoseLogGoesOnIsSeenToEnd) {
  if (backplane::testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  const auto process = start_as("leaves_a_talker");
  ASSERT_TRUE(process);
  process->set_log([](uint32_t, std::string_view) { std::this_thread::sleep_for(std::chrono::microseconds(200)); });
  EXPECT_TRUE(within(seconds(10), [&] { return !process->alive(); }));
  process->set_log({});
  EXPECT_THAT(text_of(process->lost(Operation::kRun)), HasSubstr("exit code 7"));
}

TEST(Process, ThatClosesTheControlSocketCostsNoTime) {
  const auto process = start("exec 3>&-; exec sleep 1000");
  ASSERT_TRUE(process);
  std::this_thread::sleep_for(milliseconds(300));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
}

// The control socket holds fewer packets than there are calls. No call may hold a lock while it waits for the socket.
TEST(Process, ThatDoesNotReadEndsAtTheLimitOfItsCalls) {
  const auto process = start("exec sleep 1000");
  ASSERT_TRUE(process);
  Patience patience;
  patience.limit_ns = 2'000'000'000;
  std::atomic<int> lost{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 300; ++i)
    callers.emplace_back([&] {
      const auto answer = process->call(Operation::kHealth, {}, {}, patience);
      lost += answer.status().code() == BP_DEVICE_LOST;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(lost, 300);
  EXPECT_THAT(text_of(process->lost(Operation::kHealth)), HasSubstr("did not return in time"));
}

TEST(Process, ThatEndsJustBeforeACallIsNamed) {
  const auto process = start("exec sleep 1000");
  ASSERT_TRUE(process);
  static Process* ending;
  ending = process.get();
  bp_host_t host{};
  host.cancelled = [](const bp_host_t*, const bp_cancel_t*) -> uint32_t {  // called when the call begins
    ending->kill("of the test");
    within(seconds(60), [] { return !ending->alive(); });
    return 0;
  };
  Patience patience;
  patience.host = &host;
  patience.cancel = reinterpret_cast<const bp_cancel_t*>(&host);
  const auto answer = process->call(Operation::kRun, {}, {}, patience);
  EXPECT_EQ(answer.status().code(), BP_DEVICE_LOST);
  EXPECT_EQ(answer.status().text(), "backend x was killed: of the test while it ran");
}

TEST(Process, FindsACancellationThatCameBeforeItReadTheCall) {
  if (backplane::testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  const auto process = start_as("reads_late");
  ASSERT_TRUE(process);
  static std::atomic<int> asked;
  asked = 0;
  bp_host_t host{};
  host.cancelled = [](const bp_host_t*, const bp_cancel_t*) -> uint32_t { return asked++ > 0; };
  Patience patience;
  patience.host = &host;
  patience.cancel = reinterpret_cast<const bp_cancel_t*>(&host);
  EXPECT_EQ(process->call(Operation::kHealth, {}, {}, patience).status().code(), BP_CANCELLED);
}

TEST(Process, OutOfMemoryIsReportedAndAnyOtherExceptionEndsTheProcess) {
  if (backplane::testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  class Throwing : public Answers {
   public:
    explicit Throwing(bool memory) : memory_(memory) {}
    Status answer(Operation, Reader&, Writer&, std::vector<Descriptor>&) override {
      if (memory_) throw std::bad_alloc();
      throw std::logic_error("of the test");
    }

   private:
    bool memory_;
  };
  Throwing no_memory(true), other(false);
  auto process = start_as("asks");
  ASSERT_TRUE(process);
  EXPECT_EQ(process->call(Operation::kHealth, {}, {}, {}, &no_memory).status().code(), BP_RESOURCE_EXHAUSTED);
  EXPECT_TRUE(process->alive());
  process = start_as("asks");
  ASSERT_TRUE(process);
  EXPECT_THROW(static_cast<void>(process->call(Operation::kHealth, {}, {}, {}, &other)), std::logic_error);
  EXPECT_THAT(text_of(process->lost(Operation::kHealth)), HasSubstr("was killed: a call to it was not finished"));
}

// A child is forked while the watching thread holds the log's lock.
TEST(Process, BelongsToTheProcessThatStartedIt) {
  if (backplane::testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  const auto process = start_as("talks");
  ASSERT_TRUE(process);
  std::atomic<bool> is_logging{false}, has_forked{false};
  process->set_log([&](uint32_t, std::string_view) {
    is_logging = true;
    while (!has_forked) std::this_thread::sleep_for(milliseconds(1));
  });
  ASSERT_TRUE(within(seconds(60), [&] { return is_logging.load(); }));
  const pid_t forked = ::fork();
  if (forked == 0) {
    ::alarm(20);
    process->kill("it is not ours");
    process->set_log({});
    _exit(5);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(forked, &status, 0), forked);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
  has_forked = true;
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_TRUE(process->alive());
  process->set_log({});
}

}  // namespace
}  // namespace backplane::isolate::process
