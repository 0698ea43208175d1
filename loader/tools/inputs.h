// SPDX-License-Identifier: Apache-2.0
// The inputs of a run: files and values from the command line, otherwise random numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "onnx/exchange.h"

namespace backplane::tools {

struct InputFlags {
  std::string array;                // a file
  std::vector<std::string> values;  // NAME=FILE, NAME=2x3xf32=1, FILE.npz
  std::vector<std::string> dims;    // NAME=EXTENT
  bool cast = false;
  uint64_t seed = 0;

  void declare(cli::Command command);
};

struct Input {
  std::string name;
  std::string source;  // a file or a literal; empty: random
  std::shared_ptr<onnx::Value> value;
};

// Returns one for each input of the model, in order. A named dimension has the extent of --dim or of a given value;
// otherwise 1, with a line on standard error. Throws Usage for names that the model does not have and for values of
// another type or shape.
std::vector<Input> make_inputs(view::Graph graph, const InputFlags& flags);

// Names the random inputs on standard error, because the results could be mistaken for real ones.
void note_random(const std::vector<Input>& inputs, uint64_t seed);

// An exec of the session with its inputs bound, and everything that must live as long as it does.
struct BoundExec {
  std::vector<onnx::Bound> bound;
  Exec exec;
};
BoundExec bind_inputs(const Session& session, const std::vector<Input>& inputs);

}  // namespace backplane::tools
