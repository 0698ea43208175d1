// SPDX-License-Identifier: Apache-2.0
// A cut begins at a node whose input shapes are declared or follow from its weights, and grows along the model.
#include "cases/model_cut.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "cases/graph_sampler.h"
#include "cases/model.h"
#include "judge/window.h"

namespace backplane::conform {
namespace {

constexpr int64_t kLargest = 2048;  // largest number of elements of a value, as in random graphs
constexpr double kMostWork = 2e6;   // largest sum of check() over the nodes of a cut: the oracle is slow

int64_t integer(const ModelNode& node, std::string_view name) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name == name) return std::get<int64_t>(attribute.value);
  }
  throw std::invalid_argument("no attribute " + std::string(name));
}

bool one_of(const std::string& op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool is_elementwise(const std::string& op) {
  return one_of(op, {"Add", "Sub", "Mul", "Div", "Sum", "Max", "Min", "Pow", "PRelu"});
}

class Cut {
 public:
  Cut(const Model& model, Random& random, const Recipe& recipe, uint32_t opset)
      : model_(model), sampler_(random, recipe, opset) {}

  // Grows a cut of at most `nodes` connected nodes from node `first`. Returns nullopt if `first` cannot be added, or if
  // no other node can.
  std::optional<Network> grow(size_t first, uint32_t nodes) {
    for (size_t n = first; n < model_.nodes.size() && sampler_.node_count() < nodes; ++n) {
      const ModelNode& node = model_.nodes[n];
      const auto in = [&](const auto& names) {
        return std::any_of(node.inputs.begin(), node.inputs.end(),
                           [&](const std::string& input) { return names.count(input) != 0; });
      };
      const bool behind = in(beyond_);
      if (!behind && !in(values_) && n != first) continue;
      if (!behind && node.usable && add(node)) continue;
      if (n == first) return std::nullopt;
      beyond_.insert(node.outputs.begin(), node.outputs.end());
    }
    if (sampler_.node_count() < 2) return std::nullopt;
    return std::move(sampler_).finish();
  }

 private:
  bool add(const ModelNode& node) {
    sampler_.start();
    const std::map<std::string, uint32_t> before = values_;
    try {
      std::vector<uint32_t> inputs(node.inputs.size(), BP_NONE);
      for (const bool outside : {false, true}) {  // values in the cut first: their shapes determine those of new inputs
        for (size_t i = 0; i < inputs.size(); ++i) {
          const std::string& name = node.inputs[i];
          if (name.empty() || inputs[i] != BP_NONE) continue;
          inputs[i] = outside ? add_outside_input(node, i, inputs) : known(name);
        }
      }
      const double work = check(node, inputs);
      if (work_ + work <= kMostWork && sampler_.add(node.op, inputs, node.attributes)) {
        work_ += work;
        values_[node.outputs[0]] = sampler_.last_value();
        return true;
      }
    } catch (const std::exception&) {  // the shapes do not fit at these extents
    }
    sampler_.undo();
    values_ = before;
    return false;
  }

  uint32_t known(const std::string& name) {
    const auto value = values_.find(name);
    if (value != values_.end()) return value->second;
    const auto weight = model_.weights.find(name);
    return weight == model_.weights.end() ? BP_NONE : values_[name] = sampler_.constant(weight->second);
  }

  uint32_t add_outside_input(const ModelNode& node, size_t operand, const std::vector<uint32_t>& inputs) {
    const std::string& name = node.inputs[operand];
    if (const uint32_t twice = known(name); twice != BP_NONE) return twice;
    if (const auto declared = model_.is_float.find(name); declared != model_.is_float.end() && !declared->second)
      throw std::invalid_argument("an input that is not a float");
    const auto shape = model_.shapes.find(name);
    const bool small = shape != model_.shapes.end() && count_of(shape->second) <= kLargest;
    Extents extents = small ? shape->second : what_fits(node, operand, inputs);
    if (extents.empty() || count_of(extents) > kLargest) throw std::invalid_argument("an input of unknown shape");
    return values_[name] = sampler_.input(std::move(extents));
  }

  // A shape for input `operand` that fits the known shapes of the other inputs; empty if they do not determine one.
  Extents what_fits(const ModelNode& node, size_t operand, const std::vector<uint32_t>& inputs) {
    const auto shape = [&](size_t i) {
      return i < inputs.size() && inputs[i] != BP_NONE ? sampler_.shape(inputs[i]) : Extents();
    };
    if (is_elementwise(node.op) || node.op == "Concat") {
      Extents like;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (shape(i).size() > like.size()) like = shape(i);
      }
      if (node.op == "Concat" || like.size() != 1) return like;
      return like[0] > 1 ? Extents{1, sampler_.random().integer(2, 6), like[0]} : Extents();
    }
    if (operand != 0) {
      if (node.op != "MatMul" || shape(0).size() < 2) return {};
      Extents other = shape(0);
      std::swap(other.back(), other[other.size() - 2]);
      return other;
    }
    const Extents second = shape(1);
    if (node.op == "Conv" && second.size() > 2) return around_kernel(node, second);
    if (one_of(node.op, {"BatchNormalization", "InstanceNormalization"}) && second.size() == 1) {
      const int64_t most = std::clamp<int64_t>(room_of(second[0], 2), 1, 8);
      return {1, second[0], sampler_.random().integer(1, most), sampler_.random().integer(1, most)};
    }
    if (node.op == "LayerNormalization" && second.size() == 1) return {1, sampler_.random().integer(2, 6), second[0]};
    if (node.op == "Gemm" && second.size() == 2 && integer(node, "transA") == 0)
      return {sampler_.random().integer(1, 4), second[integer(node, "transB") != 0 ? 1 : 0]};
    if (node.op == "MatMul" && second.size() == 2) return {1, sampler_.random().integer(2, 6), second[0]};
    return {};
  }

  // The largest extent of `axes` equal axes for which a value with this many channels has at most kLargest elements.
  static int64_t room_of(int64_t channels, size_t axes) {
    const auto positions = static_cast<double>(kLargest / std::max<int64_t>(1, channels));
    return static_cast<int64_t>(std::pow(positions, 1 / static_cast<double>(axes)));
  }

  // A shape [1, channels, spatial…] for the input of a convolution. The spatial extents are random, between half the
  // kernel's dilated extent and that extent plus 8, but at most room_of().
  Extents around_kernel(const ModelNode& node, const Extents& weight) {
    const Extents ones(weight.size() - 2, 1);
    const Call call({}, node.attributes, 1);
    const Extents dilations = call.ints("dilations", ones), group = {integer(node, "group")};
    require(all_within(dilations, 1, kLargest) && all_within(group, 1, kLargest));  // so that no product overflows
    const int64_t channels = weight[1] * group[0];
    Extents extents = {1, channels};
    const int64_t room = room_of(channels, ones.size());
    for (size_t i = 0; i < ones.size(); ++i) {
      const int64_t reach = (weight[i + 2] - 1) * dilations.at(i) + 1;
      const int64_t most = std::max<int64_t>(1, std::min(room, reach + 8));
      extents.push_back(sampler_.random().integer(std::min(most, (reach + 1) / 2), most));
    }
    return extents;
  }

  const Array& operand(const std::vector<uint32_t>& inputs, size_t i) const {
    require(i < inputs.size() && inputs[i] != BP_NONE);
    return sampler_.at(inputs[i]);
  }
  static void require(bool holds) {
    if (!holds) throw std::invalid_argument("operands that do not fit");
  }
  static bool all_within(const Extents& numbers, int64_t low, int64_t high) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int64_t x) { return x >= low && x <= high; });
  }

  // Throws std::invalid_argument if the operands do not fit the node or exceed the limits of a cut. Returns the number
  // of products that a Conv, MatMul or Gemm sums, or of elements that the windows of a pool read; 0 for other nodes.
  double check(const ModelNode& node, const std::vector<uint32_t>& inputs) const {
    const Array& x = operand(inputs, 0);
    const Extents& shape = x.extents;
    const auto of = [&](size_t i) { return operand(inputs, i).extents; };
    const Call call({}, node.attributes, 1);
    check_types(node, inputs);
    require(shape.size() <= 5);
    if (is_elementwise(node.op) || one_of(node.op, {"Where", "Equal", "Greater", "Less"})) {
      Extents all = shape;
      for (size_t i = 1; i < inputs.size(); ++i) all = broadcast(all, of(i));
      require(count_of(all) <= kLargest && (node.op != "PRelu" || all == shape));
    }
    if (node.op == "Clip") {
      for (size_t i = 1; i < inputs.size(); ++i) require(inputs[i] == BP_NONE || of(i).empty());
    }
    if (one_of(node.op, {"Conv", "MaxPool", "AveragePool"})) return check_window(node, inputs);
    if (one_of(node.op, {"BatchNormalization", "InstanceNormalization"})) {
      require(shape.size() > 2 && inputs.size() == (node.op == "BatchNormalization" ? 5 : 3));
      for (size_t i = 1; i < inputs.size(); ++i) require(of(i) == Extents{shape[1]});
    }
    if (node.op == "LayerNormalization") {
      require(!shape.empty() && integer(node, "axis") == -1);
      for (size_t i = 1; i < inputs.size(); ++i) require(of(i) == Extents{shape.back()});
    }
    if (node.op == "MatMul") {
      const Extents b = of(1);
      require(shape.size() > 1 && b.size() > 1 && shape.back() == b[b.size() - 2] && shape.back() > 0 && b.back() > 0);
      return static_cast<double>(x.count()) * static_cast<double>(count_of(b)) / static_cast<double>(shape.back());
    }
    if (node.op == "Gemm") {
      const Extents b = of(1);
      const size_t a_rows = integer(node, "transA") != 0 ? 1 : 0, b_rows = integer(node, "transB") != 0 ? 1 : 0;
      require(shape.size() == 2 && b.size() == 2 && shape[1 - a_rows] == b[b_rows]);
      const Extents result = {shape[a_rows], b[1 - b_rows]};
      require(inputs.size() < 3 || broadcast(result, of(2)) == result);
      return static_cast<double>(x.count()) * static_cast<double>(result[1]);
    }
    if (one_of(node.op, {"GlobalAveragePool", "GlobalMaxPool"})) require(shape.size() > 2);
    if (node.op == "Concat") {
      const auto axis = static_cast<size_t>(normal_axis(integer(node, "axis"), x.rank()));
      for (size_t i = 1; i < inputs.size(); ++i) {
        Extents other = of(i);
        require(other.size() == shape.size());
        other[axis] = shape[axis];
        require(other == shape);
      }
    }
    if (node.op == "Flatten") require(integer(node, "axis") >= -x.rank() && integer(node, "axis") <= x.rank());
    if (node.op == "Transpose" && !node.attributes.empty()) {
      const Extents perm = call.ints("perm");
      require(perm.size() == shape.size() && all_within(perm, 0, x.rank() - 1) &&
              std::set(perm.begin(), perm.end()).size() == perm.size());
    }
    check_places(node, inputs);
    return 0;
  }

  // Axes, indices and shapes must be constant INT64, and Where's condition BOOL; all other inputs must have one type.
  void check_types(const ModelNode& node, const std::vector<uint32_t>& inputs) const {
    const bool has_places = one_of(node.op, {"Expand", "Gather", "Reshape", "Slice", "Squeeze", "Unsqueeze"}) ||
                            node.op.starts_with("Reduce");
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == BP_NONE) continue;
      const bool condition = node.op == "Where" && i == 0;
      const bp_dtype_t dtype = operand(inputs, i).dtype;
      require(condition             ? dtype == BP_DTYPE_BOOL
              : has_places && i > 0 ? dtype == BP_DTYPE_INT64 && model_.weights.count(node.inputs[i]) != 0
                                    : dtype == operand(inputs, node.op == "Where" ? 1 : 0).dtype);
    }
  }

  // Checks the values of axes, indices and shapes.
  void check_places(const ModelNode& node, const std::vector<uint32_t>& inputs) const {
    const Array& x = operand(inputs, 0);
    const auto numbers = [&](size_t i) {
      Extents all;
      for (const double value : operand(inputs, i).values) all.push_back(whole(value));
      return all;
    };
    if (node.op == "Reshape") {
      Extents shape = numbers(1);
      require(shape.size() <= 5 && all_within(shape, -1, kLargest));
      for (size_t i = 0; i < shape.size(); ++i) {
        require(shape[i] != 0 || i < x.extents.size());
        if (shape[i] == 0) shape[i] = x.extents[i];
      }
      const auto guessed = std::count(shape.begin(), shape.end(), -1);
      std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{1});
      const int64_t known = count_of(shape);
      require(known > 0 && guessed <= 1 && (guessed == 1 ? x.count() % known == 0 : x.count() == known));
    }
    if (node.op == "Expand") {
      const Extents shape = numbers(1);
      require(shape.size() <= 5 && all_within(shape, 1, kLargest) && count_of(broadcast(x.extents, shape)) <= kLargest);
    }
    if (node.op == "Squeeze") {
      require(inputs.size() > 1);
      for (const int64_t axis : numbers(1)) require(x.extents[static_cast<size_t>(normal_axis(axis, x.rank()))] == 1);
    }
    if (node.op == "Unsqueeze") {
      const Extents axes = numbers(1);
      const auto rank = static_cast<int64_t>(axes.size() + x.extents.size());
      std::set<int64_t> unique;
      for (const int64_t axis : axes) unique.insert(normal_axis(axis, rank));
      require(rank <= 5 && unique.size() == axes.size());
    }
    if (node.op == "Gather") require(operand(inputs, 1).count() * x.count() <= kLargest * kLargest);
    if (node.op == "Slice") {
      const size_t axes = numbers(1).size();
      require(axes <= x.extents.size() && numbers(2).size() == axes);
      for (size_t i = 3; i < inputs.size(); ++i) require(inputs[i] == BP_NONE || numbers(i).size() == axes);
      if (inputs.size() > 3 && inputs[3] != BP_NONE) {
        for (const int64_t axis : numbers(3)) normal_axis(axis, x.rank());
      }
      if (inputs.size() > 4) require(all_within(numbers(4), 1, kLargest));
    }
  }

  double check_window(const ModelNode& node, const std::vector<uint32_t>& inputs) const {
    const Extents x = operand(inputs, 0).extents;
    const Call call({}, node.attributes, 1);
    const Extents kernel = call.ints("kernel_shape"), pads = call.ints("pads");
    const size_t axes = kernel.size();
    require(axes > 0 && x.size() == axes + 2 && call.ints("strides").size() == axes &&
            call.ints("dilations").size() == axes && (pads.empty() || pads.size() == 2 * axes));
    for (const char* name : {"kernel_shape", "strides", "dilations"}) require(all_within(call.ints(name), 1, kLargest));
    require(all_within(pads, 0, kLargest));
    const Window window(call, x, {});
    double work = 1;
    for (size_t i = 0; i < axes; ++i) {
      const int64_t reach = (kernel[i] - 1) * window.dilations[i] + 1;
      require(x[i + 2] + window.begin[i] + window.end[i] >= reach && window.out[i] > 0);
      work *= static_cast<double>(window.out[i]) * static_cast<double>(kernel[i]);
    }
    if (node.op != "Conv") return work * static_cast<double>(x[0] * x[1]);
    const int64_t group = integer(node, "group");
    const Extents w = operand(inputs, 1).extents;
    require(w.size() == x.size() && all_within({group}, 1, kLargest) && x[1] == w[1] * group && w[0] % group == 0 &&
            Extents(w.begin() + 2, w.end()) == kernel);
    require(inputs.size() < 3 || operand(inputs, 2).extents == Extents{w[0]});
    return work * static_cast<double>(x[0] * w[0] * w[1]);
  }

  const Model& model_;
  GraphSampler sampler_;
  std::map<std::string, uint32_t> values_;  // by name: the indices of the model's values in the cut
  std::set<std::string> beyond_;            // values that depend on the cut through nodes outside it
  double work_ = 0;
};

}  // namespace

std::optional<Network> cut_from(const Model& model, Random& random, uint32_t opset) {
  constexpr int kAttempts = 100;
  std::vector<size_t> places;
  for (size_t n = 0; n < model.nodes.size(); ++n) {
    if (model.nodes[n].usable) places.push_back(n);
  }
  for (int attempt = 0; attempt < kAttempts && !places.empty(); ++attempt) {
    const size_t first = places[static_cast<size_t>(random.integer(0, static_cast<int64_t>(places.size()) - 1))];
    const auto nodes = static_cast<uint32_t>(random.integer(2, 12));
    const Recipe recipe{nodes, BP_DTYPE_FLOAT};
    if (std::optional<Network> network = Cut(model, random, recipe, opset).grow(first, nodes)) return network;
  }
  return std::nullopt;
}

}  // namespace backplane::conform
