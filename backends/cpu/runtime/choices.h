// SPDX-License-Identifier: Apache-2.0
// The implementations of operators that are requested by name, and the log of those chosen.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/sdk/host.hpp"
#include "runtime/kernel.h"

namespace backplane::cpu {

// The names in a list of implementations (implementations.h), in the order in which they are tried.
struct ImplementationNames {
  std::string_view family;
  std::vector<std::string_view> names;
};

class Choices {
 public:
  // `wanted`: "best", or FAMILY=NAME pairs separated by commas. Throws sdk::Error if it is malformed or has an unknown
  // name. `host` must outlive the object.
  Choices(std::string_view wanted, std::span<const ImplementationNames> lists, const sdk::Host& host);

  // Returns the name of the implementation requested for a family, or "".
  std::string_view forced(std::string_view family) const;

  // Logs, at debug level, the implementation of a node's plan, and why those before it in the list refused. Logs
  // nothing if the plan does not come from such a list.
  void report(const std::string& node, const Plan& plan) const;

 private:
  const sdk::Host& host_;
  std::map<std::string, std::string, std::less<>> forced_;  // requested name by family
};

}  // namespace backplane::cpu
