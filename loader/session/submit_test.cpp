// SPDX-License-Identifier: Apache-2.0
// Runs in the background through the public API: waits and signals, `done`, failures, cancellation and deadlines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "backplane/client.hpp"
#include "session/testing.h"
#include "testing/client_fixture.h"

namespace backplane {
namespace {

using ::testing::HasSubstr;

TEST(Session, WaitsSignalsAndEndsInTheBackground) {
  const Environment env = environment({kCpu});
  Exec exec = env.compile(relu_of_sum()).exec();
  exec.bind("x", Tensor::of<float>({1, 2}, {1, 2}));
  const Semaphore go, ended;
  const bp_point_t wait = go.at(1), signal = ended.at(5);
  std::atomic<int> done{0};
  bp_run_t run{};
  run.size = sizeof run;
  run.waits = &wait;
  run.wait_count = 1;
  run.signals = &signal;
  run.signal_count = 1;
  run.self = &done;
  run.done = [](void* self, bp_status_t status, const bp_error_t*) {
    *static_cast<std::atomic<int>*>(self) = status == BP_OK ? 1 : 2;
  };
  exec.submit(run);
  EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_BUSY);
  EXPECT_EQ(done, 0);
  go.signal(1);
  ended.wait(5);
  EXPECT_EQ(done, 1);
}

// `done` is called before the exec accepts the next run.
TEST(Session, ARunFromWithinDoneIsRefused) {
  const Environment env = environment({kCpu});
  Exec exec = env.compile(relu_of_sum()).exec();
  exec.bind("x", Tensor::of<float>({1, 2}, {1, 2}));
  struct Inside {
    bp_exec_t* exec;
    bp_status_t run = BP_OK, submit = BP_OK;
  } inside{exec.get()};
  const Semaphore ended;
  const bp_point_t signal = ended.at(1);
  bp_run_t run{};
  run.size = sizeof run;
  run.self = &inside;
  run.done = [](void* self, bp_status_t, const bp_error_t*) {
    Inside& in = *static_cast<Inside*>(self);
    bp_run_t again{};
    again.size = sizeof again;
    in.run = api().exec_run(in.exec, &again, nullptr);
    again.done = [](void*, bp_status_t, const bp_error_t*) {};
    in.submit = api().exec_submit(in.exec, &again, nullptr);
  };
  EXPECT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
  EXPECT_EQ(inside.run, BP_BUSY);
  EXPECT_EQ(inside.submit, BP_BUSY);
  inside.run = inside.submit = BP_OK;
  run.signals = &signal;
  run.signal_count = 1;
  exec.submit(run);
  ended.wait(1);
  EXPECT_EQ(inside.run, BP_BUSY);
  EXPECT_EQ(inside.submit, BP_BUSY);
  exec.run();
}

TEST(Session, SubmittedRunsMayWaitForLaterOnes) {
  const Environment env = environment({kCpu});
  const Session session = env.compile(relu_of_sum());
  constexpr int kCount = 8;  // each run waits for the run submitted after it
  const Semaphore order;
  std::vector<Exec> execs;
  std::vector<bp_point_t> points;
  for (int i = 0; i <= kCount; ++i) points.push_back(order.at(static_cast<uint64_t>(i)));
  std::vector<bp_run_t> runs(kCount);
  for (int i = 0; i < kCount; ++i) {
    Exec& exec = execs.emplace_back(session.exec());
    exec.bind("x", Tensor::of<float>({1, 2}, {1, 2}));
    runs[i].size = sizeof runs[i];
    runs[i].waits = &points[static_cast<size_t>(kCount - 1 - i)];
    runs[i].wait_count = 1;
    runs[i].signals = &points[static_cast<size_t>(kCount - i)];
    runs[i].signal_count = 1;
    exec.submit(runs[i]);
  }
  order.wait(kCount);
}

// A call that fails neither calls `done` nor signals. A run that was accepted does both, even if it fails.
TEST(Session, AFailedRunIsReportedOnce) {
  const Environment env = environment({kCpu});
  Exec exec = env.compile(relu_of_sum()).exec();  // nothing is bound
  const Semaphore ended;
  const bp_point_t signal = ended.at(1);
  std::atomic<int> done{0};
  bp_run_t run{};
  run.size = sizeof run;
  run.signals = &signal;
  run.signal_count = 1;
  run.self = &done;
  run.done = [](void* self, bp_status_t, const bp_error_t*) { ++*static_cast<std::atomic<int>*>(self); };
  EXPECT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_BAD_STATE);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(ended.value(), 0u);
  exec.submit(run);
  const Error failed = failure([&] { ended.wait(1); });
  EXPECT_EQ(failed.status(), BP_DEPENDENCY_FAILED);
  EXPECT_THAT(failed.text(), HasSubstr("input 'x' is not bound"));
  EXPECT_EQ(done, 1);

  Exec next = env.compile(relu_of_sum()).exec();
  next.bind("x", Tensor::of<float>({1, 2}, {1, 2}));
  RunOptions after;
  after.waits = {ended.at(1)};
  EXPECT_EQ(failure([&] { next.run(after); }).status(), BP_DEPENDENCY_FAILED);
}

TEST(Session, CancelledAndOverdueRunsEndWithTheirCodes) {
  const Environment env = environment({kCpu});
  Exec exec = env.compile(relu_of_sum()).exec();
  exec.bind("x", Tensor::of<float>({1, 2}, {1, 2}));
  const Cancel cancel;
  cancel.set();
  RunOptions options;
  options.cancel = &cancel;
  EXPECT_EQ(failure([&] { exec.run(options); }).status(), BP_CANCELLED);
  const Semaphore never;
  RunOptions late;
  late.timeout = std::chrono::milliseconds(20);
  late.waits = {never.at(1)};
  EXPECT_EQ(failure([&] { exec.run(late); }).status(), BP_TIMED_OUT);
  exec.run();
}

}  // namespace
}  // namespace backplane
