// SPDX-License-Identifier: Apache-2.0
#include "runner/guarded.h"

#include <fmt/format.h>

#include <exception>

#include "runner/case.h"

namespace backplane::conform {

int guarded(const std::function<int()>& run) {
  try {
    return run();
  } catch (const Usage& error) {
    fmt::print(stderr, "backplane-conform: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "backplane-conform: {}\n", error.what());
    return 1;
  }
}

}  // namespace backplane::conform
