// SPDX-License-Identifier: Apache-2.0
// Reads a model's own fields, its opsets and its functions.
#include <algorithm>

#include "import/parser.h"

namespace backplane::model {

std::string_view Parser::text(Reader& reader, const char* what) {
  const std::string_view view = reader.get_view();
  if (!is_utf8(view)) malformed(std::string(what) + ", " + std::to_string(view.size()) + " bytes long, is not UTF-8");
  return view;
}

void Parser::parse_model() {
  namespace f = field::model;
  Reader reader(bytes_);
  std::vector<Reader> functions;
  std::vector<Reader> graphs;
  while (reader.next()) {
    if (reader.tag() == f::kIrVersion && is_varint(reader)) {
      model_.ir_version = reader.get_int64();
    } else if (reader.tag() == f::kModelVersion && is_varint(reader)) {
      model_.version = reader.get_int64();
    } else if (!is_bytes(reader)) {
      reader.skip();
    } else if (reader.tag() == f::kProducerName) {
      model_.producer = text(reader, "the producer's name");
    } else if (reader.tag() == f::kProducerVersion) {
      model_.producer_version = text(reader, "the producer's version");
    } else if (reader.tag() == f::kDomain) {
      model_.domain = text(reader, "the model's domain");
    } else if (reader.tag() == f::kDocString) {
      model_.doc = text(reader, "the model's doc string");
    } else if (reader.tag() == f::kOpsetImport) {
      parse_opset(reader.get_message(), model_.opsets);
    } else if (reader.tag() == f::kMetadataProps) {
      Reader property = reader.get_message();
      std::pair<std::string, std::string> pair;
      while (property.next()) {
        if (is_bytes(property) && property.tag() == field::entry::kKey) {
          pair.first = text(property, "a metadata key");
        } else if (is_bytes(property) && property.tag() == field::entry::kValue) {
          pair.second = text(property, "a metadata value");
        } else {
          property.skip();
        }
      }
      charge(sizeof pair + pair.first.size() + pair.second.size());
      model_.metadata.push_back(std::move(pair));
    } else if (reader.tag() == f::kFunctions) {
      charge(sizeof(Function) + sizeof(Graph));
      functions.push_back(reader.get_message());
    } else if (reader.tag() == f::kGraph) {
      charge(sizeof(Reader));
      graphs.push_back(reader.get_message());
    } else if (reader.tag() == f::kTrainingInfo) {
      model_.note("training information is ignored: only inference is run");
      reader.skip();
    } else {
      reader.skip();
    }
  }
  if (graphs.empty()) malformed("no graph was found: this is not an ONNX model, or it is truncated");
  if (graphs.size() > 1) malformed("the model has " + std::to_string(graphs.size()) + " graphs instead of one");
  if (model_.opsets.empty() && model_.ir_version < 3) model_.opsets[""] = 1;  // these IR versions do not state an opset
  parse_graph(graphs.front(), model_.graph, nullptr, 0);
  for (const Reader& function : functions) model_.functions.push_back(parse_function(function));
  model_.next_id = std::max(next_node_, next_weight_) + 1;
}

void Parser::parse_opset(Reader reader, std::map<std::string, uint32_t>& opsets) {
  std::string_view domain;
  int64_t version = 0;
  while (reader.next()) {
    if (reader.tag() == field::opset::kDomain && is_bytes(reader)) {
      domain = text(reader, "an operator set's domain");
    } else if (reader.tag() == field::opset::kVersion && is_varint(reader)) {
      version = reader.get_int64();
    } else {
      reader.skip();
    }
  }
  if (domain == "ai.onnx") domain = "";
  if (version < 1 || version > INT32_MAX) {
    malformed("opset version " + std::to_string(version) + " of " + std::string(domain_name(domain)) +
              " is invalid: it must be from 1 to 2147483647");
  }
  charge(128 + domain.size());  // a node of the std::map
  const auto [place, added] = opsets.emplace(domain, static_cast<uint32_t>(version));
  if (!added && place->second != version) {
    malformed("two versions of the opset of " + std::string(domain_name(domain)) +
              " are imported: " + std::to_string(place->second) + " and " + std::to_string(version));
  }
}

Function Parser::parse_function(Reader reader) {
  namespace f = field::function;
  Function function;
  function.body = std::make_unique<Graph>();
  Graph& body = *function.body;
  Scope scope{body, nullptr, {}};
  std::vector<Reader> nodes, defaults;
  std::vector<std::string_view> outputs;
  while (reader.next()) {
    charge(sizeof(Reader));
    if (!is_bytes(reader)) {
      reader.skip();
    } else if (reader.tag() == f::kName) {
      function.name = text(reader, "a function's name");
    } else if (reader.tag() == f::kDomain) {
      function.domain = text(reader, "a function's domain");
    } else if (reader.tag() == f::kOverload) {
      function.overload = text(reader, "a function's overload");
    } else if (reader.tag() == f::kInput) {
      const std::string_view name = text(reader, "a function's input");
      charge(sizeof(std::string_view) + sizeof(std::string) + name.size());
      function.inputs.emplace_back(name);
      body.inputs.push_back(declare(name, scope));
    } else if (reader.tag() == f::kOutput) {
      outputs.push_back(text(reader, "a function's output"));
    } else if (reader.tag() == f::kAttribute) {
      const std::string_view name = text(reader, "a function's attribute");
      charge(sizeof(std::string) + name.size());
      function.attributes.emplace_back(name);
    } else if (reader.tag() == f::kAttributeProto) {
      defaults.push_back(reader.get_message());
    } else if (reader.tag() == f::kNode) {
      nodes.push_back(reader.get_message());
    } else if (reader.tag() == f::kOpsetImport) {
      parse_opset(reader.get_message(), function.opsets);
    } else {
      reader.skip();
    }
  }
  if (function.domain == "ai.onnx") function.domain.clear();
  body.name = function.name;
  parse_nodes(nodes, scope, 1);
  for (const std::string_view name : outputs) {
    charge(sizeof(std::string) + name.size());
    function.outputs.emplace_back(name);
    body.outputs.push_back(resolve(name, scope));
  }
  for (const Reader& attribute : defaults) {
    function.attribute_defaults.push_back(parse_attribute(attribute, scope, false, 1));
  }
  return function;
}

}  // namespace backplane::model
