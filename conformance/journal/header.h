// SPDX-License-Identifier: Apache-2.0
// The first line of a journal, which describes the run. README.md describes the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/case_name.h"

namespace backplane::conform {

// The plugin's and the device's names and properties, as the plugin reports them.
struct Identity {
  std::string backend, version, vendor;
  uint32_t device_index = 0;
  std::string device, driver, arch;
  uint32_t flags = 0;
};

// The seeds of a run. In a certification, `nonce` is the seed derived from the nonce, and replaces `seed` for every
// case.
struct Seeds {
  uint64_t seed = 1;
  std::optional<uint64_t> nonce;

  uint64_t of_cases() const;
};

struct Header {
  std::string harness, plugin, plugin_sha256;
  Identity identity;
  std::string selection;  // quick, full, onnx or vendor
  std::vector<std::string> profiles;
  std::string filter;
  Shard shard;
  Seeds seeds;
  uint64_t cases = 0;   // number of cases in all shards
  std::string list;     // SHA-256 of the list of case names
  std::string models;   // SHA-256 of the models that cases are cut from; empty if there are none
  std::string waivers;  // SHA-256 of waivers and expected failures; empty if there are none
  std::string started;

  bool claims_profile() const { return !profiles.empty(); }
};

// For example "2026-11-20T13:00:00Z". Sorting such strings sorts the times.
std::string utc_now();
// The time `seconds` from now, or in the past if negative.
std::string utc_in(int64_t seconds);
bool is_time(std::string_view text);
// True for a day that exists, such as "2026-11-20". Sorting such strings sorts the days.
bool is_day(std::string_view text);

std::string to_json_line(const Header& header);
// Returns false if the line is not a header.
bool from_json_line(std::string_view line, Header& out_header);

// Describes the first difference that shows that the headers belong to different runs. Empty if they belong to the same
// run. Start time and plugin path may differ. With `shards_of_one_run`, the shard's index may differ, too. The text
// calls `a` "here" and `b` "there".
std::string difference(const Header& a, const Header& b, bool shards_of_one_run);

}  // namespace backplane::conform
