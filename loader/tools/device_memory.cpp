// SPDX-License-Identifier: Apache-2.0
#include "device_memory.h"

#include <fmt/format.h>

namespace backplane::tools {
namespace {

void require_numbers(const view::Value& value, const char* kind) {
  const bp_type_t type = value.type();
  if (type.kind != BP_KIND_TENSOR || type.dtype == BP_DTYPE_STRING)
    throw Usage(fmt::format("--memory: {} '{}' is not a tensor of numbers; nothing else can be in a device's memory",
                            kind, value.name()));
}

// The index of the first space that is the device's own memory and not host memory; 0 if there is none.
uint32_t own_space(const Environment& env, const Device& device) {
  for (uint32_t i = 0; i < device.info.space_count; ++i) {
    bp_space_t space{};
    space.size = sizeof space;
    detail::call(api().memory_space, env.get(), device.info.id, i, &space);
    if ((space.flags & BP_SPACE_DEVICE) != 0 && (space.flags & BP_SPACE_HOST) == 0) return i;
  }
  return 0;
}

}  // namespace

std::vector<Buffer> move_to_memory(const Environment& env, const Device& device, const std::vector<Input>& inputs,
                                   Exec& exec, view::Graph graph) {
  const uint32_t space = own_space(env, device);
  std::vector<Buffer> buffers;
  const auto bind = [&](uint32_t slot, onnx::Tensor& host, bool is_input) {
    if (host.bytes.empty()) return;  // no elements
    const bp_tensor_t from = host.as_abi();
    buffers.push_back(env.allocate(device.info.id, from.buffer.bytes, space));
    if (is_input) env.copy(from.buffer, buffers.back().abi(), from.buffer.bytes);
    exec.bind_memory(slot, buffers.back().tensor(host.dtype, host.extents));
  };
  std::vector<onnx::Value> outputs;  // all are read before the first bind, after which the exec has no outputs
  for (uint32_t i = 0; i < graph.output_count(); ++i) {
    require_numbers(graph.output(i), "output");
    outputs.push_back(onnx::read_output(env, exec, graph, i));
  }
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    require_numbers(graph.input(i), "input");
    bind(i, inputs[i].value->tensor, true);
  }
  for (uint32_t i = 0; i < outputs.size(); ++i) bind(BP_SLOT_OUTPUT + i, outputs[i].tensor, false);
  return buffers;
}

}  // namespace backplane::tools
