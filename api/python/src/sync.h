// SPDX-License-Identifier: Apache-2.0
// A stream, and the environment that must outlive it.
#pragma once

#include "core.h"

namespace backplane::python {

struct PyStream {
  Unlocked<Environment> env;  // destroyed last
  Unlocked<Stream> stream;
  std::string device;
};

}  // namespace backplane::python
