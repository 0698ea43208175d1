// SPDX-License-Identifier: Apache-2.0
// The folder that carries a certification. README.md describes its files.
#pragma once

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "certify/commitment.h"
#include "certify/key.h"
#include "journal/journal.h"
#include "report/summary.h"

namespace backplane::conform {

// A part of a bundle that is not as it was signed, or does not follow from the others: "PART: what".
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

using Parts = std::map<std::string, std::string>;  // text by name

// All files of the folder. Throws Refused for what is no file or not of a bundle, std::runtime_error.
Parts read_parts(const std::filesystem::path& folder);

// What statement.json says; everything in it follows from the other parts, but for the machine.
struct Statement {
  std::string nonce, ended;
  std::string machine_json;
};
// Derived from the other parts.
std::string statement_of(const Parts& parts, const Statement& what);

// Throws Refused at the first part that is not right. Runs nothing.
struct Proof {
  Signature vendor;
  std::string lab;  // its owner and key; empty without
  Statement statement;
  Commitment commitment;
  Record record;
  Plan plan;
  Verdict verdict;
};
Proof verify(const Parts& parts);

}  // namespace backplane::conform
