// SPDX-License-Identifier: Apache-2.0
#include "certify/commitment.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "journal/digest.h"
#include "journal/record.h"

namespace backplane::conform {

using Json = nlohmann::ordered_json;

std::string to_text(const Commitment& what) {
  const Json json = {{"commitment", 1},
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
                     {"seed", what.seed},
                     {"waivers_sha256", what.waivers},
                     {"expected_sha256", what.expected},
                     {"made", what.made}};
  return json.dump(2) + '\n';
}

Commitment commitment_of(const std::string& text) {
  try {
    const Json json = parse_record(text);
    if (json.at("commitment") != 1) throw std::runtime_error("it is a commitment of another version");
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
            .seed = json.at("seed"),
            .waivers = json.at("waivers_sha256"),
            .expected = json.at("expected_sha256"),
            .made = json.at("made")};
  } catch (const Json::exception&) {
    throw std::runtime_error("it is no commitment of `backplane-conform certify commit`");
  }
}

Choice choice_of(const Commitment& commitment) {
  return {.profiles = commitment.profiles, .full = commitment.selection == "full", .filter = commitment.filter};
}

Seeds seeds_of(const std::string& commitment_text, const std::string& nonce) {
  const std::string digest = sha256("backplane-conform seed 1\n" + sha256(commitment_text) + "\n" + nonce);
  return {commitment_of(commitment_text).seed, std::stoull(digest.substr(0, 16), nullptr, 16)};
}

}  // namespace backplane::conform
