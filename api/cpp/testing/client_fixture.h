// SPDX-License-Identifier: Apache-2.0
// For tests of the public C++ client: an environment with given backends, short functions that build graphs, and the
// error of a call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backplane/client.hpp"

namespace backplane {

inline Environment environment(std::vector<std::string> files, std::map<std::string, std::string> options = {}) {
  EnvironmentOptions how;
  how.backend_files = std::move(files);
  how.only_given = true;
  how.options = std::move(options);
  return Environment(how);
}

// Builds test models: a node and its only output have the same name; attributes are integers.
class Graph : public Builder {
 public:
  explicit Graph(uint32_t opset = 27) : Builder(opset) {}

  uint32_t node(const std::string& op, const std::string& name, const std::vector<uint32_t>& inputs,
                const std::map<std::string, int64_t>& numbers = {}) {
    NodeOptions how;
    how.attributes.insert(numbers.begin(), numbers.end());
    how.name = name;
    how.output_names = {name};
    return Builder::node(op, inputs, how);
  }
  Model finish(const std::vector<uint32_t>& outputs) {
    for (uint32_t value : outputs) output(value);
    return Builder::finish();
  }
};

// Returns the error that a call throws, or an error with status BP_OK.
template <class Call>
Error failure(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(BP_OK, "nothing was thrown");
}

}  // namespace backplane
