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

// Returns Ed25519 public keys in hexadecimal from the files *.pub of `folder`, each of which holds one key as
// `backplane-conform keygen` writes it. BP_INVALID_ARGUMENT if the folder or a key cannot be read or be trusted.
Result<std::set<std::string>> read_trusted_keys(const std::filesystem::path& folder);

// BP_REFUSED_UNTRUSTED if `manifest`, read from `file`, has no signature, names no sha256, or is not signed by one of
// `keys`.
Refusal check_signature(const Manifest& manifest, const std::string& file, const std::set<std::string>& keys);

}  // namespace backplane
