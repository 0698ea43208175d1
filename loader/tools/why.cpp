// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "command.h"

namespace backplane::tools {
namespace {

namespace fs = std::filesystem;

// Whether `id` names a file: as libbackplane_<id>.so, or the file's name, with or without its suffix, or its path.
bool is_named(const std::string& path, const std::string& id) {
  const fs::path file = fs::path(path).filename();
  return file == id || file.stem() == id || file.stem() == "libbackplane_" + id || path == id;
}

bool is_meant(const Json& candidate, const std::string& id) {
  return candidate.at("id") == id || is_named(candidate.at("library"), id) || is_named(candidate.at("manifest"), id);
}

std::string render(const Json& story) {
  std::string text;
  for (const Json& candidate : story.at("candidates")) {
    Table table;
    const auto line = [&](const char* name, const Json& value) {
      if (!cell(value).empty()) table.row({name, cell(value)});
    };
    line("verdict", candidate.at("accepted") ? Json("accepted") : candidate.at("reason"));
    line("", candidate.at("text"));
    line("id", candidate.at("id"));
    line("library", candidate.at("library"));
    line("manifest", candidate.at("manifest"));
    line("found by", candidate.at("found_by"));
    line("ABI", candidate.at("abi"));
    text += fmt::format("Candidate\n{}", table.text());
  }
  Table devices;
  for (const Json& device : story.at("devices")) {
    devices.row({cell(device.at("name")), cell(device.at("description")), "driver " + cell(device.at("driver")),
                 cell(device.at("arch")), join(device.at("dtypes"), " ")});
  }
  if (!story.at("devices").empty()) text += fmt::format("Devices\n{}", devices.text());
  if (story.at("found")) return text;

  Table searched;
  for (const Json& place : story.at("searched")) searched.row({cell(place.at("place")), cell(place.at("path"))});
  return fmt::format("No file that was found belongs to backend '{}'. These places were searched:\n{}",
                     cell(story.at("id")), searched.text());
}

Action declare(cli::Command command) {
  const auto flags = std::make_shared<EnvironmentFlags>();
  const auto id = std::make_shared<std::string>();
  flags->declare(command);
  command.add_option("id", *id, "A backend's id, or the name of its file").shown_as("ID").required();
  return [flags, id] {
    const Json report = parse_json(flags->make(true).report());
    Outcome outcome;
    outcome.json = {{"id", *id}, {"found", false}, {"loader", report.at("loader")}};
    outcome.json["candidates"] = Json::array();
    outcome.json["devices"] = Json::array();
    std::set<std::string> backends;  // of the candidates that were accepted
    for (const Json& candidate : report.at("candidates")) {
      if (!is_meant(candidate, *id)) continue;
      if (candidate.at("accepted")) backends.insert(candidate.at("id"));
      outcome.json["candidates"].push_back(candidate);
    }
    for (const Json& device : report.at("devices")) {
      if (backends.contains(device.at("backend"))) outcome.json["devices"].push_back(device);
    }
    outcome.json["searched"] = report.at("searched");
    outcome.json["found"] = outcome.is_positive = !outcome.json["candidates"].empty();
    outcome.text = render(outcome.json);
    return outcome;
  };
}

}  // namespace

extern const Verb why_verb = {"why", "reports everything known about one backend", declare};

}  // namespace backplane::tools
