// SPDX-License-Identifier: Apache-2.0
// `backplane-conform verify-bundle`: what a bundle proves, offline; with the plugin at hand, a sample of it once more.
#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

#include "certify/bundle.h"
#include "commands/verb.h"
#include "journal/digest.h"
#include "run/plugin_run.h"

namespace backplane::conform {
namespace {

struct Options {
  RunOptions run;
  std::string bundle, vendor_key, lab_key;
  size_t sample = 200;
};

// Who signed must be who is trusted.
void check_keys(const Options& options, const Parts& parts, const Proof& proof) {
  const auto check = [&](const char* name, const std::string& trusted_file, const std::string& seen) {
    const std::string trusted = read_public_key(trusted_file);
    if (seen != trusted) throw Refused(name, fmt::format("its key is {}, not {} of '{}'", seen, trusted, trusted_file));
  };
  if (!options.vendor_key.empty()) check(kVendorSignature, options.vendor_key, proof.vendor.public_hex);
  if (options.lab_key.empty()) return;
  if (parts.count(kLabSignature) == 0) throw Refused(kLabSignature, "it is missing");
  check(kLabSignature, options.lab_key, read_signature(parts.at(kLabSignature)).public_hex);
}

// Cases drawn anew each time, with the bundle's own seeds: they must end as the journal says.
size_t run_sample(const Options& options, const Proof& proof, const Parts& parts) {
  const std::string digest = sha256_of_file(options.run.plugin);
  if (digest != proof.commitment.plugin) {
    throw Refused(kCommitment, fmt::format("it is of the plugin {}; '{}' is {}", proof.commitment.plugin,
                                           options.run.plugin, digest));
  }
  if (sodium_init() < 0) throw std::runtime_error("libsodium does not start");
  Plan sample = proof.plan;
  for (size_t i = 0; i < sample.cases.size(); ++i) {
    const size_t j = i + randombytes_uniform(static_cast<uint32_t>(sample.cases.size() - i));
    std::swap(sample.cases[i], sample.cases[j]);
  }
  sample.cases.resize(std::min(options.sample, sample.cases.size()));

  RunOptions run = options.run;
  run.device = proof.commitment.device;
  run.seeds = seeds_of(parts.at(kCommitment), proof.statement.nonce);
  Journal journal = run_plugin(run, choice_of(proof.commitment), sample, Exceptions());
  for (const Result& seen : journal.results()) {
    if (!is_of_list(seen)) continue;
    const auto recorded = std::lower_bound(proof.record.results.begin(), proof.record.results.end(), seen,
                                           [](const Result& a, const Result& b) { return a.name < b.name; });
    const State before = recorded->was.value_or(recorded->state);
    if (before != seen.state) {
      throw Refused(kJournal, fmt::format("case {} is {} there and {} when it is run again", seen.name, name_of(before),
                                          name_of(seen.state)));
    }
  }
  return sample.cases.size();
}

int verify_bundle(const Options& options) {
  const Parts parts = read_parts(options.bundle);
  const Proof proof = verify(parts);
  check_keys(options, parts, proof);
  const Header& header = proof.record.header;
  fmt::print("{} {} on {}, driver {}\n", header.identity.backend, header.identity.version, header.identity.device,
             header.identity.driver.empty() ? "unknown" : header.identity.driver);
  fmt::print("profiles {}; {} list {} of {} cases\n",
             header.profiles.empty() ? "none" : fmt::format("{}", fmt::join(header.profiles, ", ")), header.selection,
             header.list, header.cases);
  fmt::print("{}\n", proof.verdict.summary.to_text());
  for (const Level& level : proof.verdict.levels)
    fmt::print("{} {}\n", level.name, level.reached ? "reached" : "not reached: " + level.reason);
  fmt::print(
      "signed by {} ({}){}\n", proof.vendor.owner, proof.vendor.public_hex,
      options.vendor_key.empty() ? "; this key is not verified: pass the one that you trust with --vendor-key" : "");
  if (!proof.lab.empty()) fmt::print("countersigned by {}\n", proof.lab);
  if (!options.run.plugin.empty()) {
    const size_t count = run_sample(options, proof, parts);
    fmt::print("{} cases drawn at random were run again and end as the journal says\n", count);
  }
  if (!proof.verdict.fault.empty()) fmt::print(stderr, "backplane-conform: {}\n", proof.verdict.fault);
  return proof.verdict.fault.empty() ? 0 : 1;
}

std::function<int()> declare(cli::Command command) {
  const auto options = std::make_shared<Options>();
  command.add_option("BUNDLE", options->bundle, "The bundle's folder").required();
  command.add_option("--vendor-key", options->vendor_key, "The public key that the vendor is known by");
  command.add_option("--lab-key", options->lab_key, "The public key of a laboratory that must have countersigned");
  command.add_option("--plugin", options->run.plugin, "The plugin: a sample of the cases is run again");
  command.add_option("--sample", options->sample, "How many").range(1, 1 << 24);
  declare_execution(command, options->run);
  return [options] { return verify_bundle(*options); };
}

}  // namespace

extern const Verb verify_bundle_verb = {"verify-bundle", "verifies a certification's bundle and prints what it proves",
                                        declare};

}  // namespace backplane::conform
