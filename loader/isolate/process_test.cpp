// SPDX-License-Identifier: Apache-2.0
// How a process ended, as errors report it.
#include "isolate/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace backplane::isolate {
namespace {

using ::testing::HasSubstr;

// Starts a shell with `script`. Its descriptor 3 is the control socket.
std::shared_ptr<Process> start(const std::string& script) {
  const Descriptor library(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto process = Process::start("backend x", {"/bin/sh", {"-c", script}, {"PATH=/usr/bin:/bin"}}, library.get());
  EXPECT_TRUE(process.ok()) << process.status().text();
  return process.ok() ? *process : nullptr;
}

TEST(Process, ThatDoesNotExitWhenAskedWasKilledByTheLoader) {
  const auto process = start("exec sleep 1000");
  ASSERT_TRUE(process);
  process->end(std::chrono::milliseconds(20));
  EXPECT_THAT(std::string(process->lost(Operation::kRun).text()),
              HasSubstr("backend x was killed: it did not exit when asked"));
  EXPECT_FALSE(process->killed_by_others());
}

TEST(Process, ThatExitsWhenAskedWasNotKilled) {
  const auto process = start("cat <&3 >/dev/null; exit 7");
  ASSERT_TRUE(process);
  process->end(std::chrono::seconds(60));
  EXPECT_THAT(std::string(process->lost(Operation::kRun).text()), HasSubstr("ended the process (exit code 7)"));
  EXPECT_FALSE(process->killed_by_others());
}

TEST(Process, ThatSomebodyElseKillsIsReportedAsSuch) {
  const auto process = start("kill -9 $$");
  ASSERT_TRUE(process);
  process->end(std::chrono::seconds(60));
  EXPECT_THAT(std::string(process->lost(Operation::kRun).text()), HasSubstr("crashed (SIGKILL)"));
  EXPECT_TRUE(process->killed_by_others());
}

}  // namespace
}  // namespace backplane::isolate
