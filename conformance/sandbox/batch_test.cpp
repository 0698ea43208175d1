// SPDX-License-Identifier: Apache-2.0
// This program is also the child: with --child, it runs numbered cases. Every 50th case crashes, except that every
// 200th hangs.
#include "sandbox/batch.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

State state_of(int number) {
  return number % 200 == 0 ? State::kTimeout : number % 50 == 0 ? State::kCrash : State::kPass;
}

// The file that a child of the process `parent` makes before it crashes.
fs::path mark_of(pid_t parent) {
  return fs::temp_directory_path() / ("backplane_batch_test_" + std::to_string(parent));
}

Result misbehave(const std::string& folder) {
  const State state = state_of(std::stoi(folder));
  if (state == State::kCrash) {
    std::ofstream(mark_of(getppid())) << "crashed";
    raise(SIGSEGV);
  }
  while (state == State::kTimeout) pause();
  return {"", State::kPass, "", 0, 1};
}

TEST(Batches, EveryCaseEndsInItsOwnState) {
  std::vector<Case> cases;
  for (int i = 1; i <= 2000; ++i) cases.push_back({.name = std::to_string(i)});
  std::map<int, std::vector<State>> seen;
  const ChildSettings settings = {{"--child"}, std::chrono::milliseconds(1000)};
  run_batches(4, settings, cases, [&](const Result& result) {
    seen[std::stoi(result.name)].push_back(result.state);
    return result.state;
  });
  ASSERT_EQ(seen.size(), 2000u);
  std::map<State, int> counts;
  for (const auto& [number, states] : seen) {
    EXPECT_THAT(states, testing::ElementsAre(state_of(number))) << number;
    ++counts[states.front()];
  }
  EXPECT_EQ(counts[State::kTimeout], 10);
  EXPECT_EQ(counts[State::kCrash], 30);
  EXPECT_EQ(counts[State::kPass], 1960);
}

TEST(Batches, ResultsArePassedOnWhenAllCasesOfTheBatchHaveRun) {
  std::vector<Case> cases;
  for (int i = 41; i <= 50; ++i) cases.push_back({.name = std::to_string(i)});  // the last one crashes
  fs::remove(mark_of(getpid()));
  size_t count = 0;
  run_batches(1, {{"--child"}, std::chrono::milliseconds(1000)}, cases, [&](const Result& result) {
    EXPECT_TRUE(fs::exists(mark_of(getpid()))) << result.name;
    ++count;
    return result.state;
  });
  EXPECT_EQ(count, cases.size());
  fs::remove(mark_of(getpid()));
}

TEST(Batches, AnExceptionOfTheSinkEndsTheRun) {
  const std::vector<Case> cases = {{.name = "1"}, {.name = "2"}};
  const auto sink = [](const Result&) -> State { throw std::runtime_error("disk full"); };
  EXPECT_THAT(
      [&] {
        run_batches(2, {{"--child"}, std::chrono::milliseconds(1000)}, cases, sink);
      },
      testing::ThrowsMessage<std::runtime_error>("disk full"));
}

}  // namespace
}  // namespace backplane::conform

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--child")
    return backplane::conform::answer(
        {argv + 2, argv + argc}, [] { return backplane::conform::ChildCases{.run = backplane::conform::misbehave}; });
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
