// SPDX-License-Identifier: Apache-2.0
// This program is also the child: with --child, it runs cases that misbehave as their names say.
#include "sandbox/child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <thread>

#include "checks/wire.h"

namespace backplane::conform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bool is_spoilt = false;
const std::string kOnce = testing::TempDir() + "backplane_child_test_once";

double processor_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
// Uses `seconds` of processor time, however often it is interrupted.
void work(double seconds) {
  for (const double start = processor_seconds(); processor_seconds() < start + seconds;) continue;
}

// Writes forged results to every open descriptor except the standard ones.
void speak() {
  const std::string line = "{\"case\":\"speak\",\"state\":\"pass\",\"reason\":\"\",\"seconds\":0,\"nodes\":1}\n";
  std::string text;
  while (text.size() < 4096) text += line;
  for (int descriptor = 3; descriptor < 64; ++descriptor) {
    if (write(descriptor, text.data(), text.size()) > 0) continue;
  }
}

Result misbehave(const std::string& folder) {
  if (folder == "crash") raise(SIGSEGV);
  if (folder == "abort") abort();
  if (folder == "exit") _exit(0);
  if (folder == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  if (folder == "work") work(1.0);
  if (folder == "throw") throw std::runtime_error("thrown");
  if (folder == "spoil") is_spoilt = true;
  if (folder == "spoilt" && is_spoilt) raise(SIGSEGV);
  if (folder == "once" && !std::filesystem::exists(kOnce)) {
    std::ofstream(kOnce).put('x');
    raise(SIGSEGV);
  }
  if (folder == "eat" && calloc(1, size_t{1} << 30) == nullptr) throw std::runtime_error("no memory");
  if (folder == "fork" && fork() == 0) std::this_thread::sleep_for(std::chrono::hours(1));
  if (folder == "print") puts("{\"case\":\"print\",\"state\":\"pass\"}");
  if (folder == "forge") std::atexit([] { raise(SIGSEGV); });
  if (folder == "speak") speak();
  if (folder == "escape") {
    for (int i = 0; i < 10000; ++i) fputs("\033[2J\033]0;owned\007L3 reached\n", stderr);
    if (open("/dev/tty", O_RDWR) >= 0) abort();
  }
  return {"", State::kPass, "", 0, 1};
}

// In the child, replies to the request for the device's information, which cases that the parent judges send.
std::string reply_to(const std::string& name) {
  const std::string what = name.substr(name.find('_') + 1);
  misbehave(what);
  Writer reply;
  reply.number<uint8_t>(0);
  if (what != "short") reply.number<uint32_t>(17).number<uint32_t>(0);
  if (what == "long") reply.text(std::string(2 << 20, 'x'));
  return reply.take();
}

std::vector<Result> run(const std::vector<std::string>& names, std::vector<std::string> arguments = {"--child"}) {
  std::vector<Case> cases;
  for (const std::string& name : names) {
    cases.push_back({.name = name});
    if (!name.starts_with("judged_")) continue;
    cases.back().judge = [](RemoteDevice& device) {
      return device.newest_opset() == 17 ? passed(1) : failed("another number");
    };
  }
  std::vector<Result> results;
  run_in_children({std::move(arguments), std::chrono::milliseconds(1500), size_t{512} << 20}, cases,
                  [&](Result result) { results.push_back(std::move(result)); });
  return results;
}

std::vector<std::string> states(const std::vector<Result>& results) {
  std::vector<std::string> states;
  for (const Result& result : results) states.push_back(result.name + " " + std::string(name_of(result.state)));
  return states;
}

TEST(Child, EveryCaseHasOneResult) {
  EXPECT_THAT(states(run({"a", "crash", "b", "abort", "exit", "print", "throw", "c"})),
              ElementsAre("a pass", "crash crash", "b pass", "abort crash", "exit crash", "print pass",
                          "throw infra_error", "c pass"));
}

TEST(Child, AHangFailsItsOwnCase) {
  const std::vector<Result> results = run({"a", "hang", "b"});
  EXPECT_THAT(states(results), ElementsAre("a pass", "hang timeout", "b pass"));
  EXPECT_LT(results[1].seconds, 10);
}

// Eight other threads share the processor, so the case takes about nine times its own time. The additional time must
// not count.
TEST(Child, ABusyMachineIsNotAHang) {
  if (std::ifstream file("/proc/thread-self/schedstat"); !file) GTEST_SKIP() << "this kernel does not count waiting";
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);  // inherited by processes that start from here on
  std::vector<std::jthread> others;
  for (int i = 0; i < 8; ++i)
    others.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) continue;
    });
  // The scheduler may favor a new process, so that it is not slowed at first.
  std::vector<Result> results;
  for (int attempt = 0; attempt < 5 && (results.empty() || results[0].seconds <= 1.5); ++attempt)
    results = run({"work", "hang", "b"});
  others.clear();
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_THAT(states(results), ElementsAre("work pass", "hang timeout", "b pass"));
  EXPECT_GT(results[0].seconds, 1.5);  // otherwise the case was not slowed and nothing was tested
  EXPECT_LT(results[1].seconds, results[0].seconds) << "the time of the first case extends the deadline of the second";
}

TEST(Child, TheReasonOfACrashIsItsSignal) {
  EXPECT_THAT(run({"abort"})[0].reason, HasSubstr("signal 6"));
}

TEST(Child, ACrashThatAnEarlierCaseCausedNamesIt) {
  const std::vector<Result> results = run({"a", "spoil", "b", "c", "spoilt", "d"});
  EXPECT_THAT(states(results), ElementsAre("a pass", "spoil pass", "b pass", "c pass", "spoilt crash", "d pass"));
  EXPECT_THAT(results[4].reason, HasSubstr("; it crashes only after spoil"));
}

TEST(Child, ACrashThatIsNotReproducedIsReported) {
  std::filesystem::remove(kOnce);
  const std::vector<Result> results = run({"a", "once", "b"});
  EXPECT_THAT(states(results), ElementsAre("a pass", "once crash", "b pass"));
  EXPECT_THAT(results[1].reason, HasSubstr("did not recur"));
  std::filesystem::remove(kOnce);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Child, MemoryIsLimited) {
  EXPECT_THAT(states(run({"eat", "b"})), ElementsAre("eat infra_error", "b pass"));
}
#endif

// A process that a case left behind keeps the pipe open. That process must be killed, or the run would wait for it.
TEST(Child, ProcessesLeftByACaseAreEnded) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(states(run({"fork", "b"})), ElementsAre("fork pass", "b pass", "(end of process) timeout"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Child, ACrashAtTheEndIsAResult) {
  EXPECT_THAT(states(run({"a", "forge"})), ElementsAre("a pass", "forge pass", "(end of process) crash"));
}

TEST(Child, OutputOfThePluginIsNotAResult) {
  const std::vector<Result> results = run({"a", "speak", "b", "judged_speak", "judged_c", "speak"});
  EXPECT_THAT(states(results),
              ElementsAre("a pass", "speak fail", "b pass", "judged_speak fail", "judged_c pass", "speak fail"));
  EXPECT_THAT(results[1].reason, HasSubstr("not the harness's"));
}

TEST(Child, FilesOfTheHarnessAreNotOpenInAChild) {
  const std::string name = testing::TempDir() + "backplane_child_test_open";
  const int file = open(name.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);  // no O_CLOEXEC, like std::ofstream
  ASSERT_GE(file, 3);
  run({"speak"});
  EXPECT_EQ(std::filesystem::file_size(name), 0u);
  close(file);
  std::filesystem::remove(name);
}

TEST(Child, PrintedTextCannotControlATerminal) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(states(run({"a", "escape", "b"})), ElementsAre("a pass", "escape pass", "b pass"));
  const std::string seen = testing::internal::GetCapturedStderr();
  EXPECT_THAT(seen, HasSubstr("plugin: "));
  EXPECT_THAT(seen, HasSubstr("L3 reached"));
  EXPECT_THAT(seen, HasSubstr("more lines"));
  EXPECT_EQ(seen.find('\033'), std::string::npos);
  EXPECT_LT(seen.size(), 300'000u);
}

TEST(Child, TextThatCannotBePrintedDoesNotEndTheRun) {
  const int before = dup(STDERR_FILENO), full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  dup2(full, STDERR_FILENO);
  const std::vector<std::string> seen = states(run({"a", "escape", "b"}));
  dup2(before, STDERR_FILENO);
  clearerr(stderr);
  close(before);
  close(full);
  EXPECT_THAT(seen, ElementsAre("a pass", "escape pass", "b pass"));
}

TEST(Child, TheParentJudgesByReplies) {
  EXPECT_THAT(states(run({"judged_a", "judged_crash", "b", "judged_hang", "judged_short", "judged_long", "judged_c"})),
              ElementsAre("judged_a pass", "judged_crash crash", "b pass", "judged_hang timeout",
                          "judged_short infra_error", "judged_long fail", "judged_c pass"));
  EXPECT_THAT(run({"judged_spoil", "b", "judged_spoilt"})[2].reason, HasSubstr("; it crashes only after judged_spoil"));
}

TEST(Child, SettingUpCanFail) {
  EXPECT_THROW(run({"a"}, {"--child", "--refuse"}), Fatal);
  EXPECT_THROW(run({"a"}, {"--child", "--die"}), Fatal);
}

}  // namespace
}  // namespace backplane::conform

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--child") {
    using backplane::conform::ChildCases;
    return backplane::conform::answer({argv + 2, argv + argc}, [&]() -> ChildCases {
      if (std::string(argv[2]) == "--refuse") throw std::runtime_error("no such device");
      if (std::string(argv[2]) == "--die") abort();
      return {.run = backplane::conform::misbehave, .serve = [](const std::string& name) -> ChildCases::Serve {
                if (!name.starts_with("judged_")) return nullptr;
                return [name](const std::string&) { return backplane::conform::reply_to(name); };
              }};
    });
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
