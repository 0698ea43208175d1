// SPDX-License-Identifier: Apache-2.0
// Stores what was found in a library, so that later processes can list its devices without opening it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/plugin.h"
#include "discover/file.h"
#include "discover/writers.h"
#include "host/host.h"

namespace backplane {

// A bp_device_info_t, and what it points at.
struct KnownDevice {
  explicit KnownDevice(const bp_device_info_t& info);

  // The result points into this object and `out_properties`.
  bp_device_info_t info(std::vector<bp_option_t>& out_properties) const;

  bp_device_info_t plain;  // without pointers
  std::array<std::string, 5> texts;
  std::vector<uint32_t> peers;
  std::vector<std::array<std::string, 2>> properties;
};

struct KnownBackend {
  FileFacts facts;       // of the library
  int64_t seen_ns = 0;   // when `facts` were read, on the system's clock
  std::string id;        // the id that the plugin reports
  std::string sha256;    // of the library, if its manifest states one
  uint32_t version = 0;  // of the ABI
  std::vector<KnownDevice> devices;
};

// Hash of what a plugin's devices may depend on in addition to its file: its options, the environment variables that it
// may read, the folders that its option "path" and variables named *_PATH list, and which devices and system libraries
// exist.
std::string situation(const Host::Options& options);

// nullopt if there is no valid entry, or the library is not as stored, or had changed just before it was stored.
std::optional<KnownBackend> recall_backend(const std::filesystem::path& library, std::string_view situation,
                                           CheckedFolders& checked);
void remember_backend(const std::filesystem::path& library, std::string_view situation, const KnownBackend& known);
void forget_backend(const std::filesystem::path& library, std::string_view situation);

// The bytes of an entry.
std::string write_known(const KnownBackend& known);
std::optional<KnownBackend> read_known(std::string_view bytes);

}  // namespace backplane
