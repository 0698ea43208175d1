// SPDX-License-Identifier: Apache-2.0
// The program `backplane`, the loader's command line.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/guarded.h"
#include "cli/printable.h"
#include "cli/program.h"
#include "cli/style.h"
#include "command.h"

namespace backplane::tools {

#define BACKPLANE_ENTRY(name) extern const Verb name##_verb;
#include "verbs.inc"
#undef BACKPLANE_ENTRY

namespace {

constexpr const Verb* kVerbs[] = {
#define BACKPLANE_ENTRY(name) &name##_verb,
#include "verbs.inc"
#undef BACKPLANE_ENTRY
};

// Prints ASCII only. Characters that control terminals are escaped.
void print_json(const Json& json) {
  cli::print_out(json.dump(2, ' ', true, Json::error_handler_t::replace) + '\n');
}

// Prints an error as one line on standard error. With --json, also prints an object with the key "error".
int fail(bool json, const char* status, const std::string& text, int exit_status) {
  try {
    if (json) print_json({{"error", {{"status", status}, {"text", text}}}});
  } catch (const std::exception&) {  // standard output cannot be written; the line and the exit status say enough
  }
  cli::print_err(
      fmt::format("{} {}\n", cli::has_color(stderr) ? cli::in_red("backplane:") : "backplane:", cli::printable(text)));
  return exit_status;
}

// The releases of this program and of the loader. They may differ, because the loader is a separate library.
std::string version_text() {
  const std::string_view loader(api().release.data, api().release.size);
  return fmt::format("backplane {} (loader {}, ABI {}.{})", BACKPLANE_RELEASE, loader, BP_VERSION_MAJOR(api().version),
                     BP_VERSION_MINOR(api().version));
}

int run(int argc, char** argv) {
  cli::Program program({.name = "backplane",
                        .does = "Finds hardware backends, and places and runs ONNX models on them.",
                        .footer = "Exit status: 0 success, 1 a negative result, 2 wrong usage.",
                        .version = version_text(),
                        .needs_command = true});
  bool json = false;
  std::map<std::string, Action> actions;
  for (const Verb* verb : kVerbs) {
    cli::Command declared = program.root().add_command(verb->name, verb->does);
    declared.add_flag("--json", json, "The result as JSON on standard output");
    actions[verb->name] = verb->declare(declared);
  }
  const cli::Parsed parsed = program.parse(argc, argv);
  if (parsed.is_answered) return cli::kSuccess;
  if (!parsed.wrong.empty()) {
    json = std::find(argv, argv + argc, std::string_view("--json")) !=
           argv + argc;  // parsing may have stopped before --json
    const std::string command = parsed.command.empty() ? "" : " " + parsed.command;
    return fail(json, "usage", fmt::format("{}; see backplane{} --help", parsed.wrong, command), cli::kWrongUsage);
  }
  report_timeout_by(
      [&](const std::string& text) { fail(json, api().status_name(BP_TIMED_OUT), text, cli::kNegative); });
  try {
    const Outcome outcome = actions.at(parsed.command)();
    if (json) {
      print_json(outcome.json);
    } else {
      const std::string text = cli::printable_lines(outcome.text);
      cli::print_out(cli::has_color(stdout) ? cli::emphasize(text) : text);
    }
    return outcome.is_positive ? cli::kSuccess : cli::kNegative;
  } catch (const Error& error) {
    // Without memory for a text, an error has only the name of its status.
    const bool is_bare = error.status() == BP_RESOURCE_EXHAUSTED && error.text() == api().status_name(error.status());
    return fail(json, api().status_name(error.status()), is_bare ? no_memory_text() : error.text(), cli::kNegative);
  } catch (const Usage& error) {
    return fail(json, "usage", error.what(), cli::kWrongUsage);
  } catch (const std::bad_alloc&) {
    return fail(json, api().status_name(BP_RESOURCE_EXHAUSTED), no_memory_text(), cli::kNegative);
  } catch (const std::exception& error) {
    return fail(json, "failure", error.what(), cli::kNegative);
  }
}

}  // namespace
}  // namespace backplane::tools

int main(int argc, char** argv) {
  return backplane::cli::guarded("backplane", [&] { return backplane::tools::run(argc, argv); });
}
