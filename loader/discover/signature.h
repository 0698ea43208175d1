// SPDX-License-Identifier: Apache-2.0
// Checks the signatures of manifests against trusted keys.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/status.h"
#include "discover/manifest.h"
#include "discover/refusal.h"

namespace backplane {

// Returns the keys in the files *.pub of `folder`: one Ed25519 public key each, in hexadecimal, as `backplane-conform
// keygen` writes it. BP_INVALID_ARGUMENT if the folder or a key cannot be read, a key is malformed, or other users can
// write to it.
Result<std::set<std::string>> read_trusted_keys(const std::filesystem::path& folder);

// BP_REFUSED_UNTRUSTED if `manifest`, which was read from `file`, is not signed with one of `keys` or does not state
// the SHA-256 of its library.
Refusal check_signature(const Manifest& manifest, const std::string& file, const std::set<std::string>& keys);

}  // namespace backplane
