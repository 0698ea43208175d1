// SPDX-License-Identifier: Apache-2.0
#include "explain_page.h"

#include "embedded_files.h"

namespace backplane::tools {
namespace {

// The edges of the graph: each value's producer and readers. A reader is a node and the number of the input that reads
// the value; the number is null if a subgraph of the node reads the value.
Json values(view::Graph graph) {
  Json out = Json::array();
  const auto index = [](uint32_t i) { return i == BP_NONE ? Json(nullptr) : Json(i); };
  for (uint32_t i = 0; i < graph.raw()->value_count; ++i) {
    const view::Value value = graph.value(i);
    const bp_value_t& raw = value.raw();
    Json uses = Json::array();
    for (uint32_t u = raw.first_use; u < raw.first_use + raw.use_count; ++u) {
      uses.push_back({graph.raw()->uses[u].node, index(graph.raw()->uses[u].slot)});
    }
    out.push_back({{"name", value.name()},
                   {"type", type_text(value)},
                   {"weight", value.weight() != nullptr},
                   {"input", (raw.flags & BP_VALUE_INPUT) != 0},
                   {"output", (raw.flags & BP_VALUE_OUTPUT) != 0},
                   {"producer", index(raw.producer)},
                   {"uses", std::move(uses)}});
  }
  return out;
}

}  // namespace

std::string explain_page(const std::string& model_file, const Json& report, view::Graph graph) {
  constexpr std::string_view kPlace = "\"BACKPLANE_REPORT\"";
  const Json all = {{"model", model_file}, {"report", report}, {"values", values(graph)}};
  // Escapes "<" in the data, so that no name in a model can end the script element or start another one.
  std::string data;
  for (const char c : all.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<') {
      data += "\\u003c";
    } else {
      data += c;
    }
  }
  std::string page(embedded_file("explain.html"));
  return page.replace(page.find(kPlace), kPlace.size(), data);
}

}  // namespace backplane::tools
