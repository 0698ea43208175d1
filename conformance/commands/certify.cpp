// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "certify/bundle.h"
#include "certify/machine.h"
#include "certify/rerun.h"
#include "cli/overwrite.h"
#include "cli/printable.h"
#include "commands/verb.h"
#include "journal/digest.h"
#include "run/plugin_run.h"
#include "run/print_report.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

struct Options {
  RunOptions run;
  CaseOptions case_options;
  std::string manifest, key, nonce, bundle, file;
  size_t sample = 200;
};

std::string digest_or_nothing(const std::string& file) {
  return file.empty() ? "" : sha256_of_file(file);
}

Commitment commitment_for(const Options& options, const Plan& cases, std::vector<LoadedFile> files) {
  return {.plugin = sha256_of_file(options.run.plugin),
          .manifest = digest_or_nothing(options.manifest),
          .loader = sha256_of_file(loader_file()),
          .harness = sha256_of_file("/proc/self/exe"),
          .device = options.run.device,
          .selection = options.case_options.full ? "full" : "quick",
          .profiles = options.case_options.profiles,
          .filter = options.case_options.filter,
          .list = cases.list,
          .cases = cases.total,
          .waivers = digest_or_nothing(options.run.waivers),
          .expected = digest_or_nothing(expectations_file(options.run)),
          .files = std::move(files),
          .made = utc_now()};
}

// The files that the plugin loads into its process when its device is opened.
std::vector<LoadedFile> files_of(const Options& options) {
  LoadedFiles loaded;
  RunOptions run = options.run;
  run.inspect = [&](pid_t child) { loaded.note(child); };
  visit_plugin(run);
  std::vector<LoadedFile> files = loaded.hashed();
  loaded.require_code(files);
  return files;
}

// Waits until the current time, in whole seconds, is later than `time`, because `verify` requires each time to be later
// than the one before.
void wait_past(const std::string& time) {
  if (time > utc_in(60))
    throw std::runtime_error(fmt::format("the recorded time {} is in the future: check this machine's clock", time));
  while (utc_now() <= time) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// Throws Usage if a part of the bundle that is about to be written is a file that the command reads.
void keep_files(const Options& options, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    cli::keep_inputs("certify", fs::path(options.bundle) / part, {options.key, options.manifest, options.run.plugin});
}

int commit(const Options& options) {
  check_plugin(options.run);
  const fs::path file = fs::path(options.bundle) / kCommitment;
  if (fs::exists(file))
    throw std::runtime_error(fmt::format("'{}' already exists: choose another folder", file.string()));
  std::error_code ignored;
  fs::create_directories(options.bundle, ignored);
  const std::string text = to_text(commitment_for(options, plan(options.case_options), files_of(options)));
  write_file(file, text);
  fmt::print("{}", cli::printable_lines(text));
  fmt::print("commitment {}\n", sha256(text));
  return 0;
}

// Throws at the first difference from the commitment.
void check_unchanged(const Commitment& made, Commitment now) {
  for (const LoadedFile& file : made.files) {
    if (file.sha256.empty()) continue;
    const std::string digest = sha256_of_file(file.path, kMaxMapped);
    if (digest != file.sha256)
      throw std::runtime_error(
          fmt::format("files: '{}', which the plugin loads, had the SHA-256 {} when it was committed, and now has {}",
                      file.path, file.sha256, digest));
  }
  now.files = made.files;
  now.made = made.made;
  if (to_text(made) == to_text(now)) return;
  const auto a = nlohmann::ordered_json::parse(to_text(made)), b = nlohmann::ordered_json::parse(to_text(now));
  for (const auto& [key, value] : a.items()) {
    if (b[key] != value)
      throw std::runtime_error(
          fmt::format("{} was {} when it was committed, and is now {}", key, value.dump(), b[key].dump()));
  }
}

std::string machine_json() {
  const Machine machine = this_machine();
  return nlohmann::ordered_json{{"processor", machine.processor},
                                {"cores", machine.cores},
                                {"memory_bytes", machine.memory_bytes},
                                {"system", machine.system},
                                {"kernel", machine.kernel}}
      .dump();
}

// The names of all cases, sorted, each on a line.
std::string list_of(const Plan& cases) {
  std::vector<std::string> names;
  for (const Case& one : cases.cases) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += name + '\n';
  return list;
}

int run(Options options) {
  check_plugin(options.run);
  if (const std::string fault = nonce_fault(options.nonce); !fault.empty())
    throw Usage(fmt::format("--nonce: {}; the certifier draws it, as with `openssl rand -hex 16`", fault));
  keep_files(options, {kCases, kWaivers, kWaiverSignature, kExpected, kStatement, kVendorSignature});
  const fs::path folder = options.bundle;
  const Key key = read_key(options.key);
  const std::string commitment_text = read_file(folder / kCommitment);
  const Commitment commitment = commitment_of(commitment_text);
  options.case_options = case_options_of(commitment);
  options.run.device = commitment.device;
  const Plan cases = plan(options.case_options);
  check_unchanged(commitment, commitment_for(options, cases, {}));
  wait_past(commitment.made);
  options.run.seeds = seeds_of(commitment_text, options.nonce);
  options.run.out = options.bundle;
  LoadedFiles loaded;
  options.run.inspect = [&](pid_t child) { loaded.note(child); };
  const Exceptions exceptions = exceptions_of(options.run);
  // What is signed never comes from a file that the plugin's processes could have changed during the run.
  Parts parts = {{kCommitment, commitment_text}, {kCases, list_of(cases)}};
  if (!options.run.waivers.empty()) {
    parts[kWaivers] = read_file(options.run.waivers);
    if (const std::string signature = options.run.waivers + ".sig"; fs::exists(signature))
      parts[kWaiverSignature] = read_file(signature);
  }
  if (const std::string expected = expectations_file(options.run); !expected.empty())
    parts[kExpected] = read_file(expected);
  visit_plugin(options.run);  // a run that is resumed after its last case loads nothing
  Journal journal = run_plugin(options.run, options.case_options, cases, exceptions);
  wait_past(journal.header().started);

  parts[kJournal] = text_of({journal.header(), journal.results()});
  std::vector<LoadedFile> files = loaded.hashed();
  loaded.require_code(files);
  parts[kStatement] = statement_of(parts, {options.nonce, utc_now(), machine_json(), std::move(files)});
  parts[kVendorSignature] = sign(key, "vendor", {{kStatement, sha256(parts[kStatement])}});
  const Proof proof = verify(parts);
  for (const auto& [name, text] : parts)
    if (name != kCommitment) write_file(folder / name, text);
  // Without a file of trusted keys no waiver counts. See `verify-bundle --trust`.
  const RunOutcome outcome = outcome_on(proof, utc_now().substr(0, 10), false);
  return print_report(proof.record.header, proof.record.results, outcome, false);
}

// Verifies the bundle, runs a sample of its cases again, and signs the result.
int countersign(const Options& options) {
  keep_files(options, {kLabReport, kLabSignature});
  const fs::path folder = options.bundle;
  Parts parts = read_parts(folder);
  if (parts.count(kLabSignature) != 0)
    throw std::runtime_error(fmt::format("'{}' is already countersigned", options.bundle));
  const Key key = read_key(options.key);
  const Proof proof = verify(parts);
  if (key.public_hex == proof.vendor.public_hex)
    throw Usage("--key is the vendor's own key; a countersignature needs another key");
  check_plugin(options.run);
  const Rerun again = rerun_sample(proof, parts, options.run, options.sample);
  const nlohmann::ordered_json json = {{"lab", 1},
                                       {"again", again.cases},
                                       {"cases", proof.plan.total},
                                       {"plugin_sha256", proof.commitment.plugin},
                                       {"harness_sha256", sha256_of_file("/proc/self/exe")},
                                       {"machine", nlohmann::ordered_json::parse(machine_json())},
                                       {"device", again.device},
                                       {"driver", again.driver},
                                       {"as_other_user", !options.run.user.empty()},
                                       {"ended", utc_now()}};
  const std::string report = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  write_file(folder / kLabReport, report);
  write_file(folder / kLabSignature, sign(key, "lab",
                                          {{kStatement, sha256(parts.at(kStatement))},
                                           {kVendorSignature, sha256(parts.at(kVendorSignature))},
                                           {kLabReport, sha256(report)}}));
  fmt::print("{} of {} cases were run again and had the results in the journal; countersigned\n", again.cases,
             proof.plan.total);
  if (options.run.user.empty())
    fmt::print(stderr,
               "backplane-conform: the plugin ran as the user who owns the key, and could read it: use --user\n");
  return 0;
}

// Signs a file of waivers as the certifier. The signature goes to FILE.sig.
int accept_waivers(const Options& options) {
  cli::keep_inputs("accept-waivers", options.file + ".sig", {options.file, options.key});
  const std::string text = read_file(options.file, 1 << 20);
  Exceptions().add_waivers(text, options.file);
  write_file(options.file + ".sig", sign(read_key(options.key), "certifier", {{kWaivers, sha256(text)}}));
  return 0;
}

cli::Command subcommand(cli::Command command, Options& options, const char* name, const char* does) {
  cli::Command one = command.add_command(name, does);
  one.add_option("BUNDLE", options.bundle, "The bundle's folder").shown_as("FOLDER").required();
  return one;
}

std::function<int()> declare(cli::Command command) {
  const auto options = std::make_shared<Options>();
  command.require_command();

  cli::Command first = subcommand(command, *options, "commit", "binds the vendor to files and cases, in BUNDLE");
  declare_target(first, options->run);
  declare_case_options(first, options->case_options);
  declare_exceptions(first, options->run);
  first.add_option("--manifest", options->manifest, "The plugin's manifest").shown_as("FILE");
  first.remove_option("--shard");
  declare_user(first, options->run);

  cli::Command second = subcommand(command, *options, "run",
                                   "runs the committed cases with seeds derived from the nonce, and signs the result");
  second.add_option("--plugin", options->run.plugin, "The library of the backend under test").shown_as("FILE");
  second.add_option("--manifest", options->manifest, "The plugin's manifest").shown_as("FILE");
  second.add_option("--nonce", options->nonce, "The certifier's nonce for the commitment").shown_as("NONCE").required();
  second.add_option("--key", options->key, "The vendor's key file").shown_as("FILE").required();
  declare_execution(second, options->run);
  declare_exceptions(second, options->run);
  second.add_flag("--resume", options->run.resume, "Continue an interrupted run");

  cli::Command third = subcommand(command, *options, "countersign",
                                  "verifies BUNDLE, runs a sample of its cases again, and signs it as a laboratory");
  third.add_option("--key", options->key, "The laboratory's key file").shown_as("FILE").required();
  third.add_option("--plugin", options->run.plugin, "The plugin").shown_as("FILE").required();
  third.add_option("--sample", options->sample, "Number of cases to run again").range(1, 1 << 24);
  declare_execution(third, options->run);

  cli::Command fourth = command.add_command("accept-waivers", "signs a file of waivers as the certifier, to FILE.sig");
  fourth.add_option("FILE", options->file, "The waivers").required();
  fourth.add_option("--key", options->key, "The certifier's key file").shown_as("FILE").required();

  return [options, first, second, third] {
    if (first.was_called()) return commit(*options);
    if (second.was_called()) return run(*options);
    return third.was_called() ? countersign(*options) : accept_waivers(*options);
  };
}

}  // namespace

extern const Verb certify_verb = {
    "certify", "commits to a plugin, runs the cases with seeds derived from a nonce, and signs the result", declare};

}  // namespace backplane::conform
