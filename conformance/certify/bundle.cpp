// SPDX-License-Identifier: Apache-2.0
#include "certify/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/printable.h"
#include "journal/digest.h"
#include "journal/record.h"
#include "journal/waiver.h"

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json to_json(const RunOutcome& outcome) {
  Json levels = Json::object();
  for (const Level& level : outcome.levels) levels[std::string(level.name)] = level.reached ? "reached" : level.reason;
  return {{"conditions", outcome.conditions},
          {"levels", levels},
          {"fault", outcome.fault},
          {"summary", Json::parse(outcome.summary.to_json(outcome.reached(), outcome.conditions))}};
}

std::string part(const Parts& parts, const char* name) {
  const auto found = parts.find(name);
  if (found == parts.end()) throw Refused(name, "it is missing");
  return found->second;
}
std::string part_or_nothing(const Parts& parts, const char* name) {
  return parts.count(name) != 0 ? parts.at(name) : "";
}

// The files that the statement does not list: all signatures, and the lab's report, which the lab signs.
bool is_signature(const std::string& name) {
  return name == kVendorSignature || name == kLabSignature || name == kLabReport || name == kWaiverSignature;
}

RunOutcome outcome_of(const Record& record) {
  double seconds = 0;
  for (const Result& result : record.results) seconds += result.seconds;
  return outcome(record.header, record.results, "", seconds);
}

Record record_of(const Parts& parts) {
  Record record = parse_journal(part(parts, kJournal), kJournal);
  std::stable_sort(record.results.begin(), record.results.end(),
                   [](const Result& a, const Result& b) { return a.name < b.name; });
  return record;
}

// The largest accepted size of each part in bytes, far above that of a run of all cases.
struct PartSize {
  std::string_view name;
  uint64_t most;
};
constexpr PartSize kPartSizes[] = {
    {kStatement, 4 << 20},  {kCommitment, 4 << 20},       {kJournal, 256 << 20},        {kCases, 16 << 20},
    {kWaivers, 1 << 20},    {kExpected, 1 << 20},         {kVendorSignature, 64 << 10}, {kLabSignature, 64 << 10},
    {kLabReport, 64 << 10}, {kWaiverSignature, 64 << 10},
};

constexpr std::string_view kEndOfProcess = "(end of process)";  // the only name that a result outside the list may have
constexpr size_t kMaxIdentityText = 4000;  // bytes, as many as the harness takes of a text from a plugin

// --- The steps of `verify` ---

// Calls `step`. Any exception other than Refused becomes a refusal of the part `name`.
template <typename Step>
auto of_part(const char* name, const Step& step) {
  try {
    return step();
  } catch (const Refused&) {
    throw;
  } catch (const std::exception& error) {
    throw Refused(name, error.what());
  }
}

Signature check_signature(const Parts& parts, const char* name, const char* role,
                          const std::vector<const char*>& signed_parts) {
  const Signature signature = of_part(name, [&] { return read_signature(part(parts, name)); });
  if (signature.role != role)
    throw Refused(name, fmt::format("it is signed as '{}', not as '{}'", signature.role, role));
  for (const char* signed_part : signed_parts) {
    const auto expected = signature.over.find(signed_part);
    if (expected == signature.over.end()) throw Refused(name, fmt::format("it does not sign {}", signed_part));
    const std::string seen = sha256(part(parts, signed_part));
    if (seen != expected->second)
      throw Refused(signed_part, fmt::format("its SHA-256 is {}, but {} says {}", seen, name, expected->second));
  }
  for (const auto& [extra, digest] : signature.over) {
    if (std::ranges::find(signed_parts, std::string_view(extra)) == signed_parts.end())
      throw Refused(name, fmt::format("it signs '{}', which such a signature must not", extra));
  }
  return signature;
}

Statement check_parts(const Parts& parts) {
  return of_part(kStatement, [&]() -> Statement {
    const Json json = parse_record(part(parts, kStatement));
    if (json.at("bundle") != 2)
      throw Refused(kStatement, fmt::format("its bundle version is {}, not 2", json.at("bundle").dump()));
    const Json& listed = json.at("parts");
    for (const auto& [name, digest] : listed.items()) {
      const std::string seen = sha256(part(parts, name.c_str()));
      if (seen != digest.get<std::string>())
        throw Refused(name,
                      fmt::format("its SHA-256 is {}, but {} says {}", seen, kStatement, digest.get<std::string>()));
    }
    for (const auto& [name, text] : parts) {
      if (name != kStatement && !is_signature(name) && !listed.contains(name))
        throw Refused(name, fmt::format("{} does not name it", kStatement));
    }
    std::vector<LoadedFile> files;
    if (json.at("files").size() > kMaxListedFiles)
      throw Refused(kStatement, fmt::format("it lists {} files; at most {} are accepted", json.at("files").size(),
                                            kMaxListedFiles));
    for (const Json& file : json.at("files")) files.push_back({file.at("path"), file.at("sha256")});
    return {json.at("nonce"), json.at("ended"), json.at("machine").dump(), std::move(files)};
  });
}

Plan check_cases(const Parts& parts, const Commitment& commitment) {
  if (sha256(part(parts, kCases)) != commitment.list)
    throw Refused(kCases, fmt::format("its SHA-256 is not the list {} in {}", commitment.list, kCommitment));
  Plan own = of_part(kCommitment, [&] { return plan(case_options_of(commitment)); });
  if (own.list != commitment.list) {
    throw Refused(kCases,
                  fmt::format("the list {} is not the list {} of this harness: verify with the release that made it",
                              commitment.list, own.list));
  }
  return own;
}

void check_header(const Header& header, const Commitment& commitment, const Seeds& seeds,
                  const Exceptions& exceptions) {
  const auto check = [](bool is_right, const char* what) {
    if (!is_right) throw Refused(kJournal, fmt::format("its {} differs from {}", what, kCommitment));
  };
  check(header.plugin_sha256 == commitment.plugin, "plugin_sha256");
  check(header.harness == commitment.harness, "harness");
  check(header.identity.device_index == commitment.device, "device");
  check(header.selection == commitment.selection, "selection");
  check(header.profiles == commitment.profiles, "profiles");
  check(header.filter == commitment.filter, "filter");
  check(header.list == commitment.list && header.cases == commitment.cases, "list");
  check(header.shard.count == 1, "shard");
  const Identity& who = header.identity;
  for (const std::string* text : {&who.backend, &who.version, &who.vendor, &who.device, &who.driver, &who.arch})
    if (text->size() > kMaxIdentityText)
      throw Refused(kJournal,
                    fmt::format("a text of its backend or device is too long: it has {} bytes, at most {} are allowed",
                                text->size(), kMaxIdentityText));
  if (header.seeds.seed != seeds.seed || header.seeds.nonce != seeds.nonce)
    throw Refused(kJournal, fmt::format("its seeds do not follow from {} and the nonce", kCommitment));
  if (header.waivers != exceptions.digest())
    throw Refused(kJournal, fmt::format("its waivers are not those in {} and {}", kWaivers, kExpected));
}

void check_results(const Record& record, const Plan& plan, const Seeds& seeds, const Exceptions& all_exceptions) {
  const Exceptions exceptions = all_exceptions.on(record.header.identity, record.header.started.substr(0, 10));
  std::map<std::string_view, const Case*> left;
  for (const Case& one : plan.cases) left[one.name] = &one;
  size_t ends = 0;
  for (const Result& result : record.results) {
    const auto refuse = [&](const char* what) {
      throw Refused(kJournal, fmt::format("case {} {}", result.name, what));
    };
    // The name is checked first, because matching it with the patterns of waivers takes time. It is in the list of
    // cases, or it is kEndOfProcess, which occurs at most as often as there are cases.
    const auto found = left.find(result.name);
    if (is_of_list(result) ? found == left.end() : result.name != kEndOfProcess) {
      const bool is_listed = std::ranges::find(plan.cases, result.name, &Case::name) != plan.cases.end();
      refuse(is_listed ? "has two results" : "is not in the list of cases");
    }
    if (!is_of_list(result) && ++ends > plan.cases.size()) refuse("occurs more often than there are cases");
    Result before = result;
    before.state = result.was.value_or(result.state);
    before.was.reset();
    before.exception.clear();
    constexpr State kEnds[] = {State::kFail, State::kCrash, State::kTimeout};
    if (!is_of_list(result) && std::ranges::find(kEnds, before.state) == std::end(kEnds))
      refuse("is no end of a process: its state is neither fail nor crash nor timeout");
    const Result after = exceptions.apply(before);
    if (after.state != result.state || after.exception != result.exception)
      refuse("has a state that no waiver or expectation sets");
    if (!is_of_list(result)) continue;
    if (result.profile != found->second->profile) refuse("is recorded with another profile");
    if (result.seed != seeds.of_cases()) refuse("does not have the seed of the run's cases");
    left.erase(found);
  }
  if (!left.empty())
    throw Refused(kJournal, fmt::format("{} missing, the first is {}",
                                        left.size() == 1 ? "1 case is" : fmt::format("{} cases are", left.size()),
                                        left.begin()->first));
}

// The times must be in the order committed, started, ended, and not in the future.
void check_times(const Commitment& commitment, const Header& header, const Statement& statement) {
  if (!is_time(header.started))
    throw Refused(kJournal, fmt::format("'started' is '{}', not a time such as 2026-11-20T12:00:00Z", header.started));
  if (!is_time(statement.ended))
    throw Refused(kStatement, fmt::format("'ended' is '{}', not a time such as 2026-11-20T12:00:00Z", statement.ended));
  if (commitment.made >= header.started)
    throw Refused(kJournal,
                  fmt::format("it was started at {}, not after the commitment of {}", header.started, commitment.made));
  if (header.started >= statement.ended)
    throw Refused(kStatement,
                  fmt::format("it ended at {}, not after its start at {}", statement.ended, header.started));
  constexpr int64_t kDay = 24 * 3600;  // tolerance for differences between clocks
  if (statement.ended > utc_in(kDay))
    throw Refused(kStatement, fmt::format("it ended in the future, at {}", statement.ended));
}

// The plugin and the files named in the commitment must be among the loaded files, unchanged.
void check_files(const Commitment& commitment, const Statement& statement) {
  if (std::ranges::find(statement.files, commitment.plugin, &LoadedFile::sha256) == statement.files.end())
    throw Refused(kStatement, "the plugin is not among the loaded files: its process hid what it had mapped");
  for (const LoadedFile& file : commitment.files) {
    const auto seen = std::ranges::find(statement.files, file.path, &LoadedFile::path);
    if (seen == statement.files.end())
      throw Refused(kStatement, fmt::format("it does not list the file '{}', which {} names", file.path, kCommitment));
    if (seen->sha256 != file.sha256)
      throw Refused(kStatement, fmt::format("the SHA-256 of the file '{}' is {}, but {} says {}", file.path,
                                            seen->sha256, kCommitment, file.sha256));
  }
}

void check_statement(const Parts& parts, const Statement& statement) {
  const std::string derived = statement_of(parts, statement), stated = part(parts, kStatement);
  if (derived == stated) return;
  const Json a = parse_record(stated), b = Json::parse(derived);
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key) || a[key] != value)
      throw Refused(kStatement,
                    fmt::format("'{}' does not match the other parts, from which {} follows", key, value.dump()));
  }
  throw Refused(kStatement,
                "its fields are right, but its text is not the one that this harness writes for them: it was edited");
}

}  // namespace

Parts read_parts(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw std::runtime_error(fmt::format("'{}' is not a folder: give the one that certify wrote", folder.string()));
  if (!fs::exists(folder / kCommitment) && !fs::exists(folder / kStatement))
    throw std::runtime_error(fmt::format("'{}' is not a bundle: it has neither {} nor {}; `certify commit` begins one",
                                         folder.string(), kCommitment, kStatement));
  Parts parts;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const auto known = std::ranges::find(kPartSizes, name, &PartSize::name);
    if (known == std::end(kPartSizes)) throw Refused(name, "it does not belong to a bundle: remove it from the folder");
    if (!entry.is_regular_file() || entry.is_symlink())
      throw Refused(name, "it is not a regular file: a bundle contains no links, folders or devices");
    parts[name] = of_part(name.c_str(), [&] { return read_untrusted_file(entry.path(), known->most); });
  }
  return parts;
}

std::string statement_of(const Parts& parts, const Statement& what) {
  const std::string commitment_text = part(parts, kCommitment);
  const Commitment commitment = commitment_of(commitment_text);
  const Record record = record_of(parts);
  const Header& header = record.header;
  const RunOutcome outcome = outcome_of(record);
  std::string levels;
  for (const std::string& level : outcome.reached()) levels += (levels.empty() ? "" : ", ") + level;
  Json digests = Json::object();
  for (const auto& [name, text] : parts) {
    if (name != kStatement && !is_signature(name)) digests[name] = sha256(text);
  }
  Json files = Json::array();
  for (const LoadedFile& file : what.files) files.push_back({{"path", file.path}, {"sha256", file.sha256}});
  const Json json = {
      {"bundle", 2},
      {"judged", scope_of(header, outcome)},
      {"statement",
       fmt::format(
           "Backend {} {} of {} on device {} ran the {} list {} of {} cases ({}) after the nonce was known, and "
           "reached {}. What it ran, and with which seeds, is in the parts; all else here follows from them.",
           header.identity.backend, header.identity.version, header.identity.vendor, header.identity.device,
           header.selection, header.list, header.cases,
           header.profiles.empty() ? "no profile claimed" : fmt::format("{}", fmt::join(header.profiles, ", ")),
           levels.empty() ? "no level" : levels + " without any waiver")},
      {"nonce", what.nonce},
      {"nonce_seed", header.seeds.nonce.value_or(0)},
      {"backend",
       {{"id", header.identity.backend}, {"version", header.identity.version}, {"vendor", header.identity.vendor}}},
      {"device",
       {{"name", header.identity.device}, {"driver", header.identity.driver}, {"arch", header.identity.arch}}},
      {"machine", parse_record(what.machine_json)},
      {"plugin_sha256", commitment.plugin},
      {"manifest_sha256", commitment.manifest},
      {"loader_sha256", commitment.loader},
      {"harness_sha256", commitment.harness},
      {"list", header.list},
      {"verdict", to_json(outcome)},
      {"files", files},
      {"committed", commitment.made},
      {"started", header.started},
      {"ended", what.ended},
      {"parts", digests}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kMostCharacters = 80;
  std::string one = "'";
  for (const char c : cli::printable(text, kMostCharacters)) {
    if (c != ' ' || one.back() != ' ') one += c;
  }
  return one + '\'';
}

Proof verify(const Parts& parts) {
  Proof proof;
  proof.vendor = check_signature(parts, kVendorSignature, "vendor", {kStatement});
  if (parts.count(kLabSignature) != 0) {
    proof.lab = check_signature(parts, kLabSignature, "lab", {kStatement, kVendorSignature, kLabReport});
    if (proof.lab->public_hex == proof.vendor.public_hex)
      throw Refused(kLabSignature, "it was made with the vendor's own key; a countersignature needs another key");
    proof.lab_report = of_part(kLabReport, [&] {
      const Json json = parse_record(part(parts, kLabReport));
      return fmt::format(
          "{} of {} cases were run again on {} (ended {}){}", json.at("again").get<uint64_t>(),
          json.at("cases").get<uint64_t>(), in_quotes(json.at("device").get<std::string>()),
          in_quotes(json.at("ended").get<std::string>()),
          json.at("as_other_user").get<bool>() ? "" : ", by a plugin that could read the laboratory's key");
    });
  } else if (parts.count(kLabReport) != 0) {
    throw Refused(kLabSignature, fmt::format("it is missing, although {} is present", kLabReport));
  }
  if (parts.count(kWaiverSignature) != 0) {
    proof.certifier = check_signature(parts, kWaiverSignature, "certifier", {kWaivers});
    if (proof.certifier->public_hex == proof.vendor.public_hex)
      throw Refused(kWaiverSignature, "it was made with the vendor's own key: vendors cannot waive failures");
  }
  proof.statement = check_parts(parts);
  const std::string commitment_text = part(parts, kCommitment);
  proof.commitment = of_part(kCommitment, [&] { return commitment_of(commitment_text); });
  proof.plan = check_cases(parts, proof.commitment);
  if (const std::string fault = nonce_fault(proof.statement.nonce); !fault.empty())
    throw Refused(kStatement, "its nonce is invalid: " + fault);
  const Seeds seeds = seeds_of(commitment_text, proof.statement.nonce);
  Exceptions exceptions;
  const std::string waivers = part_or_nothing(parts, kWaivers), expected = part_or_nothing(parts, kExpected);
  if ((waivers.empty() ? "" : sha256(waivers)) != proof.commitment.waivers)
    throw Refused(kWaivers, fmt::format("its SHA-256 is not the one in {}: restore the committed file", kCommitment));
  if ((expected.empty() ? "" : sha256(expected)) != proof.commitment.expected)
    throw Refused(kExpected, fmt::format("its SHA-256 is not the one in {}: restore the committed file", kCommitment));
  of_part(kWaivers, [&] {
    if (!waivers.empty()) exceptions.add_waivers(waivers, kWaivers);
  });
  of_part(kExpected, [&] {
    if (!expected.empty()) exceptions.add_expectations(expected, kExpected);
  });
  proof.record = of_part(kJournal, [&] { return record_of(parts); });
  check_header(proof.record.header, proof.commitment, seeds, exceptions);
  check_times(proof.commitment, proof.record.header, proof.statement);
  check_files(proof.commitment, proof.statement);
  check_results(proof.record, proof.plan, seeds, exceptions);
  proof.outcome = outcome_of(proof.record);
  check_statement(parts, proof.statement);
  proof.exceptions = std::move(exceptions);
  return proof;
}

RunOutcome outcome_on(const Proof& proof, const std::string& day, bool accepts_waivers) {
  Record record = proof.record;
  const Exceptions exceptions = proof.exceptions.on(record.header.identity, day);
  size_t uncovered = 0;
  for (Result& result : record.results) {
    if (!result.was) continue;
    Result before = result;
    before.state = *result.was;
    before.was.reset();
    before.exception.clear();
    Result after = exceptions.apply(before);
    if (after.state != result.state) result = std::move(after);  // its waiver has expired since the run
    uncovered += result.state == State::kWaived && !is_excused(result, accepts_waivers);
  }
  double seconds = 0;
  for (const Result& result : record.results) seconds += result.seconds;
  RunOutcome outcome = conform::outcome(record.header, record.results, "", seconds, accepts_waivers);
  if (outcome.fault.empty() && uncovered != 0)
    outcome.fault = fmt::format(
        "{} {} waived, and the waivers do not count: {}", uncovered, uncovered == 1 ? "failure is" : "failures are",
        accepts_waivers ? "the pattern is too wide" : "no certifier whose key is trusted signed them");
  constexpr size_t kMostNamed = 100;
  std::vector<std::string> unused = proof.exceptions.unused(record.results);
  if (unused.size() > kMostNamed) {
    const std::string more =
        fmt::format("{} more waivers or expected failures are for no result", unused.size() - kMostNamed);
    unused.resize(kMostNamed);
    unused.push_back(more);
  }
  outcome.conditions.insert(outcome.conditions.end(), unused.begin(), unused.end());
  return outcome;
}

}  // namespace backplane::conform
