// SPDX-License-Identifier: Apache-2.0
#include "commands/data_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <set>
#include <thread>

#include "cli/printable.h"
#include "commands/onnx_case.h"
#include "journal/digest.h"
#include "run/plugin_run.h"
#include "sandbox/batch.h"
#include "vendor/tolerances.h"

namespace backplane::conform {
namespace {

struct Options {
  const char* command;  // "onnx", or "vendor", which also has a file of tolerances and a prefix for names
  std::string data, device, plugin, filter, out, shard;
  std::vector<std::string> child_folders;
  uint32_t jobs = std::max(1u, std::thread::hardware_concurrency());
  uint32_t threads = 0;
  uint32_t min_pass = 0;
  double timeout = 20;
  bool json = false, strict = false, resume = false, is_child = false;

  bool is_vendor() const { return command == std::string_view("vendor"); }
};

Plan chosen_cases(const Options& options) {
  std::vector<Case> cases;
  try {
    cases = find_cases(options.data);
  } catch (const std::filesystem::filesystem_error& error) {
    throw Usage(fmt::format("--data '{}': {}", options.data, error.code().message()));
  }
  if (cases.empty()) throw Usage(fmt::format("--data '{}' has no folder with a model.onnx", options.data));
  if (!options.filter.empty()) cases = filter(std::move(cases), options.filter);
  if (cases.empty()) throw Usage(fmt::format("--filter '{}' matches no case", options.filter));
  std::vector<std::string> names;
  for (Case& one : cases) {
    if (options.is_vendor()) one.name = "vendor/" + one.name;
    names.push_back(one.name);
  }
  const Shard shard = options.shard.empty() ? Shard() : parse_shard(options.shard);
  return {select(std::move(cases), shard), shard, names.size(), sha256_of_list(names)};
}

// Throws Usage if an entry in the file of tolerances matches no case of the folder.
void check_tolerances(const Options& options) {
  std::vector<std::string> names;
  for (const Case& one : find_cases(options.data)) names.push_back(one.name);
  const std::vector<std::string> unused = Tolerances::read(options.data).unused(names);
  if (!unused.empty())
    throw Usage(fmt::format("tolerance.json: '{}' matches no case of --data '{}': correct or remove the entry",
                            unused.front(), options.data));
}

ChildSettings child_settings(const Options& options) {
  ChildSettings settings;
  settings.deadline = std::chrono::milliseconds(static_cast<int64_t>(options.timeout * 1000));
  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  settings.arguments = {options.command, "--data", options.data, "--threads",
                        std::to_string(std::max(1u, cores / options.jobs))};
  if (!options.device.empty()) settings.arguments.insert(settings.arguments.end(), {"--device", options.device});
  if (!options.plugin.empty()) settings.arguments.insert(settings.arguments.end(), {"--plugin", options.plugin});
  settings.arguments.emplace_back("--child");
  return settings;
}

int exit_status(const Options& options, const Summary& summary) {
  if (summary.executed == 0) return 1;
  if (options.min_pass > 0) {
    return summary[State::kPass] < options.min_pass || summary[State::kCrash] > 0 || summary[State::kTimeout] > 0;
  }
  if (options.strict && summary[State::kNotSupported] > 0) return 1;
  return summary.has_failures() ? 1 : 0;
}

constexpr const char* kLibraryCase = "(library)";  // a child's reply is the path of the backend's library

// The digest of the backend's library, which a resumed run must use too. A child finds the library, because discovery
// loads plugins. Empty for a run without a journal, and for a backend that is linked into this program. Throws Fatal.
std::string library_digest(const Options& options) {
  if (options.out.empty()) return "";
  std::string library;
  run_in_children(child_settings(options), {{.name = kLibraryCase}}, [&](const Result& result) {
    if (result.name == kLibraryCase && result.state == State::kPass) library = result.reason;
  });
  return library.empty() ? "" : sha256_of_file(library);
}

Header describe(const Options& options, const Plan& plan) {
  return {.harness = sha256_of_file("/proc/self/exe"),
          .plugin = options.plugin,
          .plugin_sha256 = library_digest(options),
          .identity = {.device = options.device},
          .selection = options.command,
          .filter = options.filter,
          .shard = plan.shard,
          .cases = plan.total,
          .list = plan.list,
          .started = utc_now()};
}

int run_parent(const Options& options) {
  if (options.data.empty()) throw Usage("--data is missing: the folder of the test data");
  if (options.device.empty() && options.plugin.empty())
    throw Usage("--device or --plugin is missing: it names what is tested");
  if (options.resume && options.out.empty()) throw Usage("--resume requires --out, the folder of the journal");
  const auto start = std::chrono::steady_clock::now();
  Plan cases = chosen_cases(options);
  if (options.is_vendor()) check_tolerances(options);
  Journal journal(options.out, describe(options, cases), options.resume);
  std::set<std::string> done;
  for (const Result& result : journal.results()) done.insert(result.name);
  std::erase_if(cases.cases, [&](const Case& one) { return done.count(one.name) != 0; });
  run_batches(options.jobs, child_settings(options), cases.cases, [&](Result result) {
    const State state = result.state;
    journal.add(std::move(result));
    return state;
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Summary summary = summarize(journal.results(), seconds);
  if (options.json) {
    fmt::print("{}\n", summary.to_json());
  } else {
    for (const Result& result : journal.results()) {
      if (result.state != State::kPass)
        fmt::print("{:15} {}: {}\n", name_of(result.state), cli::printable(result.name), cli::printable(result.reason));
    }
    fmt::print("{}\n", summary.to_text());
  }
  if (summary.executed == 0) fmt::print(stderr, "backplane-conform: no node ran on the device under test\n");
  return exit_status(options, summary);
}

int run_child(const Options& options) {
  return answer(options.child_folders, [&]() -> ChildCases {
    const auto cases = std::make_shared<OnnxCases>(Target{options.device, options.plugin, options.threads});
    const Tolerances tolerances = options.is_vendor() ? Tolerances::read(options.data) : Tolerances();
    return {.run = [cases, tolerances, data = options.data](const std::string& folder) -> Result {
      if (folder == kLibraryCase) return {"", State::kPass, cases->library().string(), 0, 0};
      return cases->run(folder, tolerances.of(name_in(data, folder)));
    }};
  });
}

}  // namespace

std::function<int()> declare_data_command(cli::Command command, const char* name) {
  const auto options = std::make_shared<Options>();
  options->command = name;
  command.add_option("--data", options->data, "Folder of test folders: model.onnx, test_data_set_*/{input,output}_*.pb")
      .shown_as("FOLDER");
  command.add_option("--device", options->device, "The device under test, by its name in `backplane list`")
      .shown_as("NAME");
  command.add_option("--plugin", options->plugin, "Use only this backend: its library or manifest").shown_as("FILE");
  command.add_option("--filter", options->filter, "Run only cases whose name matches this glob").shown_as("GLOB");
  command.add_option("--shard", options->shard, "Run only part i of n, given as i/n").shown_as("I/N");
  command.add_option("--jobs", options->jobs, "Number of parallel processes").range(1, 1024);
  command.add_option("--timeout", options->timeout, "Time limit of a case in seconds").range(0.1, 86400.0);
  command.add_option("--out", options->out, "Folder for journal.jsonl, to which each result is appended")
      .shown_as("FOLDER");
  command.add_flag("--resume", options->resume, "Continue the journal in --out: cases with a result are not run again");
  command.add_option("--min-pass", options->min_pass, "Succeed if this many cases pass and none crashes or hangs");
  command.add_flag("--strict", options->strict, "Fail if anything is not supported");
  command.add_flag("--json", options->json, "Print the summary as JSON on standard output");
  command.add_option("--threads", options->threads).hidden();
  command.add_flag("--child", options->is_child).hidden();
  command.add_option("folders", options->child_folders).hidden();
  return [options]() -> int {
    if (options->is_child) return run_child(*options);
    return run_parent(*options);
  };
}

}  // namespace backplane::conform
