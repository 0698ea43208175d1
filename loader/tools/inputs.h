// SPDX-License-Identifier: Apache-2.0
// The inputs of a run: values from the command line and from files, and random numbers for the rest.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "onnx/exchange.h"

namespace backplane::tools {

// The option --dim NAME=EXTENT.
void declare_dims(cli::Command command, std::vector<std::string>& dims);
// Returns the extents of named dimensions from values of --dim. Throws Usage if one is not a number, or names a
// dimension that no input has.
std::map<std::string, int64_t> read_extents(view::Graph graph, const std::vector<std::string>& settings);

struct InputFlags {
  std::string array;                // a file
  std::vector<std::string> values;  // NAME=FILE, NAME=2x3xf32=1, FILE.npz
  std::vector<std::string> dims;    // NAME=EXTENT
  bool cast = false;
  uint64_t seed = 0;

  void declare(cli::Command command);
  // The files that the command reads because of these options.
  std::vector<std::string> files() const;
};

struct Input {
  std::string name;
  std::string source;  // a file or a literal; empty: random numbers
  std::shared_ptr<onnx::Value> value;
};

// Returns one Input for each input of the model, in order. Inputs without a value get random numbers. Their named
// dimensions have the extents from --dim or from the given values; other unknown dimensions are 1, and a line on
// standard error reports that. Throws Usage for unknown names, for values of the wrong type or shape, and for inputs
// for which random numbers are impossible. Throws cli::FileError for files that cannot be read, and Failure for files
// with invalid contents.
std::vector<Input> make_inputs(view::Graph graph, const InputFlags& flags);

// Lists the random inputs on standard error, because results of random inputs could be mistaken for real ones.
void note_random(const std::vector<Input>& inputs, uint64_t seed);

// An exec with its inputs bound, and everything that must live as long as the exec.
struct BoundExec {
  std::vector<onnx::Bound> bound;
  Exec exec;
};
BoundExec bind_inputs(const Session& session, const std::vector<Input>& inputs);

}  // namespace backplane::tools
