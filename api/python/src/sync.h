// SPDX-License-Identifier: Apache-2.0
// A stream, and the environment of its device.
#pragma once

#include "core.h"

namespace backplane::python {

struct PyStream {
  Unlocked<Environment> env;  // destroyed last
  Unlocked<Stream> stream;
  std::string device;
};

}  // namespace backplane::python
