// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/values.h"

#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {

Verdict expect_operands(const Node& node, uint32_t inputs, uint32_t outputs) {
  for (uint32_t slot = 0; slot < inputs; ++slot) {
    if (!node.has_input(slot)) return no(BP_REASON_OPSET, "input " + std::to_string(slot) + " is missing");
  }
  if (node.output_count() < outputs)
    return no(BP_REASON_OPSET, "it has " + std::to_string(node.output_count()) + " outputs; at least " +
                                   std::to_string(outputs) + " are needed");
  return yes();
}

std::optional<int64_t> integer(const Value& value) {
  if (value.kind != BP_KIND_TENSOR || value.tensor.shape.elements() != 1) return std::nullopt;
  if ((kIndexTypes >> value.tensor.dtype & 1) == 0) return std::nullopt;
  return integers(value.tensor)[0];
}

std::vector<std::string_view> views(const Tensor& tensor) {
  Texts texts(tensor);
  require_memory(texts.count(), sizeof(std::string_view));
  std::vector<std::string_view> list;
  list.reserve(static_cast<size_t>(texts.count()));
  Pace pace;
  for (int64_t i = 0; i < texts.count(); ++i) {
    pace.spend(4);
    list.push_back(texts[i]);
  }
  return list;
}

}  // namespace backplane::cpu
