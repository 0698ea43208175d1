// SPDX-License-Identifier: Apache-2.0
// Shared by all commands of `backplane`: options, results, failures.
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

// A command failed. Like the loader's errors (backplane::Error), this results in exit status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The result of a command: the object that --json prints, and its rendering as text.
struct Outcome {
  Json json;
  std::string text;
  bool is_positive = true;  // true: exit status 0; false: 1
};

// Options of every command that uses backends.
struct EnvironmentFlags {
  std::vector<std::string> backends;  // files in addition to those that discovery finds
  std::vector<std::string> settings;  // NAME=VALUE
  uint32_t threads = 0;
  bool verbose = false;
  bool compiles_verbosely = false;  // with `verbose`, the log also reports how each node is computed
  Limits limits;

  void declare(cli::Command command);
  // If `only_lists`, libraries known from an earlier run are opened only when they are used.
  Environment make(bool only_lists = false) const;
};

// Options of every command that creates a session.
struct SessionFlags {
  EnvironmentFlags environment;
  std::string model;
  std::vector<std::string> devices;
  std::vector<std::string> pins;  // PATTERN=DEVICE
  std::vector<std::string> compute_types;
  std::string fallback = "allow";
  std::string costs = "known";

  void declare(cli::Command command);
  // Returns the options, with devices named as `list` prints them, even if the command line uses another form. Throws
  // Usage if a device does not exist, if a pin is not PATTERN=DEVICE, or if its device is not among `devices`.
  SessionOptions options(const Environment& env) const;
  // The files that the command reads because of these options.
  std::vector<std::string> files() const;
};

// Prints a line on standard error about something that is not an error.
void note(const std::string& text);

// Splits "a=b" at its last or first '='. If there is none, or nothing before it, throws Usage with the option's name
// and the form of its values, such as "NAME=FILE".
std::pair<std::string, std::string> split_setting(std::string_view option, std::string_view form,
                                                  const std::string& setting, bool at_last);

// The device that `list` prints under this name, or that the name means in another form. Throws Usage if there is none.
Device find_device(const Environment& env, const std::string& name);

// Names of the devices that run at least one node of the session.
std::vector<std::string> devices_used(const Environment& env, const Session& session);
uint32_t island_count(const Session& session);

// Parses a report of the loader. All commands share this function, because each file that instantiates nlohmann-json's
// parser takes two more seconds to compile.
Json parse_json(const std::string& text);

std::string bytes_text(uint64_t bytes);                                               // "1.5 MiB"
std::string seconds_text(double seconds);                                             // "1.50 ms"
std::string type_text(view::Value value);                                             // "float[N,3]"
std::string count_text(uint64_t count, std::string_view one, std::string_view many);  // "1 copy", "2 copies"
std::string join(const Json& list, std::string_view separator);
// Text for a table cell: strings without quotes, everything else as JSON.
std::string cell(const Json& value);

// A command, defined in the file of the same name. Its action may throw Error, Usage and Failure.
using Action = std::function<Outcome()>;
using Verb = cli::Verb<Outcome>;

}  // namespace backplane::tools
