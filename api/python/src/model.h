// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "environment.h"

namespace backplane::python {

struct PyModel {
  Unlocked<Environment> env;
  Unlocked<Model> model;
};

// An input or output as the model declares it.
struct ValueInfo {
  std::string name;
  std::string_view kind;
  std::string_view dtype;
  nb::object shape;
  std::string type;
};
ValueInfo value_info(view::Value value);
nb::list value_infos(const std::vector<view::Value>& values);

nb::object load_model(const PyEnvironment& env, nb::handle source, nb::handle directory, nb::handle weights);

}  // namespace backplane::python
