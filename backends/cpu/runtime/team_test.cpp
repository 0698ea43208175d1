// SPDX-License-Identifier: Apache-2.0
#include "runtime/team.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace backplane::cpu {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct Body {
  std::function<void(int64_t begin, int64_t end)> f;
  static void call(void* self, int64_t begin, int64_t end) { static_cast<Body*>(self)->f(begin, end); }
};

bool run(Team& team, int64_t count, int64_t chunks, std::function<void(int64_t, int64_t)> f, int caller_index = 0) {
  Body body{std::move(f)};
  return team.run({count, chunks, &Body::call, &body}, caller_index);
}

double seconds_of_process() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A team has helpers only if the process may use at least two cores.
class TeamTest : public testing::Test {
 protected:
  void SetUp() override {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one core only";
  }
};

TEST_F(TeamTest, RunsEachElementOnceInEveryLoop) {
  Team team(4);
  std::vector<int> times(1000);
  for (int loop = 0; loop < 20000; ++loop) {
    const int64_t count = 1 + loop * 7 % 1000;
    const int64_t chunks = std::min<int64_t>(count, 1 + loop % 9);
    std::fill(times.begin(), times.end(), 0);
    ASSERT_TRUE(run(team, count, chunks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++times[static_cast<size_t>(i)];
    }));
    for (size_t i = 0; i < times.size(); ++i)
      ASSERT_EQ(times[i], i < static_cast<size_t>(count) ? 1 : 0) << loop << ' ' << i;
  }
}

TEST_F(TeamTest, HelpersHavePlacesOfTheirOwn) {
  Team team(2);
  for (int mine : {0, 1}) {
    std::mutex mutex;
    std::set<int> indices;
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (indices.size() < 2 && Clock::now() < end)
      ASSERT_TRUE(run(
          team, 8, 8,
          [&](int64_t, int64_t) {
            std::this_thread::sleep_for(milliseconds(1));
            std::scoped_lock lock(mutex);
            indices.insert(Team::helper_thread_index() < 0 ? mine : Team::helper_thread_index());
          },
          mine));
    EXPECT_EQ(indices, (std::set<int>{0, 1}));
  }
  EXPECT_EQ(Team::helper_thread_index(), -1);
}

TEST_F(TeamTest, WhatAChunkThrowsReachesTheCallerAndTheNextLoopRuns) {
  Team team(2);
  const auto caller = std::this_thread::get_id();
  for (int loop = 0; loop < 200; ++loop) {
    // In turn, only the caller's chunks throw, then only the helper's, then all chunks.
    const auto throws = [&] {
      const bool mine = std::this_thread::get_id() == caller;
      return loop % 3 == 2 || mine == (loop % 3 == 0);
    };
    std::atomic<int> thrown = 0, begun = 0;
    try {
      run(team, 64, 64, [&](int64_t, int64_t) {
        ++begun;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (!throws()) return;
        ++thrown;
        throw std::runtime_error("a chunk");
      });
      EXPECT_EQ(thrown, 0);
      EXPECT_EQ(begun, 64);
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "a chunk");
      EXPECT_GT(thrown, 0);
      if (loop % 3 == 2) {
        EXPECT_LE(begun, 2);  // the first chunk of each thread
      }
    }
    std::atomic<int> ran = 0;
    ASSERT_TRUE(run(team, 16, 16, [&](int64_t, int64_t) { ++ran; }));
    ASSERT_EQ(ran, 16);
  }
}

TEST_F(TeamTest, IsInOneLoopAtATime) {
  Team team(2);
  std::atomic<bool> inner = true;
  ASSERT_TRUE(run(team, 2, 2, [&](int64_t, int64_t) { inner = run(team, 2, 2, [](int64_t, int64_t) {}); }));
  EXPECT_FALSE(inner);
}

TEST_F(TeamTest, SleepsWhenNothingRuns) {
  Team team(4);
  ASSERT_TRUE(run(team, 64, 64, [](int64_t, int64_t) {}));
  std::this_thread::sleep_for(milliseconds(50));
  const double before = seconds_of_process();
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_LT(seconds_of_process() - before, 0.05);
}

TEST_F(TeamTest, WakesAfterSleep) {
  Team team(2);
  std::atomic<int> helped = 0;
  for (int loop = 0; loop < 50; ++loop) {
    std::this_thread::sleep_for(milliseconds(2));
    ASSERT_TRUE(run(team, 8, 8, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(milliseconds(1));
      if (loop > 0 && Team::helper_thread_index() >= 0) ++helped;
    }));
  }
  EXPECT_GT(helped, 0);
}

TEST(TeamOfOne, HasNoHelpers) {
  Team team(1);
  EXPECT_FALSE(run(team, 8, 8, [](int64_t, int64_t) { ADD_FAILURE(); }));
}

TEST_F(TeamTest, AHelperThatLostItsCoreIsGivenTheCallers) {
  // Other threads spin on every core. They preempt the caller and the helper now and then, and the helper also within a
  // chunk.
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i)
    others.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
      }
    });
  {
    Team team(2);
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (team.migrations() == 0 && Clock::now() < end) {
      std::atomic<int> ran = 0;
      ASSERT_TRUE(run(team, 8, 8, [&](int64_t, int64_t) {
        const auto until = Clock::now() + std::chrono::microseconds(300);
        while (Clock::now() < until) {
        }
        ++ran;
      }));
      ASSERT_EQ(ran, 8);
    }
    EXPECT_GT(team.migrations(), 0u);
  }
  stop = true;
  for (auto& other : others) other.join();
}

TEST_F(TeamTest, AForkedProcessLetsItGo) {
  Team* team = new Team(2);
  ASSERT_TRUE(run(*team, 8, 8, [](int64_t, int64_t) {}));
  std::this_thread::sleep_for(milliseconds(5));
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    int ran = 0;
    const bool did = run(*team, 8, 8, [&](int64_t, int64_t) { ++ran; });
    delete team;
    _exit(did && ran == 8 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  delete team;
}

}  // namespace
}  // namespace backplane::cpu
