// SPDX-License-Identifier: Apache-2.0
// Runs cases in child processes, so that a crash or hang fails only its own case.
//
// The parent starts its own program again and names the cases. The child sends records (channel.h). The first is
// "ready" when the child is set up, or "fatal TEXT" if it cannot be. Then each case sends one line of JSON, or, if the
// parent judges the case, a reply to each of the parent's requests.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "checks/case.h"
#include "checks/remote.h"
#include "journal/result.h"

namespace backplane::conform {

// Thrown if no case can run, for example because the device does not exist or the child dies before its first case.
struct Fatal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr int kPatience = 10;

struct ChildSettings {
  std::vector<std::string> arguments;  // the child's arguments, before those that name its cases
  // The time limit for the set-up, for each case that the child runs, for each request of a case that the parent
  // judges, and for the child's exit. Time in which the child was runnable but got no processor does not count, up to
  // kPatience times this limit. See cpu_starvation.h.
  std::chrono::milliseconds deadline{20000};
  uint64_t memory = 0;  // bytes that a child may allocate; 0 means no limit
  uint64_t seed = 1;    // for the cases that the parent judges
  // Called after a case that the parent judges, if the child replied to all its requests, while the child waits for
  // more. [thread-safe]
  std::function<void(pid_t child)> inspect = {};
};

// Runs the cases in order, in as many children as needed, and reports each case once. A case that crashes after other
// cases of its child is run again alone. If it does not crash alone, bisection finds the earlier case that makes it
// crash, and the reason of the crash names that earlier case, or says that the crash did not recur. If the last child
// does not end properly, this is reported as "(end of process)". Throws Fatal. [thread-safe]
void run_in_children(const ChildSettings& settings, std::vector<Case> cases, const std::function<void(Result)>& report);

// The functions that run cases in the child. The child calls `answer`, which calls `set_up` once to get them. `set_up`
// and `run` may throw std::exception, which is fatal from `set_up`; `serve` and its functions must not. `answer`
// returns the exit status of the process.
struct ChildCases {
  std::function<Result(const std::string& name)> run;
  // Replies to a request of a case that the parent judges. `serve` returns an empty function for other cases.
  using Serve = std::function<std::string(const std::string& request)>;
  std::function<Serve(const std::string& name)> serve = {};
};
int answer(const std::vector<std::string>& names, const std::function<ChildCases()>& set_up);

}  // namespace backplane::conform
