// SPDX-License-Identifier: Apache-2.0
// Restoring a process's state. matrix_test.cpp has plugins that change it.
#include "discover/process_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace backplane {
namespace {

using ::testing::HasSubstr;

TEST(ProcessState, TimersOfTheFrameworkGoOn) {
  const itimerval ticking{{100, 0}, {50, 0}}, off{};
  ::alarm(100);
  ::setitimer(ITIMER_PROF, &ticking, nullptr);
  const ProcessState state;
  EXPECT_EQ(state.changed(), kUnchanged);
  ::alarm(1);
  EXPECT_THAT(text_of_part(state.restore()), HasSubstr("timer"));
  ::setitimer(ITIMER_PROF, &off, nullptr);
  EXPECT_NE(state.restore(), kUnchanged);
  EXPECT_EQ(state.changed(), kUnchanged);
  itimerval now{};
  ::getitimer(ITIMER_PROF, &now);
  ::setitimer(ITIMER_PROF, &off, nullptr);
  EXPECT_EQ(now.it_interval.tv_sec, 100);
  EXPECT_GT(::alarm(0), 90u);
}

TEST(ProcessState, HandlersOfTheFrameworkStay) {
  const auto mine = [](int) {};
  auto* const before = ::signal(SIGTERM, mine);
  const ProcessState state;
  ::signal(SIGTERM, [](int) { ::_exit(1); });
  EXPECT_THAT(text_of_part(state.restore()), HasSubstr("SIGTERM"));
  EXPECT_EQ(::signal(SIGTERM, before), static_cast<void (*)(int)>(mine));
  // LLVM, which drivers contain, installs handlers where there are none.
  const ProcessState without;
  ::signal(SIGHUP, mine);
  EXPECT_EQ(without.changed(), kUnchanged);
  ::signal(SIGHUP, SIG_DFL);
}

TEST(ProcessState, OnlyLowerLimitsCount) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit before = limit;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 256);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const ProcessState state;
  limit.rlim_cur = 200;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_THAT(text_of_part(state.restore()), HasSubstr("RLIMIT_NOFILE"));
  ::getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(limit.rlim_cur, 256u);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(state.changed(), kUnchanged);
}

TEST(ProcessState, TheFolderAndTheUmaskAreThoseOfBefore) {
  const auto folder = std::filesystem::current_path();
  const mode_t mask = ::umask(027);
  {
    const KeptProcessState kept(KeptParts::kAll), another(KeptParts::kAll);  // of two threads
    std::filesystem::current_path("/");
    ::umask(0);
  }
  EXPECT_EQ(std::filesystem::current_path(), folder);
  EXPECT_EQ(::umask(mask), 027u);
}

TEST(ProcessState, StacksAreNotExecutable) {
  EXPECT_FALSE(stack_is_executable());
}

}  // namespace
}  // namespace backplane
