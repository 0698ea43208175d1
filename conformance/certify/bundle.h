// SPDX-License-Identifier: Apache-2.0
// A bundle: the folder of a certification. README.md describes its files.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "certify/commitment.h"
#include "certify/key.h"
#include "certify/loaded.h"
#include "journal/journal.h"
#include "journal/waiver.h"
#include "report/summary.h"

namespace backplane::conform {

// Thrown if a bundle is not accepted: a part is missing or malformed, differs from what was signed, or contradicts
// another part or the verifier's options; a key is not accepted; a case that is run again has another result. The
// message is "PART: reason".
struct Refused : std::runtime_error {
  Refused(const std::string& part, const std::string& what) : std::runtime_error(part + ": " + what) {}
};

inline constexpr const char* kStatement = "statement.json";
inline constexpr const char* kCommitment = "commitment.json";
inline constexpr const char* kJournal = "journal.jsonl";
inline constexpr const char* kCases = "cases.txt";
inline constexpr const char* kWaivers = "waivers.json";
inline constexpr const char* kExpected = "expected.json";
inline constexpr const char* kVendorSignature = "vendor.sig";
inline constexpr const char* kLabSignature = "lab.sig";
inline constexpr const char* kLabReport = "lab.json";           // how many cases the laboratory ran again
inline constexpr const char* kWaiverSignature = "waivers.sig";  // the certifier's signature over waivers.json

using Parts = std::map<std::string, std::string>;  // text by file name

// Reads all files of a bundle's folder. Throws Refused if a file does not belong to a bundle, is not a regular
// file or is too large, and std::runtime_error if the folder is not a bundle.
Parts read_parts(const std::filesystem::path& folder);

// The fields of statement.json that cannot be derived from the other parts.
struct Statement {
  std::string nonce, ended;
  std::string machine_json;
  std::vector<LoadedFile> files;  // the files that the plugin loaded into its processes
};
// Returns the contents of statement.json: `what` and the fields derived from other parts.
std::string statement_of(const Parts& parts, const Statement& what);

// A text from outside as part of a line: printable, in quotes, cut to 80 characters, and without runs of blanks, so
// that it cannot look like lines of its own.
std::string in_quotes(std::string_view text);

// Cases of a bundle that were run again, and the device that they ran on, which need not be that of the journal.
struct Rerun {
  size_t cases = 0;
  std::string device, driver;
};

// The result of `verify`, which runs no cases and throws Refused at the first wrong part.
struct Proof {
  Signature vendor;
  std::optional<Signature> lab, certifier;  // who countersigned, and who signed the waivers
  std::string lab_report;                   // one line on the cases that the laboratory ran again
  Statement statement;
  Commitment commitment;
  Record record;
  Plan plan;
  Exceptions exceptions;
  RunOutcome outcome;  // as if no waiver counted
};
Proof verify(const Parts& parts);

// The outcome on `day`, the day of verification. A waiver counts through its expiry day, and only if the certifier who
// signed the waivers is known (`accepts_waivers`) and the waiver's pattern is not too wide (`is_wide`). A waived
// failure whose waiver does not count is a fault.
RunOutcome outcome_on(const Proof& proof, const std::string& day, bool accepts_waivers);

}  // namespace backplane::conform
