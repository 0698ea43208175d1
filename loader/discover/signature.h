// SPDX-License-Identifier: Apache-2.0
// Whose signature a manifest carries, and which keys are trusted.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/status.h"
#include "discover/manifest.h"
#include "discover/refusal.h"

namespace backplane {

// Ed25519 public keys, hexadecimal: from the files *.pub of `folder`, each of which holds one, as
// `backplane-conform keygen` writes it. BP_INVALID_ARGUMENT where the folder or a file cannot be read or be trusted.
Result<std::set<std::string>> read_trusted_keys(const std::filesystem::path& folder);

// BP_REFUSED_UNTRUSTED where the manifest of `file` has no signature, names no sha256, or is not signed by one of
// `keys`.
Refusal check_signature(const Manifest& manifest, const std::string& file, const std::set<std::string>& keys);

}  // namespace backplane
