// SPDX-License-Identifier: Apache-2.0
// The data that a vendor commits to before the seeds are known.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "certify/loaded.h"
#include "journal/header.h"
#include "run/case_options.h"

namespace backplane::conform {

struct Commitment {
  std::string plugin, manifest, loader, harness;  // SHA-256; `manifest` may be empty
  uint32_t device = 0;
  std::string selection;  // quick or full
  std::vector<std::string> profiles;
  std::string filter;
  std::string list;  // SHA-256 of the list of case names
  uint64_t cases = 0;
  std::string waivers, expected;  // SHA-256 of these files, or empty
  std::vector<LoadedFile> files;  // the files that the plugin loads when its device is opened
  std::string made;               // time of the commitment in UTC, such as "2026-11-20T12:00:00Z"
};

std::string to_text(const Commitment& commitment);
// Throws std::runtime_error with a one-line message if the text is not a commitment.
Commitment commitment_of(const std::string& text);

CaseOptions case_options_of(const Commitment& commitment);

// Returns why a text is not accepted as a nonce, in one line, or an empty string. A nonce has 32 to 256 lower-case
// hexadecimal digits, at least 8 of them different.
std::string nonce_fault(const std::string& nonce);

// Derives the seeds from both texts, so that no seed can be known before the nonce is.
Seeds seeds_of(const std::string& commitment_text, const std::string& nonce);

}  // namespace backplane::conform
