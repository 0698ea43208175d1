// SPDX-License-Identifier: Apache-2.0
// Environments with partial devices (testing/partial_backend) and the CPU backend, for tests of the public API.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "testing/client_fixture.h"
#include "testing/partial_backend/counters.h"

namespace backplane {

inline const std::string kCpuFile = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
inline const std::string kPartialFile = BACKPLANE_BUILD_DIR "/tests/plugins/partial.so";

inline Environment partial_environment(std::map<std::string, std::string> options) {
  return environment({kCpuFile, kPartialFile}, std::move(options));
}

inline const partial::Counters& counters(const Environment& env, uint32_t device = 0) {
  const auto* all = static_cast<const partial::Counters*>(
      api().env_get_extension(env.get(), view::text(std::string_view("partial/counters")), 1));
  EXPECT_NE(all, nullptr);
  return all[device];
}

// Two branches of one input that meet again.
inline Model diamond() {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
  const uint32_t left = graph.node("Neg", "left", {x});
  const uint32_t right = graph.node("Abs", "right", {x});
  return graph.finish({graph.node("Add", "y", {left, right})});
}

// Waits until an abandoned device has no work in its streams. `counted` stays valid, because a backend with an
// abandoned device is never destroyed.
inline void wait_until_idle(const partial::Counters& counted) {
  const auto begin = std::chrono::steady_clock::now();
  while (counted.in_streams != 0) {
    ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// An environment with devices that are asynchronous, have their own memory, and get islands of one node each, unless
// `options` says otherwise.
inline Environment streaming(std::map<std::string, std::string> options) {
  options.insert({{"partial.async", "1"}, {"partial.max_nodes", "1"}, {"partial.memory", "own"}});
  return partial_environment(std::move(options));
}

// A model that negates x (three floats) `length` times, with nodes n0, n1, …
inline Model chain(int length) {
  Graph graph;
  uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {3});
  for (int i = 0; i < length; ++i) value = graph.node("Neg", "n" + std::to_string(i), {value});
  return graph.finish({value});
}

inline SessionOptions pinned(std::map<std::string, std::string> pins) {
  SessionOptions how;
  how.pins = std::move(pins);
  how.options["loader.costs"] = "reported";  // no copies run just to be measured
  return how;
}

}  // namespace backplane
