// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/overwrite.h"
#include "cli/whole_file.h"
#include "command.h"
#include "list_page.h"

namespace backplane::tools {
namespace {

std::string render(const Json& report) {
  std::string text =
      fmt::format("Backplane {}, ABI {}", cell(report.at("loader").at("version")), cell(report.at("loader").at("abi")));
  if (const Json& topology = report.at("topology"); topology.is_object()) {
    text += fmt::format(" on {} cores, {} NUMA nodes, {}", cell(topology.at("cores")), cell(topology.at("numa_nodes")),
                        bytes_text(topology.at("memory_bytes")));
  }
  Table devices, accepted, refused;
  for (const Json& device : report.at("devices")) {
    devices.row({cell(device.at("name")), cell(device.at("kind")), cell(device.at("description")),
                 cell(device.at("arch")), bytes_text(device.at("memory_bytes"))});
  }
  for (const Json& candidate : report.at("candidates")) {
    const std::string file =
        cell(candidate.at("library").get<std::string>().empty() ? candidate.at("manifest") : candidate.at("library"));
    const std::string id = candidate.at("id").get<std::string>().empty() ? "?" : cell(candidate.at("id"));
    if (candidate.at("accepted")) {
      accepted.row({id, fmt::format("ABI {}", cell(candidate.at("abi"))), file});
    } else {
      refused.row({id, cell(candidate.at("reason")), cell(candidate.at("text"))});
    }
  }
  const auto section = [&](std::string_view title, const Table& table) {
    const std::string rows = table.text();
    text += fmt::format("\n{}\n{}", title, rows.empty() ? "  none\n" : rows);
  };
  text += '\n';
  section("Devices", devices);
  section("Backends", accepted);
  if (!refused.text().empty()) section("Refused", refused);
  if (report.at("candidates").empty()) text += "\nNo backend was found: backplane why ID lists the places searched\n";
  return text;
}

// One line for each device, and a last line with the number of refused candidates, if there are any.
std::string summary(const Json& report) {
  Table devices;
  for (const Json& device : report.at("devices"))
    devices.row({cell(device.at("name")), cell(device.at("kind")), cell(device.at("description"))});
  size_t refused = 0;
  for (const Json& candidate : report.at("candidates")) refused += candidate.at("accepted") ? 0 : 1;
  return devices.text("") + (refused == 0 ? "" : fmt::format("{} refused: see backplane list\n", refused));
}

struct Flags {
  EnvironmentFlags environment;
  bool summary = false;
  std::string html;
};

Action declare(cli::Command command) {
  const auto flags = std::make_shared<Flags>();
  flags->environment.declare(command);
  command.add_flag("--summary", flags->summary, "One line for each device");
  command.add_option("--html", flags->html, "Also write the list as a page").shown_as("FILE");
  return [flags] {
    cli::keep_inputs("--html", flags->html, flags->environment.backends);
    Outcome outcome;
    outcome.json = parse_json(flags->environment.make(true).report());
    outcome.text = flags->summary ? summary(outcome.json) : render(outcome.json);
    if (!flags->html.empty()) {
      cli::keep_inputs("--html", flags->html, cli::mapped_files());
      cli::write_file(flags->html, list_page(outcome.json));
      outcome.text += fmt::format("{} written\n", flags->html);
    }
    outcome.is_positive = !outcome.json["devices"].empty();
    return outcome;
  };
}

}  // namespace

extern const Verb list_verb = {"list", "lists backends, devices, and every refused candidate with the reason", declare};

}  // namespace backplane::tools
