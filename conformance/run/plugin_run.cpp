// SPDX-License-Identifier: Apache-2.0
#include "run/plugin_run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "checks/remote.h"
#include "cli/printable.h"
#include "journal/digest.h"
#include "journal/level.h"
#include "run/print_report.h"
#include "sandbox/batch.h"
#include "sandbox/identity.h"
#include "sandbox/user.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

ChildSettings child_settings(const RunOptions& options, const CaseOptions& case_options) {
  ChildSettings settings;
  settings.deadline = std::chrono::milliseconds(static_cast<int64_t>(options.timeout * 1000));
  const auto machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  settings.memory = options.memory != 0 ? options.memory << 20 : machine / options.jobs;
  settings.arguments = {"case-child",
                        "--plugin",
                        options.plugin,
                        "--device",
                        std::to_string(options.device),
                        "--seed",
                        std::to_string(options.seeds.of_cases())};
  settings.seed = options.seeds.of_cases();
  settings.inspect = options.inspect;
  if (!options.user.empty()) settings.arguments.push_back("--user=" + options.user);
  if (case_options.full) settings.arguments.emplace_back("--full");
  for (const std::string& folder : case_options.models) settings.arguments.push_back("--models=" + folder);
  return settings;
}

Header describe(const RunOptions& options, const CaseOptions& case_options, const Plan& plan,
                const Exceptions& exceptions) {
  return {.harness = sha256_of_file("/proc/self/exe"),
          .plugin = options.plugin,
          .plugin_sha256 = sha256_of_file(options.plugin),
          .selection = case_options.full ? "full" : "quick",
          .profiles = case_options.profiles,
          .filter = case_options.filter,
          .shard = plan.shard,
          .seeds = options.seeds,
          .cases = plan.total,
          .list = plan.list,
          .models = plan.models,
          .waivers = exceptions.digest(),
          .started = utc_now()};
}

// The word as a shell reads it: in quotes, if it has characters that are unusual in paths.
std::string shell_word(const std::string& word) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || std::strchr("_./-+=:,@%", c) != nullptr; };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string repro_line(const RunOptions& options, const CaseOptions& case_options, const Result& result) {
  std::string models;
  if (result.name.starts_with("graph/models/")) {
    for (const std::string& folder : case_options.models) models += fmt::format(" --models {}", shell_word(folder));
  }
  return fmt::format("backplane-conform repro {} --plugin {}{}{}{} --seed {}", shell_word(result.name),
                     shell_word(options.plugin), options.device == 0 ? "" : fmt::format(" --device {}", options.device),
                     case_options.full ? " --full" : "", models, result.seed);
}

// The cases that have no result yet. If the plugin is unusable, only those of the group abi, which report the reason.
std::vector<Case> left_over(const Plan& plan, Journal& journal, const std::string& unusable) {
  std::set<std::string> done;
  for (const Result& result : journal.results()) done.insert(result.name);
  std::vector<Case> cases = plan.cases;
  std::erase_if(cases, [&](const Case& one) {
    return done.count(one.name) != 0 || (!unusable.empty() && label_of(one.name).group != "abi");
  });
  return cases;
}

// Prevents a plugin that runs as the same user from reading or writing this process, which contains the judge and keys.
void hide_from_plugins() {
  prctl(PR_SET_DUMPABLE, 0);
}

// Makes a case that the parent judges fail if the device reports other flags than `flags` in the case's process.
void expect_flags(std::vector<Case>& cases, uint32_t flags) {
  for (Case& one : cases) {
    if (!one.judge) continue;
    one.judge = [judge = std::move(one.judge), flags](RemoteDevice& device) {
      device.expect_flags(flags);
      return judge(device);
    };
  }
}

}  // namespace

void check_plugin(const RunOptions& options) {
  if (options.plugin.empty()) throw Usage("--plugin is missing: the library of the backend under test");
  if (!fs::is_regular_file(options.plugin))
    throw Usage(fmt::format("--plugin '{}' is not a file; a build has its plugins in lib/backplane/", options.plugin));
  if (options.user.empty()) return;
  try {
    check_user(options.user);
  } catch (const std::runtime_error& error) {
    throw Usage(fmt::format("--user: {}", error.what()));
  }
}

std::string expectations_file(const RunOptions& options) {
  if (!options.expect.empty()) return options.expect;
  const fs::path file = fs::path(options.plugin).replace_extension(".conformance.json");
  return fs::exists(file) ? file.string() : "";
}

Exceptions exceptions_of(const RunOptions& options) {
  Exceptions exceptions;
  if (!options.waivers.empty()) exceptions.add_waivers(read_file(options.waivers), options.waivers);
  const std::string expected = expectations_file(options);
  if (!expected.empty()) exceptions.add_expectations(read_file(expected), expected);
  return exceptions;
}

void check_list(const Header& header) {
  if (!has_levels(header) || !header.models.empty()) return;
  CaseOptions options;
  options.full = header.selection == "full";
  options.profiles = header.profiles;
  options.filter = header.filter;
  if (const std::string own = plan(options).list; own != header.list)
    throw std::runtime_error(
        fmt::format("the list {} is not the list {} of this program: use the release that ran the cases",
                    cli::printable(header.list), own));
}

Identity visit_plugin(const RunOptions& options) {
  check_plugin(options);
  hide_from_plugins();
  return identify(child_settings(options, {}));
}

Journal run_plugin(const RunOptions& options, const CaseOptions& case_options, const Plan& plan,
                   const Exceptions& exceptions) {
  check_plugin(options);
  hide_from_plugins();
  const ChildSettings settings = child_settings(options, case_options);
  Header header = describe(options, case_options, plan, exceptions);
  header.identity.device_index = options.device;
  std::string unusable;
  try {
    header.identity = identify(settings);
  } catch (const Unusable& error) {
    unusable = error.what();
    fmt::print(stderr, "backplane-conform: '{}' cannot be used, so only the group abi is run: {}\n", options.plugin,
               cli::printable(unusable));
  }
  Journal journal(options.out, std::move(header), options.resume);
  // A resumed run keeps the day on which it began.
  const Exceptions holding = exceptions.on(journal.header().identity, journal.header().started.substr(0, 10));
  std::map<std::string_view, std::string_view> profiles;
  for (const Case& one : plan.cases) profiles[one.name] = one.profile;
  std::vector<Case> cases = left_over(plan, journal, unusable);
  if (unusable.empty()) expect_flags(cases, journal.header().identity.flags);
  run_batches(options.jobs, settings, cases, [&](Result result) {
    const auto profile = profiles.find(result.name);
    if (profile != profiles.end()) result.profile = profile->second;
    result.seed = options.seeds.of_cases();
    result = holding.apply(std::move(result));
    if (result.state != State::kPass && is_of_list(result)) result.repro = repro_line(options, case_options, result);
    const State state = result.state;
    journal.add(std::move(result));
    return state;
  });
  // Rewrites the journal from memory, because a plugin could have changed the file during the run.
  if (!options.out.empty()) write_journal(options.out, {journal.header(), journal.results()});
  return journal;
}

void declare_target(cli::Command command, RunOptions& options) {
  command.add_option("--plugin", options.plugin, "The library of the backend under test").shown_as("FILE");
  command.add_option("--device", options.device, "Index of the backend's device, from 0");
}

void declare_execution(cli::Command command, RunOptions& options) {
  command.add_option("--jobs", options.jobs, "Number of parallel processes").range(1, 1024);
  command
      .add_option("--timeout", options.timeout,
                  "Time limit of a case in seconds, not counting time without a processor")
      .range(0.1, 86400.0);
  command
      .add_option("--memory", options.memory,
                  "Memory limit of each process in MiB; default: an equal share of the machine's memory")
      .range(64, 1 << 26);
  declare_user(command, options);
}

void declare_user(cli::Command command, RunOptions& options) {
  command
      .add_option("--user", options.user,
                  "User as whom the plugin runs, who must not be able to read the keys; requires root")
      .shown_as("NAME");
}

void declare_exceptions(cli::Command command, RunOptions& options) {
  command.add_option("--waivers", options.waivers, "File of failures that are waived until a given day")
      .shown_as("FILE");
  command
      .add_option("--expect", options.expect,
                  "File of failures that the vendor declares; default: the plugin's name with .conformance.json")
      .shown_as("FILE");
}

std::function<int()> declare_plugin_run(cli::Command app) {
  struct Options {
    RunOptions run;
    CaseOptions case_options;
    std::string require_level;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  declare_target(app, options->run);
  declare_case_options(app, options->case_options);
  declare_models(app, options->case_options);
  app.add_option("--seed", options->run.seeds.seed, "Seed of all inputs");
  declare_execution(app, options->run);
  declare_exceptions(app, options->run);
  app.add_option("--out", options->run.out, "Folder for journal.jsonl, to which each result is appended")
      .shown_as("FOLDER");
  app.add_flag("--resume", options->run.resume, "Continue the journal in --out: cases with a result are not run again");
  app.add_option("--require-level", options->require_level, "Succeed if this level is reached: L0, L1, L2 or L3")
      .one_of({"L0", "L1", "L2", "L3"});
  app.add_flag("--json", options->json, "Print the summary as JSON on standard output");
  return [options] {
    if (options->run.resume && options->run.out.empty())
      throw Usage("--resume requires --out, the folder of the journal");
    const auto start = std::chrono::steady_clock::now();
    const Plan cases = plan(options->case_options);
    Journal journal = run_plugin(options->run, options->case_options, cases, exceptions_of(options->run));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::vector<Result>& results = journal.results();
    return print_report(journal.header(), results, outcome(journal.header(), results, options->require_level, seconds),
                        options->json);
  };
}

}  // namespace backplane::conform
