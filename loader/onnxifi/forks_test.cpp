// SPDX-License-Identifier: Apache-2.0
// Handles of ONNXIFI in a child that the program forked.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "onnxifi/testing/adder.h"

namespace backplane::onnxifi {
namespace {

// In a child that the program forks, no thread ends the runs that are in flight in the parent.
TEST_F(Onnxifi, AForkedChildDoesNotWaitForRunsOfItsParent) {
  ASSERT_EQ(set_io(), ONNXIFI_STATUS_SUCCESS);
  const onnxEvent ready = event();
  const onnxMemoryFenceV1 before = fence(ready);
  onnxMemoryFenceV1 after = fence();
  ASSERT_EQ(onnxRunGraph(graph_, &before, &after), ONNXIFI_STATUS_SUCCESS);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // ends a child that hangs
    const bool is_right = onnxWaitEvent(after.event) == ONNXIFI_STATUS_BACKEND_UNAVAILABLE &&
                          onnxReleaseGraph(graph_) == ONNXIFI_STATUS_SUCCESS;
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(onnxSignalEvent(ready), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(after.event), ONNXIFI_STATUS_SUCCESS);
  for (const onnxEvent each : {after.event, ready}) EXPECT_EQ(onnxReleaseEvent(each), ONNXIFI_STATUS_SUCCESS);
}

// Other threads of the parent use the tables of handles and destroy objects all the time, so that a fork finds each of
// their locks held sooner or later.
TEST_F(Onnxifi, AForkedChildReleasesWhatItWantsWhileThreadsOfItsParentWork) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!ends) {
        onnxEvent one = nullptr;
        onnxInitEvent(backend_, &one);
        onnxReleaseEvent(one);
      }
    });
  }
  int hung = 0;
  for (int i = 0; i < 200 && hung == 0; ++i) {
    const onnxEvent left = event(true);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // ends a child that hangs
      const bool is_right =
          onnxReleaseEvent(left) == ONNXIFI_STATUS_SUCCESS && onnxReleaseEvent(left) == ONNXIFI_STATUS_INVALID_EVENT &&
          onnxReleaseGraph(graph_) == ONNXIFI_STATUS_SUCCESS && onnxReleaseBackend(backend_) == ONNXIFI_STATUS_SUCCESS;
      _exit(is_right ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    hung += status != 0;
    EXPECT_EQ(onnxReleaseEvent(left), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_EQ(hung, 0) << "after some of the forks, a child hung or got a wrong status";
  ends = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace backplane::onnxifi
