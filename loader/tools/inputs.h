// SPDX-License-Identifier: Apache-2.0
// What a model is run on: files where they are given, random numbers otherwise.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "onnx/exchange.h"

namespace backplane::tools {

struct InputFlags {
  std::vector<std::string> files;  // NAME=FILE
  std::vector<std::string> dims;   // NAME=EXTENT
  uint64_t seed = 0;

  void declare(cli::Command command);
};

struct Input {
  std::string name;
  std::string file;  // empty: random
  std::shared_ptr<onnx::Value> value;
};

// One for each input of the model, in order. A named dimension is what --dim says, or what a file shows; otherwise 1,
// with a line on standard error. Throws Usage for names that the model does not have and for files of another type or
// shape.
std::vector<Input> make_inputs(view::Graph graph, const InputFlags& flags);

// An exec of the session with its inputs bound, and what it needs as long as it lives.
struct BoundExec {
  std::vector<onnx::Bound> bound;
  Exec exec;
};
BoundExec bind_inputs(const Session& session, const std::vector<Input>& inputs);

}  // namespace backplane::tools
