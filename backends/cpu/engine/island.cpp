// SPDX-License-Identifier: Apache-2.0
#include "engine/island.h"

#include "engine/instance.h"
#include "engine/schedule.h"

namespace backplane::cpu {

std::unique_ptr<sdk::Instance> Island::instance() const {
  return std::make_unique<Instance>(*this);
}

bp_program_info_t Island::info() const {
  bp_program_info_t info{};
  info.shapes = program_.shapes();
  info.device_bytes = program_.held_bytes();
  info.inplace = program_.inplace().data();
  info.inplace_count = static_cast<uint32_t>(program_.inplace().size());
  return info;
}

std::vector<int64_t> Island::output_extents(const std::vector<bp_tensor_t>& inputs, uint32_t output) const {
  const bp_graph_t& graph = program_.graph();
  std::vector<Shape> shapes;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const bp_tensor_t& input = inputs[i];
    if (input.rank > BP_MAX_RANK || !program_.admits(program_.type_of(graph.inputs[i]), {input.extents, input.rank}))
      throw sdk::Error(BP_TYPE_MISMATCH, "extents of input " + std::to_string(i) + " do not fit its declared type");
    shapes.emplace_back(std::span<const int64_t>(input.extents, input.rank));
  }
  const std::shared_ptr<const Schedule> schedule = program_.schedule(shapes);
  const uint32_t value = graph.outputs[output];
  if (!schedule->shaped[value]) {
    throw sdk::Error(BP_BAD_STATE,
                     "the extents of output " + std::to_string(output) + " are known only during the run");
  }
  const Shape& shape = schedule->values[value].shape;
  return {shape.begin(), shape.end()};
}

}  // namespace backplane::cpu
