// SPDX-License-Identifier: Apache-2.0
// The exception for wrong usage of a program.
#pragma once

#include <stdexcept>

namespace backplane::cli {

// The command line is wrong, which results in exit status 2. Any other failure has exit status 1.
struct Usage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace backplane::cli
