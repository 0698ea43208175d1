// SPDX-License-Identifier: Apache-2.0
#include "sandbox/identity.h"

#include <nlohmann/json.hpp>

namespace backplane::conform {
namespace {

using Json = nlohmann::json;

std::string text(bp_text_t text) {
  return text.data == nullptr ? "" : std::string(text.data, text.size);
}

}  // namespace

Result tell_identity(Bench& bench) {
  const bp_plugin_t& plugin = bench.device().plugin();
  const bp_device_info_t& info = bench.device().info();
  const Json json = {text(plugin.id), text(plugin.release), text(plugin.vendor), bench.device_index(),
                     text(info.name), text(info.driver),    text(info.arch),     info.flags};
  return {.state = State::kPass, .reason = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

Identity identify(const ChildSettings& settings) {
  Result answer;
  try {
    run_in_children(settings, {{.name = kIdentityCase}}, [&](Result result) {
      if (result.name == kIdentityCase) answer = std::move(result);
    });
  } catch (const Fatal& error) {
    throw Unusable(error.what());
  }
  if (answer.state == State::kCrash) throw Unusable("opening the device ends in " + answer.reason);
  if (answer.state != State::kPass) throw Unusable(answer.reason);
  const Json json = Json::parse(answer.reason);
  return {json[0], json[1], json[2], json[3], json[4], json[5], json[6], json[7]};
}

}  // namespace backplane::conform
