// SPDX-License-Identifier: Apache-2.0
#include "list_page.h"

#include <fmt/format.h>

#include "cli/printable.h"
#include "cli/xml.h"
#include "embedded_files.h"

namespace backplane::tools {
namespace {

// Escapes text for HTML. It comes from plugins and manifests, which are not trusted.
std::string escaped(const std::string& text) {
  return cli::xml(cli::printable(text));
}

using Rows = std::vector<std::vector<std::string>>;

std::string table(const std::vector<std::string>& heads, const Rows& rows) {
  if (rows.empty()) return "<p>none</p>\n";
  std::string out = "<div class=\"wide\"><table>\n<tr>";
  for (const std::string& head : heads) out += fmt::format("<th>{}</th>", head);
  out += "</tr>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) out += fmt::format("<td class=\"{}\">{}</td>", heads[i], escaped(row[i]));
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string list_page(const Json& report) {
  Rows devices, accepted, refused;
  for (const Json& device : report.at("devices")) {
    devices.push_back({cell(device.at("name")), cell(device.at("kind")), cell(device.at("description")),
                       cell(device.at("driver")), cell(device.at("arch")), bytes_text(device.at("memory_bytes")),
                       join(device.at("dtypes"), ", ")});
  }
  for (const Json& candidate : report.at("candidates")) {
    const bool has_library = !candidate.at("library").get<std::string>().empty();
    const std::string file = cell(candidate.at(has_library ? "library" : "manifest"));
    if (candidate.at("accepted")) {
      accepted.push_back({cell(candidate.at("id")), cell(candidate.at("abi")), file, cell(candidate.at("found_by"))});
    } else {
      refused.push_back({cell(candidate.at("id")), cell(candidate.at("reason")), cell(candidate.at("text")), file});
    }
  }
  const std::string body =
      fmt::format("<p>Backplane {}, ABI {}</p>\n<h2>Devices</h2>\n{}<h2>Backends</h2>\n{}<h2>Refused</h2>\n{}",
                  escaped(cell(report.at("loader").at("version"))), escaped(cell(report.at("loader").at("abi"))),
                  table({"device", "kind", "description", "driver", "architecture", "memory", "types"}, devices),
                  table({"backend", "ABI", "file", "found by"}, accepted),
                  table({"backend", "reason", "what to do", "file"}, refused));
  constexpr std::string_view kPlace = "<!-- BACKPLANE_LIST -->";
  std::string page(embedded_file("list.html"));
  return page.replace(page.find(kPlace), kPlace.size(), body);
}

}  // namespace backplane::tools
