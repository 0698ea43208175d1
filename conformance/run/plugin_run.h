// SPDX-License-Identifier: Apache-2.0
// `backplane-conform --plugin FILE`: a backend through the C ABI alone; and its parts, for other commands.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>

#include "cli/command.h"
#include "journal/journal.h"
#include "journal/waiver.h"
#include "report/summary.h"
#include "run/case_options.h"

namespace backplane::conform {

// How cases are run; CaseOptions selects them.
struct RunOptions {
  std::string plugin;
  uint32_t device = 0;
  Seeds seeds;
  uint32_t jobs = std::max(1u, std::thread::hardware_concurrency());
  double timeout = 20;
  uint64_t memory = 0;  // MiB for each process; 0: its share of the machine's
  std::string waivers, expect;
  std::string out;
  bool resume = false;
  std::function<void(pid_t child)> inspect = {};  // see ChildSettings
};

void declare_target(cli::Command command, RunOptions& options);      // --plugin, --device
void declare_execution(cli::Command command, RunOptions& options);   // --jobs, --timeout, --memory
void declare_exceptions(cli::Command command, RunOptions& options);  // --waivers, --expect

// Throws Usage if --plugin is not a file.
void check_plugin(const RunOptions& options);
// The file of the vendor's expectations, given, or found next to the plugin; empty if there is none.
std::string expectations_file(const RunOptions& options);
// The exceptions in the files that the options name. Throws Usage, std::runtime_error.
Exceptions exceptions_of(const RunOptions& options);

// Opens the device once, with `inspect`. Throws Unusable, Fatal.
Identity visit_plugin(const RunOptions& options);

// Runs what `plan` has and the journal has not. Throws Usage, Fatal, std::runtime_error.
Journal run_plugin(const RunOptions& options, const CaseOptions& case_options, const Plan& plan,
                   const Exceptions& exceptions);

// Declares the options of a run without a command, and returns what runs it.
std::function<int()> declare_plugin_run(cli::Command app);

}  // namespace backplane::conform
