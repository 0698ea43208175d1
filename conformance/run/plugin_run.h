// SPDX-License-Identifier: Apache-2.0
// `backplane-conform --plugin FILE`: tests a backend through the C ABI alone. Other commands use its parts.
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

// The options for how cases run. CaseOptions selects the cases.
struct RunOptions {
  std::string plugin;
  uint32_t device = 0;
  Seeds seeds;
  uint32_t jobs = std::max(1u, std::thread::hardware_concurrency());
  double timeout = 20;          // of a case, in seconds
  std::string user;             // the user as whom the plugin's processes run; empty: the user of this process
  uint64_t memory = 0;          // MiB for each process; 0: the process's share of the machine's memory
  std::string waivers, expect;  // files; may be empty
  std::string out;              // folder of the journal; may be empty
  bool resume = false;
  std::function<void(pid_t child)> inspect = {};  // see ChildSettings::inspect
};

void declare_target(cli::Command command, RunOptions& options);      // --plugin, --device
void declare_execution(cli::Command command, RunOptions& options);   // --jobs, --timeout, --memory, --user
void declare_user(cli::Command command, RunOptions& options);        // --user
void declare_exceptions(cli::Command command, RunOptions& options);  // --waivers, --expect

// Throws Usage if --plugin is not a file, or if its processes cannot run as --user.
void check_plugin(const RunOptions& options);
// The vendor's file of expected failures: the given file, or the one next to the plugin. Empty if there is none.
std::string expectations_file(const RunOptions& options);
// The waivers and expected failures from the files in the options. Throws Usage or std::runtime_error.
Exceptions exceptions_of(const RunOptions& options);

// Throws std::runtime_error if the header's list of cases is not the one that this program draws up for its selection,
// profiles and filter, because levels hold only for this program's lists. Does not compare the list of a run without
// levels (see has_levels), or one with cases cut from models, because the models may be elsewhere.
void check_list(const Header& header);

// Opens the device once, in a child process, calls `inspect` if it is set, and returns the identity that the plugin
// reports. Throws Usage, Unusable or std::system_error.
Identity visit_plugin(const RunOptions& options);

// Runs the cases of `plan` that have no result yet in the journal of a resumed run. If the plugin cannot be used, runs
// only those of the group abi, which report why. Applies the exceptions in force on the day on which the run began.
// Throws Usage, Fatal or std::runtime_error.
Journal run_plugin(const RunOptions& options, const CaseOptions& case_options, const Plan& plan,
                   const Exceptions& exceptions);

// Declares the options of `backplane-conform` without a command. Returns a function that performs the run and returns
// the exit status.
std::function<int()> declare_plugin_run(cli::Command app);

}  // namespace backplane::conform
