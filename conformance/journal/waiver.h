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
  std::string from, to;  // the backend's versions, both included; empty is open
  std::string cases;     // a glob
  std::string reason, link;
  std::string expires;  // the last day, "2027-06-30"
};

// A failure that the backend's own vendor declares, in the conformance.json next to the plugin.
struct Expectation {
  std::string cases;  // a glob
  std::string reason;
};

class Exceptions {
 public:
  Exceptions() = default;
  // Either text may be empty. Throws Usage, which names what is wrong in `whose` file.
  void add_waivers(const std::string& json, const std::string& whose);
  void add_expectations(const std::string& json, const std::string& whose);

  // The result after waivers and expectations: a failure becomes waived or expected_fail, a pass where a failure is
  // expected becomes unexpected_pass. `day` is "2026-11-20".
  Result apply(Result result, const Identity& identity, const std::string& day) const;
  // Digest of both files, empty without any.
  std::string digest() const;

 private:
  std::vector<Waiver> waivers_;
  std::vector<Expectation> expectations_;
  std::string text_;
};

// Whether a dotted version lies between two others: numbers compare as numbers, 1.9 < 1.10.
bool is_between(const std::string& from, const std::string& version, const std::string& to);

}  // namespace backplane::conform
