// SPDX-License-Identifier: Apache-2.0
#include "runtime/island.h"

#include "runtime/instance.h"
#include "runtime/schedule.h"

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

void Island::output_extents(const std::vector<bp_tensor_t>& inputs, std::vector<bp_shape_t>& outputs) const {
  std::vector<Shape> shapes;
  for (const bp_tensor_t& input : inputs) shapes.emplace_back(std::span<const int64_t>(input.extents, input.rank));
  const std::shared_ptr<const Schedule> schedule = program_.schedule(shapes);
  for (size_t o = 0; o < outputs.size(); ++o) {
    const uint32_t value = program_.graph().outputs[o];
    if (!schedule->shaped[value]) continue;  // the extents are known only during the run
    const Shape& shape = schedule->values[value].shape;
    outputs[o].rank = static_cast<uint32_t>(shape.rank());
    std::copy(shape.begin(), shape.end(), outputs[o].extents);
  }
}

}  // namespace backplane::cpu
