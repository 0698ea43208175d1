// SPDX-License-Identifier: Apache-2.0
// Stores the id and the devices of a library's backend, or that it has none here, so that later processes can list them
// without opening the library.
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

// A bp_device_info_t and everything that it points to.
struct KnownDevice {
  explicit KnownDevice(const bp_device_info_t& info);

  // The result points into this object and into `out_properties`.
  bp_device_info_t info(std::vector<bp_option_t>& out_properties) const;

  bp_device_info_t plain;  // its pointers are null
  std::array<std::string, 5> texts;
  std::vector<uint32_t> peers;
  std::vector<std::array<std::string, 2>> properties;
};

struct KnownBackend {
  FileFacts facts;       // of the library
  int64_t seen_ns = 0;   // system time just before `facts` were read; nanoseconds since 1970
  std::string id;        // the id that the plugin reports
  std::string sha256;    // of the library, if its manifest states one; otherwise empty
  uint32_t version = 0;  // of the ABI, as negotiated
  std::vector<KnownDevice> devices;
  std::string no_device;  // without devices: the text of the refusal
};

// A hash of the state, apart from the library, on which a plugin's devices usually depend: its options, the environment
// variables of minimal_environment() (child.h), the process's groups, the paths in its option "path" and in variables
// named *_PATH with the files in these folders, and the machine's devices, /etc/ld.so.cache, registered OpenCL drivers
// and folders of libraries. For files and folders, the hash covers their FileFacts, not their content.
std::string situation(const Host::Options& options);

// nullopt if there is no valid entry, or if the library has changed since the entry's `seen_ns`. An entry whose library
// had changed less than two seconds before `seen_ns` is not used: a later change could have the same time stamp. An
// entry without devices is used for a day.
std::optional<KnownBackend> recall_backend(const std::filesystem::path& library, std::string_view situation,
                                           CheckedFolders& checked);
// Both ignore failures. `remember_backend` also removes entries that are a month old.
void remember_backend(const std::filesystem::path& library, std::string_view situation, const KnownBackend& known);
void forget_backend(const std::filesystem::path& library, std::string_view situation);

// Whether both entries list devices with the same texts in the same order, or both list none.
bool have_same_devices(const KnownBackend& a, const KnownBackend& b);

// The stored form of an entry. read_known returns nullopt if `bytes` are damaged.
std::string write_known(const KnownBackend& known);
std::optional<KnownBackend> read_known(std::string_view bytes);

}  // namespace backplane
