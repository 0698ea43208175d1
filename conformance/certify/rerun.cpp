// SPDX-License-Identifier: Apache-2.0
#include "certify/rerun.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

#include "journal/digest.h"

namespace backplane::conform {
namespace {

Plan drawn(const Plan& all, size_t count) {
  if (sodium_init() < 0) throw std::runtime_error("libsodium could not be initialized");
  Plan sample = all;
  for (size_t i = 0; i < sample.cases.size(); ++i) {
    const size_t j = i + randombytes_uniform(static_cast<uint32_t>(sample.cases.size() - i));
    std::swap(sample.cases[i], sample.cases[j]);
  }
  sample.cases.resize(std::min(count, sample.cases.size()));
  return sample;
}

void check_result(const Proof& proof, const Result& seen) {
  const auto recorded = std::lower_bound(proof.record.results.begin(), proof.record.results.end(), seen,
                                         [](const Result& a, const Result& b) { return a.name < b.name; });
  const State before = recorded->was.value_or(recorded->state);
  if (before != seen.state)
    throw Refused(kJournal, fmt::format("case {} is {} in the journal and {} here", seen.name, name_of(before),
                                        name_of(seen.state)));
}

// Compares only the libraries and data that the vendor delivers, because the system's own files differ between
// machines.
void check_delivered(const Proof& proof, const LoadedFiles& loaded) {
  const std::vector<LoadedFile> stated = delivered(proof.statement.files, proof.commitment.plugin);
  const std::vector<LoadedFile> seen = delivered(loaded.hashed(), proof.commitment.plugin);
  if (seen.empty()) throw Refused(kStatement, "the plugin's process hides what it has mapped");
  for (const LoadedFile& file : seen) {
    if (file.sha256 == proof.commitment.plugin) continue;  // the plugin itself may have another name here
    const auto found = std::ranges::find(stated, file.path, &LoadedFile::path);
    if (found == stated.end())
      throw Refused(kStatement, fmt::format("the plugin loads '{}', which is not in the statement", file.path));
    if (found->sha256 != file.sha256)
      throw Refused(kStatement,
                    fmt::format("the SHA-256 of '{}', which the plugin loads, is {} in the statement and {} here",
                                file.path, found->sha256, file.sha256));
  }
}

}  // namespace

size_t rerun_sample(const Proof& proof, const Parts& parts, RunOptions run, size_t count) {
  const std::string digest = sha256_of_file(run.plugin);
  if (digest != proof.commitment.plugin)
    throw Refused(kCommitment, fmt::format("it is for the plugin with SHA-256 {}, but '{}' has {}",
                                           proof.commitment.plugin, run.plugin, digest));
  const Plan sample = drawn(proof.plan, count);
  LoadedFiles loaded;
  run.device = proof.commitment.device;
  run.seeds = seeds_of(parts.at(kCommitment), proof.statement.nonce);
  run.inspect = [&](pid_t child) { loaded.note(child); };
  Journal journal = run_plugin(run, case_options_of(proof.commitment), sample, Exceptions());
  size_t ran = 0;
  for (const Result& seen : journal.results()) {
    if (!is_of_list(seen)) continue;
    check_result(proof, seen);
    ++ran;
  }
  if (ran != sample.cases.size())
    throw Refused(kJournal, fmt::format("only {} of {} cases could be run again", ran, sample.cases.size()));
  check_delivered(proof, loaded);
  return ran;
}

}  // namespace backplane::conform
