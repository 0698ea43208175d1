// SPDX-License-Identifier: Apache-2.0
#include "discover/survey.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "discover/negotiate.h"

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

// Threads of the parent create backends all the time, so that a fork finds each lock of create_backend held sooner or
// later.
TEST(Survey, AForkedChildCreatesBackendsWhileThreadsOfItsParentDo) {
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  const auto host = std::make_shared<Host>(std::make_shared<Services>(desc), "x", Host::Options{}, BP_ABI_VERSION);
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!ends) is_refused(host);
    });
  }
  int hung = 0;
  for (int i = 0; i < 300 && hung == 0; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(20);  // ends a child that hangs
      ::_exit(is_refused(host) ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    hung += status != 0;
  }
  EXPECT_EQ(hung, 0) << "a child hung";
  ends = true;
  for (std::thread& thread : threads) thread.join();
}

#endif

}  // namespace
}  // namespace backplane
