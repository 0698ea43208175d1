// SPDX-License-Identifier: Apache-2.0
#include "discover/survey.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "discover/negotiate.h"
#include "testing/emulated.h"
#include "testing/forks.h"

namespace backplane {
namespace {

std::atomic<bool> task_ended{false};

bp_status_t BP_CALL submit_and_refuse(const bp_backend_create_t* how, bp_backend_t**, bp_error_t*) {
  bp_task_t task{};
  task.size = sizeof task;
  task.run = [](void*) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    task_ended = true;
  };
  EXPECT_EQ(how->host->submit(how->host, &task), BP_OK);
  return BP_UNSUPPORTED;
}

TEST(Survey, TasksOfAFailedCreateEndBeforeTheHostIsDestroyed) {
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  const auto services = std::make_shared<Services>(desc);
  {
    Backend backend;
    backend.tables->plugin.create = submit_and_refuse;
    EXPECT_EQ(create_backend(backend, "", services, {}).code, BP_REFUSED_CREATE);
  }
  EXPECT_TRUE(task_ended);
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support forks of programs with several threads

bp_status_t BP_CALL refuse(const bp_backend_create_t*, bp_backend_t**, bp_error_t*) {
  return BP_UNSUPPORTED;
}

bool is_refused(const std::shared_ptr<Host>& host) {
  Backend backend;
  backend.tables->plugin.create = refuse;
  backend.host = host;
  return create_backend(backend, "", nullptr, {}).code == BP_REFUSED_CREATE;
}

TEST(Survey, AForkedChildCreatesBackendsWhileThreadsOfItsParentDo) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulator cannot fork a program with several threads";
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  const auto host = std::make_shared<Host>(std::make_shared<Services>(desc), "x", Host::Options{}, BP_ABI_VERSION);
  EXPECT_TRUE(testing::works_in_children([&] { return is_refused(host); }));
}

#endif

}  // namespace
}  // namespace backplane
