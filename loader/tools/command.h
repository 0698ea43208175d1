// SPDX-License-Identifier: Apache-2.0
// What all commands of `backplane` share: options, results, failures.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "backplane/client.hpp"

namespace backplane::tools {

using Json = nlohmann::ordered_json;

// The command line is wrong: exit status 2. What the loader refuses (backplane::Error) and Failure are 1.
struct Usage : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What a command found out: the object that --json prints, and the same as text, rendered from it.
struct Outcome {
  Json json;
  std::string text;
  bool is_positive = true;  // exit status 0 or 1
};

// Options of every command that looks for backends.
struct EnvironmentFlags {
  std::vector<std::string> backends;  // files beside those that are found
  std::vector<std::string> settings;  // NAME=VALUE
  uint32_t threads = 0;

  void declare(CLI::App& command);
  Environment make() const;
};

// Options of every command that makes a session.
struct SessionFlags {
  EnvironmentFlags environment;
  std::string model;
  std::vector<std::string> devices;
  std::vector<std::string> pins;  // PATTERN=DEVICE
  std::string fallback = "allow";
  std::string costs = "known";

  void declare(CLI::App& command);
  // Throws Usage for devices that do not exist.
  SessionOptions options(const Environment& env) const;
};

// "a=b" at its last or first '='. Throws Usage with the option's name.
std::pair<std::string, std::string> split_setting(std::string_view option, const std::string& setting, bool at_last);

// Names of the devices that run a node of the session.
std::vector<std::string> devices_used(const Environment& env, const Session& session);
uint32_t island_count(const Session& session);

// ---- text ----

// Columns as wide as their widest cell; two spaces between, none at line ends.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(std::string_view indent = "  ") const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string bytes_text(uint64_t bytes);    // "1.5 MiB"
std::string seconds_text(double seconds);  // "1.5 ms"
std::string type_text(view::Value value);  // "float[N,3]"
std::string join(const Json& list, std::string_view separator);
// A cell of a report: strings as they are, everything else as JSON writes it.
std::string cell(const Json& value);

// The nodes of a session's report that no device takes, and the same as text: a line for each operator.
Json uncovered_nodes(const Json& report);
std::string uncovered_text(const Json& nodes);

// ---- the commands, each in the file of its name ----

using Action = std::function<Outcome()>;
Action declare_bench(CLI::App& command);
Action declare_conform(CLI::App& command);
Action declare_explain(CLI::App& command);
Action declare_info(CLI::App& command);
Action declare_list(CLI::App& command);
Action declare_new_backend(CLI::App& command);
Action declare_profile(CLI::App& command);
Action declare_run(CLI::App& command);
Action declare_trace(CLI::App& command);
Action declare_why(CLI::App& command);

}  // namespace backplane::tools
