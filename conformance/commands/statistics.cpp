// SPDX-License-Identifier: Apache-2.0
#include "commands/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onnx/number.h"

namespace backplane::conform {
namespace {

double number(const onnx::Tensor& tensor, uint64_t i) {
  return onnx::number_at(tensor, i).real();
}

bool is_any_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

}  // namespace

std::optional<Distribution> distribution_of(const view::Graph& graph) {
  const std::vector<view::Node> nodes = graph.nodes();
  if (nodes.size() == 1 && nodes[0].op_type() == "Bernoulli") return Distribution::kBernoulli;
  if (nodes.size() == 1 && nodes[0].op_type() == "Dropout") return Distribution::kDropout;
  // ONNX's expansion of Bernoulli compares a uniform random number with x.
  std::optional<Distribution> distribution;
  for (const view::Node& node : nodes) {
    if (is_any_of(node.op_type(), {"RandomUniformLike", "Cast"})) continue;
    if (distribution || !is_any_of(node.op_type(), {"Greater", "Less"})) return std::nullopt;
    const uint32_t first = node.input(0).raw().producer;
    const bool draw_is_first = first != BP_NONE && graph.node(first).op_type() == "RandomUniformLike";
    distribution =
        draw_is_first == (node.op_type() == "Less") ? Distribution::kBernoulli : Distribution::kBernoulliRest;
  }
  return distribution;
}

bool is_seeded(const view::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const view::Node& node) { return node.attribute("seed") != nullptr; });
}

Draws::Draws(Distribution distribution, const std::vector<onnx::Value>& inputs) : distribution_(distribution) {
  if (inputs.empty() || inputs[0].kind != BP_KIND_TENSOR) throw onnx::Malformed("the test data has no input 0");
  x_ = inputs[0].tensor;
  if (distribution_ != Distribution::kDropout || inputs.size() < 2) return;
  const onnx::Tensor& ratio = inputs[1].tensor;
  if (ratio.count() != 1 || !onnx::is_inexact(ratio.dtype)) throw onnx::Malformed("input 1 is not a ratio");
  ratio_ = number(ratio, 0);
}

std::string Draws::add(const std::vector<onnx::Value>& outputs) {
  return distribution_ == Distribution::kDropout ? add_dropout(outputs) : add_bernoulli(outputs.at(0).tensor);
}

std::string Draws::add_bernoulli(const onnx::Tensor& y) {
  for (uint64_t i = 0; i < y.count(); ++i) {
    const double x = number(x_, i), p = distribution_ == Distribution::kBernoulli ? x : 1 - x, seen = number(y, i);
    if (seen != 0 && seen != 1) return fmt::format("element {} is {}, neither 0 nor 1", i, seen);
    if ((p <= 0 && seen != 0) || (p >= 1 && seen != 1))
      return fmt::format("element {} is {} with probability {}", i, seen, p);
    seen_ += seen;
    mean_ += p;
    variance_ += p * (1 - p);
  }
  return {};
}

std::string Draws::add_dropout(const std::vector<onnx::Value>& outputs) {
  const onnx::Tensor& y = outputs.at(0).tensor;
  for (uint64_t i = 0; i < y.count(); ++i) {
    const double x = number(x_, i), seen = number(y, i), kept = x / (1 - ratio_);
    const bool is_kept = outputs.size() > 1 ? number(outputs[1].tensor, i) != 0 : seen != 0;
    if (is_kept ? std::abs(seen - kept) > 1e-3 * std::abs(kept) + 1e-7 : seen != 0)
      return fmt::format("element {} is {}; for input {} it must be 0 if dropped or {} if kept", i, seen, x, kept);
    if (x == 0 && outputs.size() < 2) continue;  // for x = 0, kept and dropped look the same
    seen_ += is_kept ? 1 : 0;
    mean_ += 1 - ratio_;
    variance_ += ratio_ * (1 - ratio_);
  }
  return {};
}

std::string Draws::fault() const {
  if (std::abs(seen_ - mean_) <= 5 * std::sqrt(variance_)) return {};
  return fmt::format("{} elements are ones or kept; expected {:.1f} with a standard deviation of {:.1f}", seen_, mean_,
                     std::sqrt(variance_));
}

}  // namespace backplane::conform
