// SPDX-License-Identifier: Apache-2.0
#include "engine/expression.h"

#include <algorithm>

#include "backplane/sdk/fence.hpp"

namespace backplane::gpu {

std::vector<int64_t> dense_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    static_cast<void>(__builtin_mul_overflow(step, shape[i], &step));  // may overflow if there are no elements
  }
  return strides;
}

View broadcast_view(const Tensor& tensor, const Shape& shape) {
  if (tensor.rank() > shape.size() || broadcast(tensor.shape, shape) != shape)
    throw sdk::Error(BP_TYPE_MISMATCH, to_string(tensor.shape) + " does not broadcast to " + to_string(shape));
  const std::vector<int64_t> dense = dense_strides(tensor.shape);
  View view{tensor, std::vector<int64_t>(shape.size()), 0};
  const size_t skip = shape.size() - tensor.rank();
  for (size_t i = 0; i < tensor.rank(); ++i) view.strides[skip + i] = tensor.shape[i] == 1 ? 0 : dense[i];
  return view;
}

int Expression::leaf(const View& view) {
  auto at = std::ranges::find(leaves, view);
  if (at == leaves.end()) at = leaves.insert(at, view);
  return -1 - static_cast<int>(at - leaves.begin());
}

int Expression::append(const Expression& other) {
  const int first = static_cast<int>(steps.size());
  for (Step step : other.steps) {
    for (int& operand : step.operands) {
      operand = operand >= 0 ? operand + first : leaf(other.leaves[static_cast<size_t>(-1 - operand)]);
    }
    steps.push_back(std::move(step));
  }
  return static_cast<int>(steps.size()) - 1;
}

std::string Expression::statements() const {
  std::string text;
  for (size_t s = 0; s < steps.size(); ++s) {
    const std::string type = "C_" + std::string(type_name(steps[s].dtype));
    text += "  const " + type + " t" + std::to_string(s) + " = (" + type + ")(";
    const std::string& code = steps[s].code;
    for (size_t i = 0; i < code.size(); ++i) {
      if (code[i] != '$') {
        text += code[i];
      } else if (code[++i] == 'T') {
        text += type;
      } else {
        const int operand = steps[s].operands.at(static_cast<size_t>(code[i] - '0'));
        text += operand >= 0 ? "t" + std::to_string(operand) : "x" + std::to_string(-1 - operand);
      }
    }
    text += ");\n";
  }
  return text;
}

}  // namespace backplane::gpu
