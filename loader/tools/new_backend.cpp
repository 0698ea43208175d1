// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "cli/whole_file.h"
#include "command.h"
#include "embedded_files.h"

namespace backplane::tools {
namespace {

namespace fs = std::filesystem;

// A template and the file that is written from it.
struct File {
  std::string_view from;  // name of an embedded file
  std::string_view to;
};
// The code is that of backends/null, which this repository builds and tests. Only the files that differ are in
// new_backend/.
constexpr File kFiles[] = {
    {"CMakeLists.txt.in", "CMakeLists.txt"},
    {"README.md.in", "README.md"},
    {"plugin.cpp", "plugin.cpp"},
    {"ops.h", "ops.h"},
    {"ops.cpp", "ops.cpp"},
    {"null_test.cpp.in", "null_test.cpp"},
};
// Used instead of kFiles if the vendor has a compiler that reads ONNX.
constexpr File kCompilerFiles[] = {
    {"CMakeLists.txt.in", "CMakeLists.txt"},  {"compiler_README.md.in", "README.md"},
    {"compiler_plugin.cpp.in", "plugin.cpp"}, {"compiler.h.in", "compiler.h"},
    {"compiler.cpp.in", "compiler.cpp"},      {"null_test.cpp.in", "null_test.cpp"},
};
constexpr std::string_view kSteps = "## Step by step";  // the project gets backends/null/README.md from here on

// Names of Backplane's own libraries and backends.
constexpr std::string_view kTaken[] = {"api", "sdk", "loader", "null", "cpu", "opencl", "cuda", "onnxifi"};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Removes the license line of the template, because the vendor chooses the license.
void remove_licence(std::string& text) {
  if (text.substr(0, text.find('\n')).find("SPDX-License-Identifier") != std::string::npos)
    text.erase(0, text.find('\n') + 1);
}

// Returns the template with the backend's name filled in. Replaces only the names below, because "null" also occurs in
// C++ words such as nullptr.
std::string adapt(std::string text, const std::string& id) {
  std::string name = id;
  name.front() = static_cast<char>(name.front() - 'a' + 'A');
  const std::pair<std::string_view, std::string> names[] = {
      {"kAbout{\"null\", \"Null\", \"Backplane\", \"1.0\"}",
       fmt::format("kAbout{{\"{}\", \"{}\", \"{}\", \"0.1\"}}", id, name, name)},
      {"text(\"Backplane\")", fmt::format("text(\"{}\")", name)},
      {"NAME \"Null\"", fmt::format("NAME \"{}\"", name)},
      {"Null device", name + " device"},
      {"backplane_add_backend(null ", fmt::format("backplane_add_backend({} ", id)},
      {"add_test(NAME null ", fmt::format("add_test(NAME {} ", id)},
      {"null_backend", id + "_backend"},
      {"backplane_null", "backplane_" + id},
      {"null_test", id + "_test"},
      {"null.json", id + ".json"},
      {"# null:", fmt::format("# {}:", id)},
  };
  for (const auto& [from, to] : names) replace_all(text, from, to);
  return text;
}

void check_name(const std::string& id) {
  const bool is_legal =
      !id.empty() && id.size() <= 32 && id.front() >= 'a' && id.front() <= 'z' &&
      std::ranges::all_of(id, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (!is_legal) {
    throw Usage(fmt::format(
        "the name is '{}': it must have 1 to 32 characters of a-z, 0-9 and _, and start with a letter", id));
  }
  if (std::ranges::find(kTaken, id) != std::end(kTaken)) {
    throw Usage(fmt::format("the name '{}' is taken by Backplane itself: choose another", id));
  }
}

Outcome new_backend(const std::string& id, const std::string& folder, bool with_compiler) {
  check_name(id);
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    throw Failure(fmt::format("'{}' is a file: name a new folder", folder));
  }
  if (fs::is_directory(folder, error) && !fs::is_empty(folder, error)) {
    throw Failure(fmt::format("'{}' is not empty: name a new folder; nothing is overwritten", folder));
  }
  fs::create_directories(folder, error);
  if (error) throw Failure(fmt::format("'{}' cannot be created: {}", folder, error.message()));

  Outcome outcome;
  outcome.json = {{"id", id}, {"folder", folder}, {"files", Json::array()}};
  for (const File& file : with_compiler ? std::span<const File>(kCompilerFiles) : kFiles) {
    std::string text(embedded_file(file.from));
    remove_licence(text);
    if (with_compiler) replace_all(text, "SOURCES plugin.cpp ops.cpp", "SOURCES plugin.cpp compiler.cpp");
    if (file.from == "README.md.in") {
      const std::string_view readme = embedded_file("README.md");
      text += readme.substr(std::min(readme.find(kSteps), readme.size()));
    }
    const fs::path path = fs::path(folder) / adapt(std::string(file.to), id);
    cli::write_file(path, adapt(std::move(text), id));
    outcome.json["files"].push_back(path.string());
  }
  outcome.text = fmt::format(
      "Backend '{0}' is in {1}:\n"
      "  cd {1} && cmake -B build && cmake --build build && ctest --test-dir build\n"
      "Add -DCMAKE_PREFIX_PATH=PREFIX if Backplane is not installed in a standard location. Then read README.md "
      "there.\n",
      id, folder);
  return outcome;
}

Action declare(cli::Command command) {
  const auto id = std::make_shared<std::string>();
  const auto folder = std::make_shared<std::string>();
  command.add_option("name", *id, "The backend's id: 1 to 32 of a-z, 0-9 and _").shown_as("ID").required();
  command.add_option("folder", *folder, "A folder that does not exist yet or is empty").shown_as("FOLDER").required();
  const auto with_compiler = std::make_shared<bool>(false);
  command.add_flag("--compiler", *with_compiler,
                   "A backend over a compiler that reads ONNX: it gets islands as bytes and runs asynchronously");
  return [id, folder, with_compiler] { return new_backend(*id, *folder, *with_compiler); };
}

}  // namespace

extern const Verb new_backend_verb = {
    "new-backend", "writes the project of a new backend, which compiles, runs and has a test", declare};

}  // namespace backplane::tools
