// SPDX-License-Identifier: Apache-2.0
#include "minimize/sound.h"

#include "backplane/client.hpp"
#include "minimize/trial.h"

namespace backplane::conform {
namespace {

Result check(Network network) {
  if (!recompute(network)) return {.state = State::kFail};
  EnvironmentOptions options;
  options.only_given = true;  // no backend: only the model is checked
  options.threads = 1;
  const Environment env(options);
  const client::Model model = env.parse(serialize(network.spec));
  const view::Graph graph = model.graph();
  for (size_t i = 0; i < network.spec.outputs.size(); ++i) {
    const ValueSpec& expected = network.spec.values[network.spec.outputs[i]];
    const view::Value seen = graph.output(static_cast<uint32_t>(i));
    if (seen.dtype() != expected.dtype || !seen.has_static_shape() || seen.extents() != expected.extents)
      return {.state = State::kFail};
  }
  return {.state = State::kPass};
}

}  // namespace

bool is_sound(const Network& network) {
  return in_fork([&] { return check(network); }, std::chrono::seconds(10)).state == State::kPass;
}

}  // namespace backplane::conform
