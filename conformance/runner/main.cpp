// SPDX-License-Identifier: Apache-2.0
// backplane-conform: does a backend keep the contract?
#include <CLI/CLI.hpp>
#include <functional>
#include <map>

#include "runner/onnx.h"

namespace {

struct Command {
  const char* name;
  const char* does;
  std::function<int()> (*declare)(CLI::App& command);
};

constexpr Command kCommands[] = {
    {"onnx", "runs ONNX's own test data on one device", backplane::conform::declare_onnx},
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Tells whether a backend keeps Backplane's contract.", "backplane-conform");
  app.require_subcommand(1);
  std::map<const CLI::App*, std::function<int()>> actions;
  for (const Command& command : kCommands) {
    CLI::App* declared = app.add_subcommand(command.name, command.does);
    actions[declared] = command.declare(*declared);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return actions.at(app.get_subcommands().front())();
}
