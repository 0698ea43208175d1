// SPDX-License-Identifier: Apache-2.0
#include "discover/isolation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/abi.h"
#include "discover/child.h"
#include "discover/helper.h"
#include "discover/negotiate.h"
#include "discover/opening.h"
#include "host/variable.h"
#include "isolate/library.h"

namespace backplane {
namespace {

std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t end = std::min(list.find(separator), list.size());
    if (end > 0) parts.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

}  // namespace

Status Isolation::set(std::string_view option, std::string_view value) {
  if (option == "isolate") {
    for (std::string& pattern : split(value, ',')) patterns_.push_back(std::move(pattern));
    return {};
  }
  if (option == "isolate_sandbox") {
    if (value != "strict" && value != "drivers" && value != "off")
      return {BP_INVALID_ARGUMENT,
              fmt::format("option loader.isolate_sandbox is \"{}\": it must be strict, drivers or off", value)};
    sandbox_ = value;
    return {};
  }
  for (std::string& path : split(value, ':')) {
    if (path[0] != '/')
      return {BP_INVALID_ARGUMENT, fmt::format("option loader.isolate_paths has \"{}\": paths must be absolute", path)};
    paths_.push_back(std::move(path));
  }
  return {};
}

void Isolation::allow_paths_of(std::string_view id, std::string_view path) {
  std::string name = "BACKPLANE_";
  for (const char c : id) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const char* const value = variable((name + "_PATH").c_str());
  for (const std::string_view list : {path, std::string_view(value ? value : "")})
    for (std::string& one : split(list, ':'))
      if (one[0] == '/') paths_.push_back(std::move(one));
}

bool Isolation::wanted(std::string_view id, std::string_view full_id, bool by_manifest) const {
  bool wanted = by_manifest;
  for (const std::string_view entry : patterns_) {
    const bool is_not = entry.starts_with('!');
    const std::string_view pattern = is_not ? entry.substr(1) : entry;
    if (matches(pattern, id) || (!full_id.empty() && matches(pattern, full_id))) wanted = !is_not;
  }
  return wanted;
}

bool Isolation::selects() const {
  return std::ranges::any_of(patterns_, [](const std::string& pattern) { return !pattern.starts_with('!'); });
}

std::string Isolation::unmatched(const SeenNames& names) const {
  std::string list;
  for (const std::string& pattern : patterns_)
    if (!matches_any(std::string_view(pattern).substr(pattern.starts_with('!') ? 1 : 0), names))
      list += (list.empty() ? "\"" : ", \"") + pattern + "\"";
  return list;
}

std::string Isolation::text() const {
  return fmt::format("isolated|{}|{}", sandbox_, fmt::join(paths_, ":"));
}

std::string id_of_file(const std::filesystem::path& library) {
  constexpr std::string_view kPrefix = "libbackplane_";
  const std::string name = library.filename().string(), stem = name.substr(0, name.find(".so"));
  return stem.starts_with(kPrefix) ? stem.substr(kPrefix.size()) : stem;
}

Refusal open_isolated(const Opening& opening, const File& file, Backend& out) {
  isolate::Settings settings;
  if (Refusal refusal = find_helper("backplane-isolated", settings.program.file)) {
    refusal.text = fmt::format("{} cannot run in a process of its own: {}", opening.library.string(), refusal.text);
    return refusal;
  }
  settings.library = opening.library;
  settings.file = file.descriptor();
  settings.program.environment = minimal_environment();
  settings.program.arguments = {opening.library.string(), opening.isolation->sandbox()};
  for (const std::string& path : opening.isolation->paths()) settings.program.arguments.push_back(path);
  settings.limit = opening.probe.limit;
  isolate::Rejection rejection;
  auto library = isolate::Library::load(std::move(settings), rejection);
  if (!library) return {rejection.code, std::move(rejection.text)};
  out.isolated = std::move(library);  // the tables point into it, also if they are refused
  return negotiate(out.isolated->plugin(), opening.library.string(), opening.expected_id, *out.tables);
}

}  // namespace backplane
