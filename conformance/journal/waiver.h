// SPDX-License-Identifier: Apache-2.0
// Waivers and expected failures: such results keep their failure on record and are counted separately.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "journal/header.h"
#include "journal/result.h"

namespace backplane::conform {

// A failure that the certifier accepts until a given day.
struct Waiver {
  std::string device;    // a glob on the backend's id or the device's name
  std::string from, to;  // the first and the last backend version covered; empty: no limit
  std::string cases;     // a glob
  std::string reason, link;
  std::string expires;  // the last day, "2027-06-30"
};

// A failure that the backend's own vendor declares, in --expect or in PLUGIN.conformance.json next to the plugin.
struct Expectation {
  std::string cases;  // a glob
  std::string reason;
};

class Exceptions {
 public:
  Exceptions() = default;
  // Adds the entries of a file. Throws Usage, which names `whose` file and what is wrong in it.
  void add_waivers(const std::string& json, const std::string& whose);
  void add_expectations(const std::string& json, const std::string& whose);

  // The result after waivers and expectations: a failure becomes waived or expected_fail, a pass although a failure is
  // expected becomes unexpected_pass. `day` is today, such as "2026-11-20".
  Result apply(Result result, const Identity& identity, const std::string& day) const;
  // Digest of all files added; empty if none was.
  std::string digest() const;

 private:
  std::vector<Waiver> waivers_;
  std::vector<Expectation> expectations_;
  std::string text_;
};

// Whether `version` is within [from, to], compared number by number: 1.9 < 1.10. An empty limit is open.
bool is_between(const std::string& from, const std::string& version, const std::string& to);

}  // namespace backplane::conform
