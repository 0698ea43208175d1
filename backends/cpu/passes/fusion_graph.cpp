// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion_graph.h"

#include <cmath>

namespace backplane::cpu {

FusionGraph::FusionGraph(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
                         const std::vector<bool>& known)
    : graph_(graph), calls_(calls), values_(values), known_(known), taken_(calls.size()) {
  auto each_read = [&](auto f) {
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].skipped) continue;
      for (uint32_t value : calls_[i].inputs) {
        if (value != BP_NONE) f(value, i);
      }
    }
  };
  kept_.assign(values.size(), false);
  for (uint32_t o = 0; o < graph.output_count; ++o) kept_[graph.outputs[o]] = true;
  maker_.assign(values.size(), BP_NONE);
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    for (uint32_t value : calls_[i].outputs) {
      if (value != BP_NONE) maker_[value] = i;
    }
  }
  read_first_.assign(values.size() + 1, 0);
  each_read([&](uint32_t value, uint32_t) { ++read_first_[value + 1]; });
  for (size_t v = 0; v < values.size(); ++v) read_first_[v + 1] += read_first_[v];
  readers_.resize(read_first_.back());
  std::vector<uint32_t> next(read_first_.begin(), read_first_.end());
  each_read([&](uint32_t value, uint32_t call) { readers_[next[value]++] = call; });
}

std::string_view FusionGraph::op_type(uint32_t call) const {
  const Node n = node(call);
  return !taken_[call] && !calls_[call].skipped && n.domain().empty() ? n.op_type() : std::string_view();
}

bool FusionGraph::is(uint32_t call, std::initializer_list<std::string_view> op_types) const {
  return std::ranges::find(op_types, op_type(call)) != op_types.end();
}

uint32_t FusionGraph::sole_reader(uint32_t value, std::initializer_list<std::string_view> op_types) const {
  std::span<const uint32_t> all = readers(value);
  if (kept_[value] || all.size() != 1) return BP_NONE;
  return is(all[0], op_types) ? all[0] : BP_NONE;
}

uint32_t FusionGraph::producer(uint32_t value, std::initializer_list<std::string_view> op_types) const {
  const uint32_t call = value == BP_NONE ? BP_NONE : maker_[value];
  return call != BP_NONE && is(call, op_types) ? call : BP_NONE;
}

bool FusionGraph::reads(uint32_t call, uint32_t value) const {
  return call != BP_NONE && std::ranges::find(calls_[call].inputs, value) != calls_[call].inputs.end();
}

uint32_t FusionGraph::other(uint32_t call, uint32_t value) const {
  std::span<const uint32_t> in = calls_[call].inputs;
  if (in.size() != 2 || in[0] == in[1]) return BP_NONE;
  return in[0] == value ? in[1] : in[0];
}

std::optional<float> FusionGraph::known_scalar(uint32_t value) const {
  if (!known(value)) return std::nullopt;
  const Tensor& t = values_[value];
  if (t.dtype != BP_DTYPE_FLOAT || t.shape.elements() != 1) return std::nullopt;
  return *t.as<float>();
}

bool FusionGraph::is_scalar(uint32_t value, double wanted) const {
  const std::optional<float> known = known_scalar(value);
  return known && std::fabs(static_cast<double>(*known) - wanted) < 1e-4 * std::fabs(wanted);
}

int64_t FusionGraph::extent(uint32_t value, int32_t dim) const {
  const bp_type_t& t = type(value);
  return dim >= 0 && dim < t.rank ? graph_.dims[t.first_dim + static_cast<uint32_t>(dim)].extent : -1;
}

bool FusionGraph::same_extents(uint32_t a, uint32_t b) const {
  const bp_type_t &ta = type(a), &tb = type(b);
  if (ta.rank < 0 || ta.rank != tb.rank) return false;
  for (int32_t d = 0; d < ta.rank; ++d) {
    if (!same_extent(ta, d, tb, d)) return false;
  }
  return true;
}

bool FusionGraph::same_extent(const bp_type_t& a, int32_t a_dim, const bp_type_t& b, int32_t b_dim) const {
  const bp_dim_t& da = graph_.dims[a.first_dim + static_cast<uint32_t>(a_dim)];
  const bp_dim_t& db = graph_.dims[b.first_dim + static_cast<uint32_t>(b_dim)];
  if (da.extent >= 0) return da.extent == db.extent;
  return da.symbol != BP_NONE && da.symbol == db.symbol && db.extent < 0;
}

void FusionGraph::replace(std::span<const uint32_t> joined, std::unique_ptr<Kernel> kernel,
                          std::vector<uint32_t> operands) {
  for (uint32_t i : joined) {
    taken_[i] = true;
    calls_[i].skipped = i != joined.back();
  }
  Call& last = calls_[joined.back()];
  last.kernel = std::move(kernel);
  last.reads = std::move(operands);
  last.inputs = last.reads;
}

}  // namespace backplane::cpu
