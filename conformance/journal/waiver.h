// SPDX-License-Identifier: Apache-2.0
// Waivers and expected failures. A result that they change still records its failure, and is counted separately.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "journal/header.h"
#include "journal/result.h"

namespace backplane::conform {

// A failure that the certifier accepts until a given day.
struct Waiver {
  std::string device;    // a glob that matches the backend's id or the device's name
  std::string from, to;  // the first and the last backend version covered; an empty one means no limit
  std::string cases;     // a glob that matches names of cases
  std::string reason, link;
  std::string expires;  // the last day on which it counts, such as "2027-06-30"
};

// A failure that the vendor of the backend declares, in --expect or in PLUGIN.conformance.json next to the plugin.
struct Expectation {
  std::string cases;  // a glob that matches names of cases
  std::string reason;
};

class Exceptions {
 public:
  // The most entries of a file, and the most entries with wildcards in all files together. A bundle's files are
  // untrusted, and each pattern costs time for each case.
  static constexpr size_t kMaxEntries = 20'000, kMaxPatterns = 1000;

  Exceptions() = default;
  // Adds the entries of a file. `whose` is the file's name for messages. Throws Usage if the file is invalid, if there
  // are more entries or patterns than allowed, or if a pattern has more than kMaxGlob bytes.
  void add_waivers(const std::string& json, const std::string& whose);
  void add_expectations(const std::string& json, const std::string& whose);

  // Returns the exceptions that hold for a backend and device on a day, such as "2026-11-20": without the waivers for
  // other devices and versions, and without those that expired before that day.
  Exceptions on(const Identity& identity, const std::string& day) const;
  // Applies waivers and expectations to a result. A failed, crashed, timed out or mistrusted case becomes waived if a
  // waiver matches its name, or else expected_fail if an expectation does. A pass becomes unexpected_pass if an
  // expectation matches. All other results stay as they are.
  Result apply(Result result) const;
  // A line for each entry whose pattern is the exception of none of the results: first the waivers, then the
  // expectations.
  std::vector<std::string> unused(const std::vector<Result>& results) const;
  // The digest of all files added; empty if none was added.
  std::string digest() const;

 private:
  void count_pattern(bool is_pattern);

  std::vector<Waiver> waivers_;
  std::vector<Expectation> expectations_;
  std::string text_;
  size_t patterns_ = 0;
};

// True if `version` is within [from, to]. Versions are compared number by number, so 1.9 < 1.10. An empty limit is no
// limit.
bool is_between(const std::string& from, const std::string& version, const std::string& to);

}  // namespace backplane::conform
