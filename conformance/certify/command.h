// SPDX-License-Identifier: Apache-2.0
// `backplane-conform keygen`, `certify commit | run | countersign` and `verify-bundle`.
#pragma once

#include <functional>

#include "cli/command.h"

namespace backplane::conform {

std::function<int()> declare_keygen(cli::Command command);
std::function<int()> declare_certify(cli::Command command);
std::function<int()> declare_verify_bundle(cli::Command command);

}  // namespace backplane::conform
