// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "certify/bundle.h"
#include "certify/machine.h"
#include "commands/verb.h"
#include "journal/digest.h"
#include "run/plugin_run.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

struct Options {
  RunOptions run;
  Choice choice;
  std::string manifest, key, nonce, bundle;
};

std::string digest_or_nothing(const std::string& file) {
  return file.empty() ? "" : sha256_of_file(file);
}

Commitment commitment_for(const Options& options, const Plan& cases) {
  return {.plugin = sha256_of_file(options.run.plugin),
          .manifest = digest_or_nothing(options.manifest),
          .loader = sha256_of_file(loader_file()),
          .harness = sha256_of_file("/proc/self/exe"),
          .device = options.run.device,
          .selection = options.choice.full ? "full" : "quick",
          .profiles = options.choice.profiles,
          .filter = options.choice.filter,
          .list = cases.list,
          .cases = cases.total,
          .seed = options.run.seeds.seed,
          .waivers = digest_or_nothing(options.run.waivers),
          .expected = digest_or_nothing(expectations_file(options.run)),
          .made = utc_now()};
}

int commit(const Options& options) {
  check_plugin(options.run);
  const fs::path file = fs::path(options.bundle) / kCommitment;
  if (fs::exists(file)) throw std::runtime_error(fmt::format("'{}' exists: choose another folder", file.string()));
  std::error_code ignored;
  fs::create_directories(options.bundle, ignored);
  const std::string text = to_text(commitment_for(options, plan(options.choice)));
  write_file(file, text);
  fmt::print("{}", text);
  fmt::print("commitment {}\n", sha256(text));
  return 0;
}

// What has changed since the commitment was made, or nothing.
void check_unchanged(const Commitment& made, Commitment now) {
  now.made = made.made;
  if (to_text(made) == to_text(now)) return;
  const auto a = nlohmann::ordered_json::parse(to_text(made)), b = nlohmann::ordered_json::parse(to_text(now));
  for (const auto& [key, value] : a.items()) {
    if (b[key] != value)
      throw std::runtime_error(
          fmt::format("{} was {} when it was committed and is {}", key, value.dump(), b[key].dump()));
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

int run(Options options) {
  check_plugin(options.run);
  if (options.nonce.size() < 8) throw Usage("--nonce must have at least 8 characters: it is drawn by the certifier");
  const fs::path folder = options.bundle;
  const Key key = read_key(options.key);
  const std::string commitment_text = read_file(folder / kCommitment);
  const Commitment commitment = commitment_of(commitment_text);
  options.choice = choice_of(commitment);
  options.run.device = commitment.device;
  options.run.seeds = {.seed = commitment.seed};
  const Plan cases = plan(options.choice);
  check_unchanged(commitment, commitment_for(options, cases));
  options.run.seeds = seeds_of(commitment_text, options.nonce);
  options.run.out = options.bundle;
  run_plugin(options.run, options.choice, cases, exceptions_of(options.run));

  std::vector<std::string> names;
  for (const Case& one : cases.cases) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += name + '\n';
  write_file(folder / kCases, list);
  if (!options.run.waivers.empty()) write_file(folder / kWaivers, read_file(options.run.waivers));
  if (const std::string expected = expectations_file(options.run); !expected.empty())
    write_file(folder / kExpected, read_file(expected));

  const std::string statement = statement_of(read_parts(folder), {options.nonce, utc_now(), machine_json()});
  write_file(folder / kStatement, statement);
  write_file(folder / kVendorSignature, sign(key, "vendor", {{kStatement, sha256(statement)}}));
  const Proof proof = verify(read_parts(folder));
  return tell(proof.record.header, proof.record.results, proof.verdict, false);
}

int countersign(const Options& options) {
  const fs::path folder = options.bundle;
  const Parts parts = read_parts(folder);
  if (parts.count(kLabSignature) != 0)
    throw std::runtime_error(fmt::format("'{}' is countersigned already", options.bundle));
  verify(parts);
  write_file(folder / kLabSignature, sign(read_key(options.key), "lab",
                                          {{kStatement, sha256(parts.at(kStatement))},
                                           {kVendorSignature, sha256(parts.at(kVendorSignature))}}));
  return 0;
}

cli::Command subcommand(cli::Command command, Options& options, const char* name, const char* does) {
  cli::Command one = command.add_command(name, does);
  one.add_option("BUNDLE", options.bundle, "The bundle's folder").required();
  return one;
}

std::function<int()> declare(cli::Command command) {
  const auto options = std::make_shared<Options>();
  command.require_command();

  cli::Command first = subcommand(command, *options, "commit", "binds the vendor to files and cases, in BUNDLE");
  declare_target(first, options->run);
  declare_choice(first, options->choice);
  declare_exceptions(first, options->run);
  first.add_option("--manifest", options->manifest, "The plugin's manifest");
  first.add_option("--seed", options->run.seeds.seed, "The public seed");
  first.remove_option("--shard");

  cli::Command second =
      subcommand(command, *options, "run", "runs what was committed, with seeds of the nonce, and signs");
  second.add_option("--plugin", options->run.plugin, "The library of the backend under test");
  second.add_option("--manifest", options->manifest, "The plugin's manifest");
  second.add_option("--nonce", options->nonce, "The certifier's answer to the commitment").required();
  second.add_option("--key", options->key, "The vendor's key file").required();
  declare_execution(second, options->run);
  declare_exceptions(second, options->run);
  second.add_flag("--resume", options->run.resume, "Go on with a run that was interrupted");

  cli::Command third = subcommand(command, *options, "countersign", "verifies BUNDLE and signs it as a laboratory");
  third.add_option("--key", options->key, "The laboratory's key file").required();

  return [options, first, second] {
    if (first.was_called()) return commit(*options);
    return second.was_called() ? run(*options) : countersign(*options);
  };
}

}  // namespace

extern const Verb certify_verb = {
    "certify", "commits to a plugin, runs the cases with seeds derived from a nonce, and signs the result", declare};

}  // namespace backplane::conform
