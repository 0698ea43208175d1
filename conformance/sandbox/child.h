// SPDX-License-Identifier: Apache-2.0
// Runs cases in child processes: a crash or hang fails only its own case.
//
// The parent starts its own program again and names the cases; the child sends records (channel.h): "ready" when it is
// set up, or "fatal TEXT" when it cannot be; then for each case a line of JSON, or, for a case that the parent judges,
// a reply to each of its requests.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "checks/remote.h"
#include "journal/case.h"
#include "journal/result.h"

namespace backplane::conform {

// No case can run: the device does not exist, or the child dies before its first case.
struct Fatal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr int kPatience = 10;

struct ChildSettings {
  std::vector<std::string> arguments;  // of the child; its cases' arguments or names follow
  // The limit for the set-up, each case and each request of a case. Time in which the child was runnable but got no
  // processor does not count, up to kPatience deadlines: see cpu_starvation.h.
  std::chrono::milliseconds deadline{20000};
  uint64_t memory = 0;  // bytes that a child may allocate; 0: no limit
  uint64_t seed = 1;    // of the cases that the parent judges
  // Called after a child has replied to all requests of a case, while it waits. [thread-safe]
  std::function<void(pid_t child)> inspect = {};
};

// Runs the cases in order in as many children as needed, and reports each once. A case that crashed is run again alone;
// if it does not crash then, its reason names the earlier case after which it does, found by bisection. The end of the
// last child is reported as "(end of process)" if it is faulty. Throws Fatal. [thread-safe]
void run_in_children(const ChildSettings& settings, std::vector<Case> cases, const std::function<void(Result)>& report);

// The child's side: `answer` calls `set_up` once for the functions that run the cases. Both may throw std::exception;
// an exception of `set_up` is fatal. Returns the exit status of the process.
struct ChildCases {
  std::function<Result(const std::string& name)> run;
  // Replies to a request of a case that the parent judges; `serve` returns an empty function for other cases.
  using Serve = std::function<std::string(const std::string& request)>;
  std::function<Serve(const std::string& name)> serve = {};
};
int answer(const std::vector<std::string>& names, const std::function<ChildCases()>& set_up);

}  // namespace backplane::conform
