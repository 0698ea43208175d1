// SPDX-License-Identifier: Apache-2.0
#include "cli/guarded.h"

#include <fmt/format.h>

#include <exception>

#include "cli/printable.h"
#include "cli/usage.h"

namespace backplane::cli {

int guarded(std::string_view program, const std::function<int()>& run) {
  try {
    return run();
  } catch (const Usage& error) {
    fmt::print(stderr, "{}: {}\n", program, printable(error.what()));
    return kWrongUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, printable(error.what()));
    return kNegative;
  }
}

}  // namespace backplane::cli
