// SPDX-License-Identifier: Apache-2.0
#include "certify/commitment.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "journal/digest.h"
#include "journal/record.h"

namespace backplane::conform {

using Json = nlohmann::ordered_json;

std::string to_text(const Commitment& what) {
  Json files = Json::array();
  for (const LoadedFile& file : what.files) files.push_back({{"path", file.path}, {"sha256", file.sha256}});
  const Json json = {{"commitment", 2},
                     {"plugin_sha256", what.plugin},
                     {"manifest_sha256", what.manifest},
                     {"loader_sha256", what.loader},
                     {"harness_sha256", what.harness},
                     {"device", what.device},
                     {"selection", what.selection},
                     {"profiles", what.profiles},
                     {"filter", what.filter},
                     {"list", what.list},
                     {"cases", what.cases},
                     {"waivers_sha256", what.waivers},
                     {"expected_sha256", what.expected},
                     {"files", files},
                     {"made", what.made}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Commitment commitment_of(const std::string& text) {
  try {
    const Json json = parse_record(text);
    if (json.at("commitment") != 2)
      throw std::runtime_error(fmt::format("its commitment version is {}, not 2", json.at("commitment").dump()));
    std::vector<LoadedFile> files;
    if (json.at("files").size() > kMaxListedFiles)
      throw std::runtime_error(
          fmt::format("it lists {} files; at most {} are accepted", json["files"].size(), kMaxListedFiles));
    for (const Json& file : json.at("files")) files.push_back({file.at("path"), file.at("sha256")});
    if (const std::string made = json.at("made"); !is_time(made))
      throw std::runtime_error(fmt::format("'made' is '{}', not a time such as 2026-11-20T12:00:00Z", made));
    if (const std::string selection = json.at("selection"); selection != "quick" && selection != "full")
      throw std::runtime_error(fmt::format("'selection' is '{}', neither 'quick' nor 'full'", selection));
    return {.plugin = json.at("plugin_sha256"),
            .manifest = json.at("manifest_sha256"),
            .loader = json.at("loader_sha256"),
            .harness = json.at("harness_sha256"),
            .device = json.at("device"),
            .selection = json.at("selection"),
            .profiles = json.at("profiles"),
            .filter = json.at("filter"),
            .list = json.at("list"),
            .cases = json.at("cases"),
            .waivers = json.at("waivers_sha256"),
            .expected = json.at("expected_sha256"),
            .files = std::move(files),
            .made = json.at("made")};
  } catch (const Json::exception&) {
    throw std::runtime_error("it is not a commitment of `backplane-conform certify commit`");
  }
}

CaseOptions case_options_of(const Commitment& commitment) {
  return {.profiles = commitment.profiles, .full = commitment.selection == "full", .filter = commitment.filter};
}

std::string nonce_fault(const std::string& nonce) {
  constexpr size_t kDigits = 32, kMostDigits = 256,
                   kDifferent = 8;  // different digits; a random nonce has fewer with p < 10^-7
  if (nonce.size() < kDigits || nonce.size() > kMostDigits)
    return fmt::format("it has {} characters; it must have {} to {} hexadecimal digits", nonce.size(), kDigits,
                       kMostDigits);
  if (nonce.find_first_not_of("0123456789abcdef") != std::string::npos)
    return "it must be in hexadecimal, in lower case";
  if (std::set<char>(nonce.begin(), nonce.end()).size() < kDifferent)
    return "it was not drawn at random: it has too few different digits";
  return "";
}

Seeds seeds_of(const std::string& commitment_text, const std::string& nonce) {
  const std::string digest = sha256("backplane-conform seed 2\n" + sha256(commitment_text) + "\n" + nonce);
  return {1, std::stoull(digest.substr(0, 16), nullptr, 16)};
}

}  // namespace backplane::conform
