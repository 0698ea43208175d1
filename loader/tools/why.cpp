// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "command.h"

namespace backplane::tools {
namespace {

namespace fs = std::filesystem;

// Whether `id` names a file: as libbackplane_<id>.so, <id>.json, or the file's whole name or path.
bool is_named(const std::string& path, const std::string& id) {
  const fs::path file = fs::path(path).filename();
  return file == id || file == "libbackplane_" + id + ".so" || file == id + ".json" || path == id;
}

bool is_meant(const Json& candidate, const std::string& id) {
  return candidate.at("id") == id || is_named(candidate.at("library"), id) || is_named(candidate.at("manifest"), id);
}

// The places on this machine that discovery searches (see bp_env_desc_t), for a user whose backend was not found.
Json places(const EnvironmentFlags& flags) {
  Json places = Json::array();
  const auto add = [&](std::string_view what, const std::string& where) {
    places.push_back({{"place", what}, {"path", where}});
  };
  const auto variable = [](const char* name) {
    const char* value = secure_getenv(name);  // as in the loader
    return std::string(value == nullptr ? "" : value);
  };
  const auto base_folders = [&](const char* home, const char* below_home, const char* list, const char* otherwise) {
    constexpr const char* kManifests = "/backplane/backends.d";
    if (const std::string own = variable(home); !own.empty())
      add(home, own + kManifests);
    else if (!variable("HOME").empty())
      add(home, variable("HOME") + below_home + kManifests);
    const std::string listed = variable(list);
    const std::string folders = listed.empty() ? otherwise : listed;
    for (size_t begin = 0; begin <= folders.size();) {
      const size_t end = std::min(folders.find(':', begin), folders.size());
      if (end > begin) add(list, folders.substr(begin, end - begin) + kManifests);
      begin = end + 1;
    }
  };
  for (const std::string& file : flags.backends) add("--backend", file);
  for (const char* name : {"BACKPLANE_BACKEND_FILES", "BACKPLANE_ADD_BACKEND_FILES"}) add(name, variable(name));
  if (!variable("BACKPLANE_BACKEND_FILES").empty()) return places;  // this variable replaces the search of all folders

  base_folders("XDG_CONFIG_HOME", "/.config", "XDG_CONFIG_DIRS", "/etc/xdg");
  add("system", BACKPLANE_CONFIG_FOLDER "/backplane/backends.d");
  base_folders("XDG_DATA_HOME", "/.local/share", "XDG_DATA_DIRS", "/usr/local/share:/usr/share");
  add("system", BACKPLANE_DATA_FOLDER "/backplane/backends.d");
  Dl_info loader = {};
  if (dladdr(reinterpret_cast<const void*>(&bp_get_api), &loader) != 0 && loader.dli_fname != nullptr) {
    std::error_code error;
    const fs::path file = fs::canonical(loader.dli_fname, error);
    for (const char* share : {"../share/backplane/backends.d", "../../share/backplane/backends.d"})
      if (!error) add("next to the loader", (file.parent_path() / share).lexically_normal().string());
  }
  return places;
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
  for (const Json& place : story.at("searched")) {
    const std::string path = cell(place.at("path"));
    searched.row({cell(place.at("place")), path.empty() ? "not set" : path});
  }
  return fmt::format("No file that was found is of backend '{}'. These places were searched:\n{}", cell(story.at("id")),
                     searched.text());
}

Action declare(cli::Command command) {
  const auto flags = std::make_shared<EnvironmentFlags>();
  const auto id = std::make_shared<std::string>();
  flags->declare(command);
  command.add_option("id", *id, "A backend's id, or the name of its file").required();
  return [flags, id] {
    const Json report = parse_json(flags->make(true).report());
    Outcome outcome;
    outcome.json = {{"id", *id}, {"found", false}, {"loader", report.at("loader")}};
    outcome.json["candidates"] = Json::array();
    outcome.json["devices"] = Json::array();
    for (const Json& candidate : report.at("candidates")) {
      if (is_meant(candidate, *id)) outcome.json["candidates"].push_back(candidate);
    }
    for (const Json& device : report.at("devices")) {
      if (device.at("backend") == *id) outcome.json["devices"].push_back(device);
    }
    outcome.json["searched"] = places(*flags);
    outcome.json["found"] = outcome.is_positive = !outcome.json["candidates"].empty();
    outcome.text = render(outcome.json);
    return outcome;
  };
}

}  // namespace

extern const Verb why_verb = {"why", "reports everything known about one backend", declare};

}  // namespace backplane::tools
