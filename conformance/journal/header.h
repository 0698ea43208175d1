// SPDX-License-Identifier: Apache-2.0
// The first line of a journal: the run that it belongs to. README.md describes the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/case.h"

namespace backplane::conform {

// The identity that the plugin reports.
struct Identity {
  std::string backend, version, vendor;
  uint32_t device_index = 0;
  std::string device, driver, arch;
  uint32_t flags = 0;
};

// The seeds of a run. With a nonce's seed, as in a certification, every case draws from that one.
struct Seeds {
  uint64_t seed = 1;
  std::optional<uint64_t> nonce;

  uint64_t of_cases() const;
};

struct Header {
  std::string harness, plugin, plugin_sha256;
  Identity identity;
  std::string selection;  // quick, full, or onnx
  std::vector<std::string> profiles;
  std::string filter;
  Shard shard;
  Seeds seeds;
  uint64_t cases = 0;   // of all shards
  std::string list;     // the SHA-256 of their names
  std::string models;   // the SHA-256 of the models that cases are cut from; empty without
  std::string waivers;  // the SHA-256 of the exceptions in force
  std::string started;

  bool claims_profile() const { return !profiles.empty(); }
};

// "2026-11-20T13:00:00Z": as text in the order of time.
std::string utc_now();
// `seconds` after now, or before.
std::string utc_in(int64_t seconds);
bool is_time(std::string_view text);

std::string to_json_line(const Header& header);
// False if the line is not a header.
bool from_json_line(std::string_view line, Header& out_header);

// The first key that shows that the headers are of different runs, in one line, or empty. Start time and the plugin's
// path may differ; shards of one run differ only in `shard`.
std::string difference(const Header& a, const Header& b, bool shards_of_one_run);

}  // namespace backplane::conform
