// SPDX-License-Identifier: Apache-2.0
#include "place/cost.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace backplane {
namespace {

constexpr double kOpenElements = 4096;
constexpr double kOpenBytes = 4096;
constexpr double kCopyLatency = 10e-6;
constexpr double kLinkBandwidth = 10e9;

// In operations per second, bytes per second and seconds. The rates are assumed for devices that report none. They are
// low, so that a device rarely looks slower for reporting its real rate. `operator_seconds` counts in every estimate.
struct DefaultSpeed {
  double flops, bandwidth, operator_seconds;
};
constexpr DefaultSpeed kDefaultSpeed[] = {
    {1e9, 2e9, 1e-6},     // unknown
    {20e9, 10e9, 1e-6},   // BP_DEVICE_CPU
    {2e12, 200e9, 5e-6},  // BP_DEVICE_GPU
    {1e12, 50e9, 5e-6},   // BP_DEVICE_NPU
    {100e9, 10e9, 5e-6},  // BP_DEVICE_FPGA
    {1e9, 2e9, 1e-6},     // BP_DEVICE_OTHER
};

// Operations per element of the result, for operators that `operations` has no formula for. Operators that are not
// listed count 1.
struct OperatorClass {
  std::string_view op_type;
  double operations;
};
constexpr OperatorClass kClasses[] = {
    {"BatchNormalization", 2},
    {"Erf", 20},
    {"Exp", 20},
    {"GRU", 1000},
    {"Gelu", 20},
    {"GroupNormalization", 8},
    {"LRN", 20},
    {"LSTM", 1000},
    {"LayerNormalization", 8},
    {"Log", 20},
    {"LogSoftmax", 25},
    {"Pow", 30},
    {"RMSNormalization", 6},
    {"RNN", 1000},
    {"Sigmoid", 20},
    {"Softmax", 25},
    {"Tanh", 20},
};

double elements(const model::Graph& graph, const model::Type& type) {
  if (type.rank < 0) return kOpenElements;
  double count = 1;
  for (const bp_dim_t& dim : type.dims) count *= static_cast<double>(expected_extent(graph, dim));
  return count;
}

// The least extent, as least_value_bytes counts it.
int64_t least_extent(const model::Graph& graph, const bp_dim_t& dim) {
  if (dim.extent >= 0) return dim.extent;
  return dim.symbol < graph.symbols.size() ? std::max<int64_t>(1, graph.symbols[dim.symbol].min) : 1;
}

// Bits per element; 0 if the value is not a tensor of numbers.
uint32_t bits_of(const model::Type& type) {
  return (type.kind != BP_KIND_TENSOR && type.kind != 0) || type.element ? 0 : dtype_bits(type.dtype);
}

double extent(const model::Graph& graph, model::ValueId value, int32_t axis) {
  if (value == BP_NONE) return 1;
  model::Type one = graph.values[value].type;
  if (axis < 0) axis += one.rank;
  if (axis < 0 || axis >= one.rank) return static_cast<double>(model::kOpenExtent);
  one.dims = {one.dims[axis]};
  one.rank = 1;
  return elements(graph, one);
}

}  // namespace

double value_bytes(const model::Graph& graph, model::ValueId value) {
  const model::Type& type = graph.values[value].type;
  const uint32_t bits = bits_of(type);
  return bits == 0 ? kOpenBytes : elements(graph, type) * bits / 8;
}

double least_value_bytes(const model::Graph& graph, model::ValueId value) {
  const model::Type& type = graph.values[value].type;
  double bytes = bits_of(type) / 8.0;
  for (const bp_dim_t& dim : type.dims) bytes *= static_cast<double>(least_extent(graph, dim));
  return bytes;
}

double operations(const model::Graph& graph, const model::Node& node) {
  double results = 0;
  for (model::ValueId value : node.outputs)
    if (value != BP_NONE) results += elements(graph, graph.values[value].type);
  const std::string_view op = node.op_type;
  if (op == "MatMul" || op == "MatMulInteger" || op == "QLinearMatMul")
    return 2 * results * extent(graph, node.input(0), -1);
  if (op == "Gemm") return 2 * results * extent(graph, node.input(0), node.attr("transA", int64_t{0}) ? 0 : 1);
  if (op.starts_with("Conv") || op == "QLinearConv") {
    const model::ValueId weight = node.input(op == "QLinearConv" ? 3 : 1);
    if (weight == BP_NONE) return results;
    return 2 * results * elements(graph, graph.values[weight].type) /
           std::max(1.0, extent(graph, weight, op == "ConvTranspose" ? 1 : 0));
  }
  if (op == "Attention" && node.input(0) != BP_NONE && node.input(1) != BP_NONE)
    return 4 * elements(graph, graph.values[node.input(0)].type) * extent(graph, node.input(1), -2);
  const auto found = std::ranges::find(kClasses, op, &OperatorClass::op_type);
  return results * (found == std::end(kClasses) ? 1 : found->operations);
}

double node_seconds(const model::Graph& graph, const model::Node& node, const NodeVerdict& verdict,
                    const bp_device_info_t& info) {
  if (verdict.seconds > 0 && std::isfinite(verdict.seconds)) return verdict.seconds;
  const DefaultSpeed& kind = kDefaultSpeed[info.kind < std::size(kDefaultSpeed) ? info.kind : 0];
  double bytes = 0;
  for (const auto* operands : {&node.inputs, &node.outputs})
    for (model::ValueId value : *operands)
      if (value != BP_NONE) bytes += value_bytes(graph, value);
  const double flops = info.flops_fp32 > 0 ? info.flops_fp32 : kind.flops;
  const double bandwidth = info.memory_bandwidth > 0 ? static_cast<double>(info.memory_bandwidth) : kind.bandwidth;
  return kind.operator_seconds + std::max(operations(graph, node) / flops, bytes / bandwidth);
}

bool in_host_memory(const Device& device) {
  return !device.backend().plugin->memory || device.info().kind == BP_DEVICE_CPU ||
         (device.info().flags & BP_DEVICE_UNIFIED_MEMORY);
}

bool can_copy_directly(const Device& from, const Device& to) {
  return to.reads_from(from);
}

namespace {

// Computes latency and bandwidth from the times of a small and a large copy. nullopt unless both were measured.
std::optional<CopyRate> measured_copy_rate(const Profile* profile, std::string_view from, std::string_view to) {
  if (!profile) return std::nullopt;
  const auto small = profile->find(profile_key_of_copy(from, to, kSmallCopy));
  const auto large = profile->find(profile_key_of_copy(from, to, kLargeCopy));
  if (!small || !large) return std::nullopt;
  CopyRate rate;
  rate.source = Source::kMeasured;
  rate.seconds_per_byte = std::max(0.0, *large - *small) / static_cast<double>(kLargeCopy - kSmallCopy);
  rate.seconds = std::max(0.0, *small - rate.seconds_per_byte * static_cast<double>(kSmallCopy));
  return rate;
}

}  // namespace

CopyRate copy_rate(const DeviceCoverage* from, const DeviceCoverage* to) {
  if (from && in_host_memory(*from->device)) from = nullptr;
  if (to && in_host_memory(*to->device)) to = nullptr;
  if (from == to) return {};
  // The rate of a copy between a device and the host: to the device if `in` is set, otherwise from it.
  const auto leg = [](const DeviceCoverage& one, bool in) {
    const std::string& name = one.device->name();
    if (const auto rate = measured_copy_rate(one.profile.get(), in ? "host" : name, in ? name : "host")) return *rate;
    const double reported = static_cast<double>(one.device->info().link_bandwidth);
    return CopyRate{kCopyLatency, 1 / (reported > 0 ? reported : kLinkBandwidth),
                    reported > 0 ? Source::kBackend : Source::kEstimate};
  };
  if (!from) return leg(*to, true);
  if (!to) return leg(*from, false);
  const CopyRate a = leg(*from, false), b = leg(*to, true);
  const Source source = std::min(a.source, b.source);
  if (!can_copy_directly(*from->device, *to->device))
    return {a.seconds + b.seconds, a.seconds_per_byte + b.seconds_per_byte, source};
  if (const auto rate = measured_copy_rate(from->profile.get(), from->device->name(), to->device->name())) return *rate;
  return {kCopyLatency, std::max(a.seconds_per_byte, b.seconds_per_byte), source};
}

double launch_seconds(const Device& device) {
  return static_cast<double>(device.info().launch_ns) * 1e-9;
}

}  // namespace backplane
