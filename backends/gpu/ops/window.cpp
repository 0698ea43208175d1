// SPDX-License-Identifier: Apache-2.0
#include "ops/window.h"

#include <algorithm>

namespace backplane::gpu {

Spatial Window::phases() const {
  Spatial count;
  for (size_t d = 0; d < 3; ++d) count[d] = std::min(stride[d], reach(d));
  return count;
}

Spatial Window::positions() const {
  Spatial count;
  for (size_t d = 0; d < 3; ++d) count[d] = out[d] + (reach(d) - 1) / stride[d];
  return count;
}

bool Window::in_place() const {
  return phases() == Spatial{1, 1, 1} && stride == Spatial{1, 1, 1} && begin == Spatial{0, 0, 0} && positions() == in;
}

namespace {

std::string macro(const char* name, const Spatial& values) {
  std::string text;
  for (size_t i = 0; i < 3; ++i) text += std::string(" -D") + name + "_" + "DHW"[i] + "=" + std::to_string(values[i]);
  return text;
}

}  // namespace

std::string Window::macros() const {
  return tap_macros() + macro("STRIDE", stride) + macro("PAD", begin);
}

std::string Window::polyphase_macros() const {
  return macro("STRIDE", stride) + macro("PHASES", phases());
}

std::string Window::tap_macros() const {
  return macro("KERNEL", kernel) + macro("DILATION", dilation);
}

}  // namespace backplane::gpu
