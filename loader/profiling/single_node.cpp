// SPDX-License-Identifier: Apache-2.0
#include "profiling/single_node.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "base/dtype.h"
#include "ir/hash.h"
#include "place/cost.h"

namespace backplane {
namespace {

constexpr double kMaxBytes = 4e9;  // maximum for all inputs and outputs together

// For floating-point types of at least 16 bits: the bits of 0.5, and the bits that can be added without reaching 1.
struct FloatBits {
  bp_dtype_t dtype;
  uint64_t half, mantissa;
};
constexpr FloatBits kFloatBits[] = {
    {BP_DTYPE_FLOAT, 0x3f000000, 0x7fffff},
    {BP_DTYPE_DOUBLE, 0x3fe0000000000000, 0xfffffffffffff},
    {BP_DTYPE_FLOAT16, 0x3800, 0x3ff},
    {BP_DTYPE_BFLOAT16, 0x3f00, 0x7f},
};

void fill(bp_dtype_t dtype, char* data, uint64_t bytes) {
  const auto found = std::ranges::find(kFloatBits, dtype, &FloatBits::dtype);
  if (found == std::end(kFloatBits)) {
    std::memset(data, 0, bytes);
    return;
  }
  const uint64_t size = dtype_bits(dtype) / 8;
  uint64_t state = 1;
  for (uint64_t at = 0; at + size <= bytes; at += size) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t bits = found->half | (state >> 12 & found->mantissa);
    std::memcpy(data + at, &bits, size);  // little-endian
  }
}

// The opsets for which a node was written: those of the function in whose body it was, or of the model.
const std::map<std::string, uint32_t>& opsets_of(const model::Model& model, const model::Node& node) {
  if (node.call == BP_NONE) return model.opsets;
  const model::Node& call = model.graph.calls[node.call].node;
  for (const model::Function& function : model.functions)
    if (function.domain == call.domain && function.name == call.op_type && function.overload == call.overload)
      return function.opsets;
  return model.opsets;
}

}  // namespace

Result<SingleNode> SingleNode::of(const model::Model& model, const model::Node& node) {
  const model::Graph& from = model.graph;
  auto single = std::make_shared<model::Model>();
  single->ir_version = model.ir_version;
  single->opsets = opsets_of(model, node);
  single->storage = model.storage;
  single->origin = model.origin;
  single->next_id = model.next_id;
  single->hashes = std::make_shared<model::WeightHashes>();
  model::Graph& graph = single->graph;
  graph.symbols = from.symbols;
  graph.attribute_types = from.attribute_types;
  SingleNode result;

  std::map<model::ValueId, model::ValueId> number;
  const auto add = [&](model::ValueId value) {
    if (value == BP_NONE) return value;
    const auto [at, fresh] = number.try_emplace(value, static_cast<model::ValueId>(graph.values.size()));
    if (!fresh) return at->second;
    graph.values.push_back(from.values[value]);
    if (model::WeightId& weight = graph.values.back().weight; weight != BP_NONE) {
      graph.weights.push_back(from.weights[weight]);
      weight = static_cast<model::WeightId>(graph.weights.size() - 1);
    }
    return at->second;
  };
  model::Node& copy = graph.nodes.emplace_back(node);
  copy.call = BP_NONE;
  for (model::Attribute& attribute : copy.attributes) {
    if (attribute.type == BP_ATTR_GRAPH || attribute.type == BP_ATTR_GRAPHS ||
        attribute.type == BP_ATTR_SPARSE_TENSOR || attribute.type == BP_ATTR_SPARSE_TENSORS)
      return Status(BP_UNSUPPORTED, "attribute '" + attribute.name + "' refers to its graph and cannot be copied");
    if (attribute.type != BP_ATTR_TENSOR && attribute.type != BP_ATTR_TENSORS) continue;
    for (uint32_t& index : std::get<std::vector<uint32_t>>(attribute.data)) {
      graph.weights.push_back(from.weights[index]);
      index = static_cast<uint32_t>(graph.weights.size() - 1);
    }
  }
  double bytes = 0;
  std::set<model::ValueId> counted;  // an input may be used twice
  for (const auto* values : {&node.inputs, &node.outputs})
    for (const model::ValueId value : *values)
      if (value != BP_NONE && from.values[value].weight == BP_NONE && counted.insert(value).second)
        bytes += value_bytes(from, value);
  if (bytes > kMaxBytes) return Status(BP_UNSUPPORTED, "its inputs and outputs are together larger than 4 GB");
  for (model::ValueId& value : copy.inputs) {
    const bool seen = value == BP_NONE || number.contains(value) || from.values[value].weight != BP_NONE;
    if (!seen) BP_TRY(result.add_input(from, value));
    value = add(value);
    if (!seen) graph.inputs.push_back(value);
  }
  for (model::ValueId& value : copy.outputs)
    if ((value = add(value)) != BP_NONE) graph.outputs.push_back(value);
  result.model_ = std::move(single);
  return result;
}

Status SingleNode::add_input(const model::Graph& graph, model::ValueId id) {
  const model::Value& value = graph.values[id];
  const model::Type& type = value.type;
  if (type.kind != BP_KIND_TENSOR || dtype_bits(type.dtype) == 0 || type.rank < 0)
    return {BP_UNSUPPORTED, "input '" + value.name + "' is not a tensor of numbers of known rank"};
  const double bytes = value_bytes(graph, id);
  std::vector<int64_t>& extents = extents_.emplace_back();
  for (const bp_dim_t& dim : type.dims) extents.push_back(expected_extent(graph, dim));
  memory_.push_back(std::make_unique_for_overwrite<char[]>(static_cast<size_t>(bytes) + 1));
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = type.dtype;
  tensor.rank = static_cast<uint32_t>(extents.size());
  tensor.extents = extents.data();
  tensor.buffer.address = memory_.back().get();
  tensor.buffer.bytes = static_cast<uint64_t>(bytes);
  if (dtype_bits(type.dtype) % 8) tensor.buffer.bytes += 1;  // packed elements: the last byte may be partly filled
  fill(type.dtype, memory_.back().get(), tensor.buffer.bytes);
  inputs_.push_back(tensor);
  return {};
}

}  // namespace backplane
