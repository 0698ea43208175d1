// SPDX-License-Identifier: Apache-2.0
#include "runner/plugin_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <thread>

#include "groups/group.h"
#include "runner/batch.h"
#include "runner/child.h"
#include "runner/journal.h"
#include "runner/level.h"

namespace backplane::conform {
namespace {

constexpr const char* kProfile = "core";

struct Options {
  std::string plugin, profile, filter, shard, out, repro, require_level;
  std::vector<std::string> cases;
  uint32_t device = 0;
  uint32_t jobs = std::max(1u, std::thread::hardware_concurrency());
  uint64_t seed = 1;
  double timeout = 20;
  bool quick = false, full = false, json = false;
};

// The cases that the options choose, those of --repro alone if it is given.
std::vector<Case> chosen_cases(const Options& options) {
  if (!options.profile.empty() && options.profile != kProfile) {
    throw Usage(fmt::format("--profile '{}' is not known: there is '{}'", options.profile, kProfile));
  }
  std::vector<Case> cases;
  for (const GroupCase& one : all_cases({.full = options.full || !options.repro.empty()})) {
    if (options.repro.empty() || one.name == options.repro) cases.push_back({one.name, one.name});
  }
  if (cases.empty())
    throw Usage(fmt::format("--repro '{}' is no case: `backplane-conform list --full` tells all", options.repro));
  if (!options.filter.empty()) cases = filter(std::move(cases), options.filter);
  if (!options.shard.empty()) cases = select(std::move(cases), parse_shard(options.shard));
  if (cases.empty()) throw Usage("--filter and --shard leave no case");
  return cases;
}

// Names the list of cases: equal hashes, equal lists.
uint64_t hash_of(const std::vector<Case>& cases) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Case& one : cases) {
    for (const char c : one.name + '\n') hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

void print_failures(const Options& options, const std::vector<Result>& results) {
  for (const Result& result : results) {
    if (result.state == State::kPass || result.state == State::kNotSupported) continue;
    fmt::print("{:13} {}: {}\n", name_of(result.state), result.name, result.reason);
    fmt::print("{:13} backplane-conform --plugin {} --seed {} --repro {}\n", "", options.plugin, options.seed,
               result.name);
  }
}

void print_groups(const std::vector<Result>& results) {
  std::map<std::string_view, std::map<State, uint32_t>> groups;
  for (const Result& result : results) ++groups[group_of(result.name)][result.state];
  for (const auto& [group, states] : groups) {
    std::string line;
    for (const auto& [state, count] : states) line += fmt::format("  {} {}", count, name_of(state));
    fmt::print("{:13}{}\n", group, line);
  }
}

// 0 only if something ran and nothing failed; with --require-level if that level is reached.
int verdict(const Options& options, const std::vector<Result>& results, const Summary& summary,
            const std::vector<Level>& reached) {
  if (!options.require_level.empty()) {
    for (const Level& level : reached) {
      if (level.name == options.require_level) return level.reached ? 0 : 1;
    }
  }
  if (summary[State::kPass] == 0) return 1;
  const bool claims = !options.profile.empty();
  if (std::any_of(results.begin(), results.end(), [=](const Result& one) { return is_missing(one, claims); })) return 1;
  return summary.has_failures() ? 1 : 0;
}

int run_parent(const Options& options) {
  if (options.plugin.empty()) throw Usage("--plugin is missing: the library of the backend under test");
  if (!std::filesystem::is_regular_file(options.plugin))
    throw Usage(fmt::format("--plugin '{}' is no file; a build has its plugins in lib/backplane/", options.plugin));
  if (options.quick && options.full) throw Usage("--quick and --full exclude each other");
  const std::vector<Case> cases = chosen_cases(options);
  Journal journal(options.out);
  ChildSettings settings;
  settings.deadline = std::chrono::milliseconds(static_cast<int64_t>(options.timeout * 1000));
  settings.arguments = {"case-child",
                        "--plugin",
                        options.plugin,
                        "--device",
                        std::to_string(options.device),
                        "--seed",
                        std::to_string(options.seed)};
  if (options.full) settings.arguments.emplace_back("--full");
  run_batches(options.jobs, settings, cases, journal);

  const std::vector<Result>& results = journal.results();
  const Summary summary = journal.summary();
  const std::vector<Level> reached = levels(results, !options.profile.empty());
  if (options.json) {
    std::vector<std::string> names;
    for (const Level& level : reached) {
      if (level.reached) names.emplace_back(level.name);
    }
    fmt::print("{}\n", summary.to_json(names));
    return verdict(options, results, summary, reached);
  }
  print_failures(options, results);
  print_groups(results);
  fmt::print("{}\ncase list {:016x}, seed {}\n", summary.to_text(), hash_of(cases), options.seed);
  for (const Level& level : reached)
    fmt::print("{} {}\n", level.name, level.reached ? "reached" : "not reached: " + level.reason);
  if (summary.executed == 0) fmt::print(stderr, "backplane-conform: no node ran on the device under test\n");
  return verdict(options, results, summary, reached);
}

// Usage and environment errors as exit statuses.
int guarded(const std::function<int()>& run) {
  try {
    return run();
  } catch (const Usage& error) {
    fmt::print(stderr, "backplane-conform: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "backplane-conform: {}\n", error.what());
    return 1;
  }
}

void declare_choice(CLI::App& command, Options& options) {
  command.add_option("--profile", options.profile, "The profile that the backend claims: what it lacks is a failure");
  command.add_flag("--quick", options.quick, "One draw of each case's inputs (the default)");
  command.add_flag("--full", options.full, "Ten draws, and longer loops");
  command.add_option("--filter", options.filter, "Only cases whose name matches this glob");
  command.add_option("--shard", options.shard, "Only part i of n, as i/n");
}

int run_child(const Options& options) {
  return answer(options.cases, [&]() -> RunFolder {
    const auto bench = std::make_shared<Bench>(options.plugin, options.device, options.seed);
    const auto cases = std::make_shared<std::map<std::string, GroupCase>>();
    // --repro takes names of --full too, whose loops are long only if it is given.
    for (const bool full : {options.full, true}) {
      for (GroupCase& one : all_cases({.full = full})) cases->emplace(one.name, std::move(one));
    }
    return [bench, cases](const std::string& name) {
      try {
        return cases->at(name).run(*bench);
      } catch (const Breach& breach) {
        return failed(breach.what());
      }
    };
  });
}

}  // namespace

std::function<int()> declare_plugin_run(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("--plugin", options->plugin, "The library of the backend under test");
  app.add_option("--device", options->device, "Which of its devices, from 0");
  declare_choice(app, *options);
  app.add_option("--seed", options->seed, "From which all inputs are drawn");
  app.add_option("--repro", options->repro, "One case alone, by its full name");
  app.add_option("--jobs", options->jobs, "Processes at a time")->check(CLI::Range(1, 1024));
  app.add_option("--timeout", options->timeout, "Seconds for each case")->check(CLI::Range(0.1, 86400.0));
  app.add_option("--out", options->out, "Folder for journal.jsonl, to which each result is appended");
  app.add_option("--require-level", options->require_level, "Succeed if this level is reached: L0, L1, L2 or L3")
      ->check(CLI::IsMember({"L0", "L1", "L2", "L3"}));
  app.add_flag("--json", options->json, "The summary as JSON on standard output");
  return [options] { return guarded([&] { return run_parent(*options); }); };
}

std::function<int()> declare_list(CLI::App& command) {
  const auto options = std::make_shared<Options>();
  declare_choice(command, *options);
  return [options] {
    return guarded([&] {
      const std::vector<Case> cases = chosen_cases(*options);
      for (const Case& one : cases) fmt::print("{}\n", one.name);
      fmt::print(stderr, "{} cases, list {:016x}\n", cases.size(), hash_of(cases));
      return 0;
    });
  };
}

std::function<int()> declare_case_child(CLI::App& command) {
  const auto options = std::make_shared<Options>();
  command.add_option("--plugin", options->plugin);
  command.add_option("--device", options->device);
  command.add_option("--seed", options->seed);
  command.add_flag("--full", options->full);
  command.add_option("cases", options->cases);
  return [options] { return run_child(*options); };
}

}  // namespace backplane::conform
