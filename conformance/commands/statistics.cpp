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

// The tensor of an operand that is an input of the graph, or a cast of one; NULL for all other operands.
const onnx::Tensor* given(const view::Graph& graph, view::Value operand, const std::vector<onnx::Value>& inputs) {
  if (!operand) return nullptr;
  const uint32_t producer = operand.raw().producer;
  if (producer != BP_NONE && graph.node(producer).op_type() == "Cast") operand = graph.node(producer).input(0);
  for (uint32_t i = 0; i < graph.input_count() && i < inputs.size(); ++i) {
    const bool is_known = inputs[i].kind == BP_KIND_TENSOR && view::dtype_bits(inputs[i].tensor.dtype) != 0;
    if (is_known && graph.input(i).index() == operand.index()) return &inputs[i].tensor;
  }
  return nullptr;
}

// Whether the operand is drawn uniformly from [0, 1).
bool is_draw(const view::Graph& graph, const view::Value& operand) {
  if (!operand || operand.raw().producer == BP_NONE) return false;
  const view::Node node = graph.node(operand.raw().producer);
  return node.op_type() == "RandomUniformLike" && node.float_attribute("low", 0) == 0 &&
         node.float_attribute("high", 1) == 1;
}

// Dropout draws only in training mode; otherwise y is x and the mask is true.
std::optional<Draws> dropout(const view::Graph& graph, const view::Node& node, const std::vector<onnx::Value>& inputs) {
  const onnx::Tensor *const x = given(graph, node.input(0), inputs), *const ratio = given(graph, node.input(1), inputs),
                            *const training = given(graph, node.input(2), inputs);
  if (x == nullptr || training == nullptr || training->count() != 1 || number(*training, 0) == 0) return std::nullopt;
  if (!node.input(1)) return Draws(Distribution::kDropout, *x);
  if (ratio == nullptr || ratio->count() != 1 || !onnx::is_inexact(ratio->dtype)) return std::nullopt;
  return Draws(Distribution::kDropout, *x, number(*ratio, 0));
}

}  // namespace

bool is_seeded(const view::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const view::Node& node) { return node.attribute("seed") != nullptr; });
}

std::optional<Draws> draws_of(const view::Graph& graph, const std::vector<onnx::Value>& inputs) {
  const std::vector<view::Node> nodes = graph.nodes();
  if (nodes.size() == 1 && nodes[0].op_type() == "Dropout") return dropout(graph, nodes[0], inputs);
  if (nodes.size() == 1 && nodes[0].op_type() == "Bernoulli") {
    const onnx::Tensor* const x = given(graph, nodes[0].input(0), inputs);
    return x == nullptr ? std::nullopt : std::optional(Draws(Distribution::kBernoulli, *x));
  }
  // ONNX's expansion of Bernoulli compares a uniform random number with x.
  std::optional<Draws> draws;
  for (const view::Node& node : nodes) {
    if (is_any_of(node.op_type(), {"RandomUniformLike", "Cast"})) continue;
    if (draws || !is_any_of(node.op_type(), {"Greater", "Less"})) return std::nullopt;
    const bool draw_is_first = is_draw(graph, node.input(0));
    if (draw_is_first == is_draw(graph, node.input(1))) return std::nullopt;
    const onnx::Tensor* const x = given(graph, node.input(draw_is_first ? 1 : 0), inputs);
    if (x == nullptr) return std::nullopt;
    draws.emplace(draw_is_first == (node.op_type() == "Less") ? Distribution::kBernoulli : Distribution::kBernoulliRest,
                  *x);
  }
  return draws;
}

std::string Draws::add(const std::vector<onnx::Value>& outputs) {
  for (const onnx::Value& output : outputs) {
    if (output.kind != BP_KIND_TENSOR || output.tensor.count() != x_.count())
      throw onnx::Malformed(
          fmt::format("the test data has an output that does not have the {} elements of the input", x_.count()));
  }
  return distribution_ == Distribution::kDropout ? add_dropout(outputs) : add_bernoulli(outputs.at(0).tensor);
}

std::string Draws::add_bernoulli(const onnx::Tensor& y) {
  for (uint64_t i = 0; i < y.count(); ++i) {
    const double x = number(x_, i), p = distribution_ == Distribution::kBernoulli ? x : 1 - x, seen = number(y, i);
    if (seen != 0 && seen != 1) return fmt::format("element {} is {}, neither 0 nor 1", i, seen);
    if ((p <= 0 && seen != 0) || (p >= 1 && seen != 1))
      return fmt::format("element {} is {}, but is 1 with probability {}", i, seen, p);
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
    if (is_kept ? !(std::abs(seen - kept) <= 1e-3 * std::abs(kept) + 1e-7) : seen != 0)
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
