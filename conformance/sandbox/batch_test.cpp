// SPDX-License-Identifier: Apache-2.0
// This program is also the child: with --child, it runs numbered cases. Every 50th case crashes, except that every
// 200th hangs.
#include "sandbox/batch.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <map>

namespace backplane::conform {
namespace {

State state_of(int number) {
  return number % 200 == 0 ? State::kTimeout : number % 50 == 0 ? State::kCrash : State::kPass;
}

Result misbehave(const std::string& folder) {
  const State state = state_of(std::stoi(folder));
  if (state == State::kCrash) raise(SIGSEGV);
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
