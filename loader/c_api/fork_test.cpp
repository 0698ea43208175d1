// SPDX-License-Identifier: Apache-2.0
// Handles in a forked child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "testing/partial.h"

namespace backplane {
namespace {

// A forked child has none of the threads that would end what these calls wait for.
TEST(Fork, StreamsAndSemaphoresOfTheParentAreRefused) {
  const Environment env = streaming({{"partial.marks", "1"}});
  const uint64_t device = env.devices()[1].info.id;  // the first one is the CPU's
  bp_stream_t* stream = nullptr;
  const bp_stream_create_t how{sizeof how, 0, nullptr, nullptr};
  ASSERT_EQ(api().stream_create(env.get(), device, &how, &stream, nullptr), BP_OK);
  bp_native_semaphore_t* semaphore = nullptr;
  const bp_semaphore_create_t what{sizeof what, 0, 0, nullptr, nullptr};
  ASSERT_EQ(api().native_semaphore_create(env.get(), device, &what, &semaphore, nullptr), BP_OK);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);  // ends a child that hangs
    uint64_t value = 0;
    bp_native_t native{};
    native.size = sizeof native;
    bp_stream_t* plugin_stream = nullptr;
    bp_native_semaphore_t* plugin_semaphore = nullptr;
    const bp_status_t codes[] = {api().stream_wait(stream, BP_FOREVER, nullptr),
                                 api().stream_export(stream, &native, nullptr),
                                 api().stream_plugin_stream(stream, &plugin_stream, nullptr),
                                 api().native_semaphore_wait(semaphore, 1, BP_FOREVER, nullptr),
                                 api().native_semaphore_signal(semaphore, 1, nullptr),
                                 api().native_semaphore_query(semaphore, &value, nullptr),
                                 api().native_semaphore_plugin_semaphore(semaphore, &plugin_semaphore, nullptr)};
    api().stream_destroy(stream);
    api().native_semaphore_destroy(semaphore);
    ::_exit(static_cast<int>(std::ranges::count_if(codes, [](bp_status_t code) { return code != BP_FORKED; })));
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "calls that did not return BP_FORKED, or a child that hung";
  api().native_semaphore_destroy(semaphore);
  api().stream_destroy(stream);
}

// A thread of the parent waits for the semaphore. In the child, the semaphore still counts that waiter, although the
// child has no such thread.
TEST(Fork, HostSemaphoresOfTheParentAreRefused) {
  bp_semaphore_t* semaphore = nullptr;
  ASSERT_EQ(api().semaphore_create(0, &semaphore, nullptr), BP_OK);
  std::thread waiter([&] { api().semaphore_wait(semaphore, 1, BP_FOREVER, nullptr, nullptr); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);  // ends a child that hangs
    uint64_t value = 0;
    const bp_status_t codes[] = {api().semaphore_wait(semaphore, 1, BP_FOREVER, nullptr, nullptr),
                                 api().semaphore_signal(semaphore, 1, nullptr, nullptr),
                                 api().semaphore_query(semaphore, &value, nullptr),
                                 api().semaphore_reset(semaphore, 0, nullptr)};
    api().semaphore_destroy(semaphore);
    ::_exit(static_cast<int>(std::ranges::count_if(codes, [](bp_status_t code) { return code != BP_FORKED; })));
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "calls that did not return BP_FORKED, or a child that hung";
  EXPECT_EQ(api().semaphore_signal(semaphore, 1, nullptr, nullptr), BP_OK);
  waiter.join();
  api().semaphore_destroy(semaphore);
}

}  // namespace
}  // namespace backplane
