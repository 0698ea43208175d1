// SPDX-License-Identifier: Apache-2.0
// Which implementations of operators are asked for by name, and the report of those that were taken.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/sdk/host.hpp"
#include "runtime/kernel.h"

namespace backplane::cpu {

// A list of implementations: "conv" has "winograd", "tiled", …, in the order in which they are tried.
struct ImplementationNames {
  std::string_view family;
  std::vector<std::string_view> names;
};

class Choices {
 public:
  // `wanted`: "best", or FAMILY=NAME, separated by commas. Throws sdk::Error for names that no list has.
  Choices(std::string_view wanted, std::span<const ImplementationNames> lists, const sdk::Host& host);

  // The implementation that is asked for, or "".
  std::string_view forced(std::string_view family) const;

  // Logs which implementation a node's plan is and why those before it were not taken.
  void report(const std::string& node, const Plan& plan) const;

 private:
  const sdk::Host& host_;
  std::map<std::string, std::string, std::less<>> forced_;  // by family
};

}  // namespace backplane::cpu
