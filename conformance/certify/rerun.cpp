// SPDX-License-Identifier: Apache-2.0
#include "certify/rerun.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <cstdlib>

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

// Whether a file belongs to the machine: to its system and its drivers, or to the user's caches, in which drivers keep
// compiled kernels.
bool is_of_machine(const std::string& path) {
  const char* const home = std::getenv("HOME");
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  std::vector<std::string> folders = {"/usr/", "/lib/", "/lib32/", "/lib64/", "/opt/",
                                      "/etc/", "/var/", "/nix/",   "/gnu/"};
  if (cache != nullptr && *cache == '/') folders.push_back(std::string(cache) + '/');
  if (home != nullptr && *home == '/') folders.push_back(std::string(home) + "/.cache/");
  return std::ranges::any_of(folders, [&](const std::string& folder) { return path.starts_with(folder); });
}

// Compares the libraries and data that the vendor delivers: those below the plugin's folder by path, and those
// elsewhere by content. Leaves out the machine's own files, because these differ between machines.
void check_delivered(const Proof& proof, const LoadedFiles& loaded) {
  const std::vector<LoadedFile> stated = delivered(proof.statement.files, proof.commitment.plugin);
  const std::vector<LoadedFile> seen = delivered(loaded.hashed(), proof.commitment.plugin);
  if (seen.empty()) throw Refused(kStatement, "what the plugin's process has mapped cannot be read");
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
  const std::vector<LoadedFile>& all = proof.statement.files;
  const std::vector<LoadedFile> every = loaded.hashed();
  try {
    loaded.require_code(every);
  } catch (const std::runtime_error& error) {
    throw Refused(kStatement, error.what());
  }
  for (const LoadedFile& file : every) {
    if (file.sha256.empty()) continue;  // data that was removed, such as shared memory
    if (is_of_machine(file.path) || std::ranges::find(all, file.sha256, &LoadedFile::sha256) != all.end()) continue;
    throw Refused(kStatement, fmt::format("the plugin loads '{}', and no file in the statement has its SHA-256 '{}'",
                                          file.path, file.sha256));
  }
}

// Compares what the plugin reports about itself. Device and driver differ between machines.
void check_identity(const Identity& recorded, const Identity& seen) {
  const auto check = [](const char* what, const std::string& in_journal, const std::string& here) {
    if (in_journal != here)
      throw Refused(kJournal,
                    fmt::format("the plugin's {} is '{}' in the journal and '{}' here", what, in_journal, here));
  };
  check("id", recorded.backend, seen.backend);
  check("version", recorded.version, seen.version);
  check("vendor", recorded.vendor, seen.vendor);
  check("device flags", std::to_string(recorded.flags), std::to_string(seen.flags));
}

}  // namespace

void check_again(const Proof& proof, const Result& seen) {
  const std::vector<Result>& recorded = proof.record.results;
  if (!is_of_list(seen)) {
    // The number of such processes may differ, because the sample divides the cases among processes in another way.
    if (std::ranges::all_of(recorded, is_of_list))
      throw Refused(kJournal, fmt::format("no process ended abnormally in the journal, but one did here: {} {}: {}",
                                          seen.name, name_of(seen.state), seen.reason));
    return;
  }
  const auto found = std::ranges::lower_bound(recorded, seen.name, {}, &Result::name);
  if (found == recorded.end() || found->name != seen.name)
    throw Refused(kJournal, fmt::format("case {} is not in the journal", seen.name));
  const State before = found->was.value_or(found->state);
  if (before != seen.state)
    throw Refused(kJournal, fmt::format("case {} is {} in the journal and {} here", seen.name, name_of(before),
                                        name_of(seen.state)));
  if (found->close && !seen.close)
    throw Refused(kJournal, fmt::format("case {} is within ONNX's bounds for whole models in the journal, but not here",
                                        seen.name));
}

Rerun rerun_sample(const Proof& proof, const Parts& parts, RunOptions run, size_t count) {
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
  const Identity& who = journal.header().identity;
  check_identity(proof.record.header.identity, who);
  size_t ran = 0;
  for (const Result& seen : journal.results()) {
    check_again(proof, seen);
    ran += is_of_list(seen);
  }
  if (ran != sample.cases.size())
    throw Refused(kJournal, fmt::format("only {} of {} cases could be run again", ran, sample.cases.size()));
  check_delivered(proof, loaded);
  return {ran, who.device, who.driver};
}

}  // namespace backplane::conform
