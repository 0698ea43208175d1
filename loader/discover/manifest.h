// SPDX-License-Identifier: Apache-2.0
// A backend's manifest: a small JSON file that names the library to load. docs/reference/manifest.md has every key.
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
  std::string backend_id;  // its last label, which must be the plugin's id: "cpu"
  std::string name;
  std::string vendor;
  std::string version;            // the backend's own
  std::filesystem::path library;  // absolute if the manifest's own path is
  std::vector<std::string> arch;  // of the library; empty: not stated
  uint32_t version_min = 0;       // of the ABI, BP_MAKE_VERSION
  uint32_t version_max = 0;
  uint32_t opset_min = 0;  // of ai.onnx; 0: not stated
  uint32_t opset_max = 0;
  std::vector<std::string> device_kinds;  // "cpu", "gpu", "npu", "fpga", "other"
  int32_t priority = 0;                   // within one folder; higher ones are considered first
  bool isolated = false;                  // the backend requests a process of its own
  std::string sha256;                     // of the library, 64 hexadecimal digits, or empty
  std::string conformance_level, conformance_bundle;
  std::string key, signature;  // Ed25519, hexadecimal, or empty
  std::string signed_text;     // the text that is signed: the JSON without "signature", keys sorted, no spaces

  bool disables = false;  // the file is empty: it disables manifests of the same name in later folders
};

// [a-z0-9_]{1,32}
bool legal_backend_id(std::string_view id);

// BP_REFUSED_MANIFEST if the format is broken; read_manifest also BP_REFUSED_MISSING if the file cannot be read, and
// _UNTRUSTED if others may write it. Errors name `file`, and `library` is relative to its folder.
Refusal parse_manifest(std::string_view json, const std::filesystem::path& file, const Log& log, Manifest& out);
Refusal read_manifest(const std::filesystem::path& file, const Log& log, Manifest& out,
                      CheckedFolders* checked = nullptr);

}  // namespace backplane
