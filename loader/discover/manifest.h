// SPDX-License-Identifier: Apache-2.0
// Reads a backend's manifest: a small JSON file that names the library to load. docs/reference/manifest.md describes
// every key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "discover/refusal.h"
#include "discover/writers.h"
#include "host/log.h"

namespace backplane {

struct Manifest {
  std::string full_id;     // "org.backplane.cpu"
  std::string backend_id;  // the last label of full_id, which must equal the plugin's id: "cpu"
  std::string name;
  std::string vendor;
  std::string version;            // of the backend
  std::filesystem::path library;  // absolute if the path of the manifest is absolute
  std::vector<std::string> arch;  // processors that the library supports; empty: not stated
  uint32_t version_min = 0;       // of the ABI, as BP_MAKE_VERSION returns it
  uint32_t version_max = 0;
  uint32_t opset_min = 0;  // of ai.onnx; 0: not stated
  uint32_t opset_max = 0;
  std::vector<std::string> device_kinds;  // "cpu", "gpu", "npu", "fpga", "other"
  int32_t priority = 0;                   // within one folder, higher ones are considered first
  bool isolated = false;                  // the backend requests its own process
  std::string sha256;                     // of the library: 64 hexadecimal digits, or empty
  std::string conformance_level, conformance_bundle;
  std::string key, signature;  // Ed25519: 64 and 128 hexadecimal digits; empty: not signed
  // The text that the signature covers, after the prefix in signature.cpp: the JSON without "signature", with sorted
  // keys and no spaces. Empty if not signed.
  std::string signed_text;

  bool disables = false;  // the file is empty: it disables manifests of the same file name in later folders
};

// [a-z0-9_]{1,32}
bool legal_backend_id(std::string_view id);

// BP_REFUSED_MANIFEST if the manifest is malformed; read_manifest also returns BP_REFUSED_MISSING if the file cannot be
// read, and BP_REFUSED_UNTRUSTED if other users can write to it or replace it. Errors name `file`, whose folder is the
// base of a relative path in "library". `checked`: see writers.h.
Refusal parse_manifest(std::string_view json, const std::filesystem::path& file, const Log& log, Manifest& out);
Refusal read_manifest(const std::filesystem::path& file, const Log& log, Manifest& out,
                      CheckedFolders* checked = nullptr);

}  // namespace backplane
