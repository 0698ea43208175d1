// SPDX-License-Identifier: Apache-2.0
// Common to all commands of `backplane`: options, results, failures.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backplane/client.hpp"
#include "cli/command.h"
#include "cli/table.h"
#include "cli/usage.h"
#include "cli/verb.h"
#include "command_limits.h"

namespace backplane::tools {

using Json = nlohmann::ordered_json;

using cli::Table;
using cli::Usage;

// The failure of a command; like refusals of the loader (backplane::Error) it leads to exit status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The result of a command: the object that --json prints, and the text rendered from it.
struct Outcome {
  Json json;
  std::string text;
  bool is_positive = true;  // exit status 0 or 1
};

// Options of every command that looks for backends.
struct EnvironmentFlags {
  std::vector<std::string> backends;  // files in addition to the ones that discovery finds
  std::vector<std::string> settings;  // NAME=VALUE
  uint32_t threads = 0;
  bool verbose = false;
  bool compiles_verbosely = false;  // with `verbose`, the log says how each node is computed
  Limits limits;

  void declare(cli::Command command);
  // `only_lists`: libraries known from an earlier run are not opened until they are used.
  Environment make(bool only_lists = false) const;
};

// Options of every command that creates a session.
struct SessionFlags {
  EnvironmentFlags environment;
  std::string model;
  std::vector<std::string> devices;
  std::vector<std::string> pins;  // PATTERN=DEVICE
  std::string fallback = "allow";
  std::string costs = "known";

  void declare(cli::Command command);
  // Throws Usage for devices that do not exist.
  SessionOptions options(const Environment& env) const;
};

// Splits "a=b" at its last or first '='. Throws Usage with the option's name.
std::pair<std::string, std::string> split_setting(std::string_view option, const std::string& setting, bool at_last);

// Names of the devices that run a node of the session.
std::vector<std::string> devices_used(const Environment& env, const Session& session);
uint32_t island_count(const Session& session);

// Parses a report of the loader. One function for all commands: each unit that instantiates the parser of nlohmann-json
// takes two more seconds to compile.
Json parse_json(const std::string& text);

// ---- text ----

std::string bytes_text(uint64_t bytes);    // "1.5 MiB"
std::string seconds_text(double seconds);  // "1.5 ms"
std::string type_text(view::Value value);  // "float[N,3]"
std::string join(const Json& list, std::string_view separator);
// Text for a cell of a report: strings unquoted, everything else as JSON.
std::string cell(const Json& value);

// A command, defined in the file of its name. Its action may throw Error, Usage and Failure.
using Action = std::function<Outcome()>;
using Verb = cli::Verb<Outcome>;

}  // namespace backplane::tools
