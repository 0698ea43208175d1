// SPDX-License-Identifier: Apache-2.0
// Graphs cut from models, judged like the random graphs of graph.cpp.
#include <fmt/format.h>

#include "cases/model_cut.h"
#include "checks/graph.h"

namespace backplane::conform {
namespace {

// Cases of one model follow each other, so each thread keeps only the model that it read last.
const Model& model_of(const ModelFile& file) {
  thread_local std::string name;
  thread_local Model model;
  if (name != file.path.string()) {
    model = read_model(file.path);
    name = file.path.string();
  }
  return model;
}

Result judge_cut(RemoteDevice& device, const ModelFile& file, const std::string& name) {
  Random random(device.seed(), name);
  std::optional<Network> cut;
  try {
    cut = cut_from(model_of(file), random, device.newest_opset());
  } catch (const std::runtime_error& error) {
    return {.state = State::kInfraError, .reason = error.what()};
  }
  if (!cut) return not_supported("with this seed, no graph with useful error bounds was found in the model");
  return run_claimed(device, *cut, draw_mask(random, cut->spec.nodes.size()));
}

}  // namespace

void add_models(const Selection& selection, std::vector<Case>& out_cases) {
  for (const ModelFile& file : selection.models) {
    for (int i = 0; i < (selection.full ? 40 : 8); ++i) {
      const std::string name = fmt::format("graph/models/{}/{}", file.name, i);
      out_cases.push_back(
          {.name = name, .judge = [file, name](RemoteDevice& device) { return judge_cut(device, file, name); }});
    }
  }
}

}  // namespace backplane::conform
