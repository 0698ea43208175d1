// SPDX-License-Identifier: Apache-2.0
// A verified bundle as text and as an HTML page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "certify/bundle.h"

namespace backplane::conform {

struct Signer {
  std::string name, key;
  std::string fault;  // why the signature does not count; empty if it counts
};

// The findings of the verifier.
struct Certificate {
  Proof proof;
  RunOutcome outcome = {};  // on the day of verification
  Signer vendor = {};
  std::optional<Signer> lab = {}, certifier = {};
  bool is_nonce_compared = false, is_commitment_compared = false;  // with those that the verifier passed as options
  std::optional<Rerun> again = {};                                 // what the verifier ran again
};

// The certificate as lines, beginning with what was certified. Text from the bundle may contain unprintable characters.
std::vector<std::string> lines_of(const Certificate& certificate);

// The certificate as one JSON object in ASCII, for scripts.
std::string json_of(const Certificate& certificate);

// The certificate as a self-contained HTML page that loads nothing and runs no script.
std::string html_of(const Certificate& certificate);

}  // namespace backplane::conform
