// SPDX-License-Identifier: Apache-2.0
// Sequences, optionals and maps as inputs and outputs of programs.
#include <cstring>
#include <utility>

#include "checks/group.h"
#include "host/container.h"

namespace backplane::conform {
namespace {

onnx::Tensor floats(const std::vector<int64_t>& extents, const std::vector<float>& values) {
  onnx::Tensor tensor{BP_DTYPE_FLOAT, extents, std::vector<std::byte>(values.size() * sizeof(float))};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

std::string int_key(int64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// Calls `visit` for each tensor, with the path of indices and keys that leads to it.
template <class Visit>
void walk(const bp_container_t& container, const std::string& path, const Visit& visit) {
  for (size_t i = 0; i < container.elements.size(); ++i) {
    const bp_container_t::Element& element = container.elements[i];
    int64_t number = 0;
    if (element.key.size() == sizeof number) std::memcpy(&number, element.key.data(), sizeof number);
    const std::string here = path + (element.key.empty() ? fmt::format("[{}]", i) : fmt::format("{{{}}}", number));
    if (element.child != nullptr)
      walk(*element.child, here, visit);
    else
      visit(here, element.tensor);
  }
}

// Formats a container as "[0]{7} float[1,2]=1,2, …".
std::string describe(const bp_container_t& container) {
  std::string text;
  walk(container, "", [&](const std::string& path, const onnx::Tensor& tensor) {
    const auto* const values = reinterpret_cast<const float*>(tensor.bytes.data());
    text += fmt::format("{} {}=", path, onnx::describe(tensor));
    for (size_t i = 0; i < tensor.bytes.size() / sizeof(float); ++i) text += fmt::format("{},", values[i]);
    text += ' ';
  });
  return text;
}

// A graph of one node with a container as input or output. The values of `spec` describe the container's elements.
struct Call {
  GraphSpec spec;
  std::vector<std::pair<uint32_t, bp_dtype_t>> input = {}, output = {};  // kind and key type, innermost first
  bp_container_t given = {}, expected = {};                              // a plain tensor is stored as the only element
};

GraphSpec one_node(std::string domain, std::string op_type, uint32_t since, const std::vector<int64_t>& input,
                   const std::vector<int64_t>& output, Attributes attributes = {}) {
  GraphSpec spec;
  spec.values.push_back({.extents = input});
  spec.values.push_back({.extents = output});
  spec.nodes.push_back({.op_type = std::move(op_type),
                        .domain = std::move(domain),
                        .since_version = since,
                        .inputs = {0},
                        .outputs = {1},
                        .attributes = std::move(attributes)});
  spec.inputs = {0};
  spec.outputs = {1};
  spec.opset = 18;
  return spec;
}

void add(bp_container_t& container, onnx::Tensor tensor, std::string key = "") {
  container.elements.push_back({std::move(key), std::move(tensor), nullptr});
}

bp_container_t& add_child(bp_container_t& container) {
  container.elements.push_back({"", {}, std::make_unique<bp_container_t>()});
  return *container.elements.back().child;
}

// SequenceErase removes the last element.
Call sequence() {
  Call call{.spec = one_node("", "SequenceErase", 11, {2}, {2})};
  call.input = call.output = {{BP_KIND_SEQUENCE, 0}};
  for (const float v : {1.0f, 2.0f, 3.0f}) add(call.given, floats({2}, {v, -v}));
  for (const float v : {1.0f, 2.0f}) add(call.expected, floats({2}, {v, -v}));
  return call;
}

// OptionalGetElement takes a sequence out of an optional.
Call optional() {
  Call call{.spec = one_node("", "OptionalGetElement", 18, {2}, {2})};
  call.output = {{BP_KIND_SEQUENCE, 0}};
  call.input = {{BP_KIND_SEQUENCE, 0}, {BP_KIND_OPTIONAL, 0}};
  bp_container_t& inside = add_child(call.given);
  for (bp_container_t* sequence : {&inside, &call.expected}) {
    add(*sequence, floats({2}, {4, 5}));
    add(*sequence, floats({2}, {6, 7}));
  }
  return call;
}

// DictVectorizer lists a map's values in the order of the vocabulary, with 0 for keys that the map lacks.
Call map() {
  Call call{.spec = one_node("ai.onnx.ml", "DictVectorizer", 1, {}, {1, 3},
                             {{"int64_vocabulary", std::vector<int64_t>{30, 20, 10}}})};
  call.input = {{BP_KIND_MAP, BP_DTYPE_INT64}};
  add(call.given, floats({}, {1}), int_key(10));
  add(call.given, floats({}, {3}), int_key(30));
  add(call.expected, floats({1, 3}, {3, 0, 1}));
  return call;
}

// ZipMap returns one map for each row.
Call maps() {
  Call call{.spec =
                one_node("ai.onnx.ml", "ZipMap", 1, {2, 2}, {}, {{"classlabels_int64s", std::vector<int64_t>{7, 8}}})};
  call.output = {{BP_KIND_MAP, BP_DTYPE_INT64}, {BP_KIND_SEQUENCE, 0}};
  add(call.given, floats({2, 2}, {1, 2, 3, 4}));
  for (const float v : {1.0f, 3.0f}) {
    bp_container_t& row = add_child(call.expected);
    add(row, floats({}, {v}), int_key(7));
    add(row, floats({}, {v + 1}), int_key(8));
  }
  return call;
}

Result check(Bench& bench, Call call) {
  const Device& device = bench.device();
  Graph graph(call.spec);
  for (const auto& [kind, key] : call.input) graph.contain(0, kind, key);
  for (const auto& [kind, key] : call.output) graph.contain(1, kind, key);
  std::vector<Claim> claims;
  if (const Answer answer = device.coverage(graph, claims); !answer.ok()) return failed(answer.describe());
  if (claims[0].answer != BP_ANSWER_YES)
    return not_supported(fmt::format("reason {}: {}", claims[0].reason, claims[0].detail));
  Answer answer;
  const auto program = Program::compile(device, graph, answer);
  const auto instance = program == nullptr ? nullptr : Instance::create(*program, answer);
  if (instance == nullptr) return failed(answer.describe());
  std::unique_ptr<Memory> x, y;
  if (call.input.empty()) {
    x = std::make_unique<Memory>(device, call.given.elements[0].tensor);
    answer = instance->bind(0, *x);
  } else {
    answer = instance->bind(0, call.given);
  }
  if (!answer.ok()) return failed(answer.describe());
  bp_container_t result;
  if (call.output.empty()) {
    y = std::make_unique<Memory>(device, BP_DTYPE_FLOAT, call.expected.elements[0].tensor.extents);
    answer = instance->bind(BP_SLOT_OUTPUT, *y);
  } else {
    answer = instance->bind(BP_SLOT_OUTPUT, result);
  }
  if (!answer.ok()) return failed(answer.describe());
  const std::string expected = describe(call.expected);
  for (int run = 0; run < 2; ++run) {  // the second run finds the container that the first one filled
    if (answer = instance->run(); !answer.ok()) return failed(answer.describe());
    if (y != nullptr) {
      result.elements.clear();
      add(result, y->read());
    }
    if (const std::string seen = describe(result); seen != expected)
      return failed(fmt::format("run {} writes {}, not {}", run + 1, seen, expected));
  }
  return passed(1);
}

}  // namespace

void add_containers(const Selection&, std::vector<Case>& out_cases) {
  out_cases.push_back({"programs/sequence", [](Bench& bench) { return check(bench, sequence()); }});
  out_cases.push_back({"programs/optional", [](Bench& bench) { return check(bench, optional()); }});
  out_cases.push_back({"programs/map", [](Bench& bench) { return check(bench, map()); }});
  out_cases.push_back({"programs/maps", [](Bench& bench) { return check(bench, maps()); }});
}

}  // namespace backplane::conform
