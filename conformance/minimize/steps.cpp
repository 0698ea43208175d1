// SPDX-License-Identifier: Apache-2.0
#include "minimize/steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "judge/array.h"
#include "minimize/minimize.h"
#include "onnx/number.h"

namespace backplane::conform {
namespace {

bool keep_one_output(const Network& candidate, const Attempt& attempt) {
  if (candidate.spec.outputs.size() < 2) return false;
  for (const uint32_t output : candidate.spec.outputs) {
    Network smaller = candidate;
    smaller.spec.outputs = {output};
    if (attempt(std::move(smaller))) return true;
  }
  return false;
}

// Makes the output of one node the only output. Takes the earliest node with which the graph still fails.
bool end_earlier(const Network& candidate, const Attempt& attempt) {
  for (const NodeSpec& node : candidate.spec.nodes) {
    for (const uint32_t output : node.outputs) {
      if (output == BP_NONE) continue;
      Network smaller = candidate;
      smaller.spec.outputs = {output};
      if (attempt(std::move(smaller))) return true;
    }
  }
  return false;
}

// Replaces a computed value by an input, trying the latest values first.
bool begin_later(const Network& candidate, const Attempt& attempt) {
  const std::vector<onnx::Tensor> values = computed_values(candidate);
  for (size_t i = candidate.spec.nodes.size(); i-- > 0;) {
    for (const uint32_t output : candidate.spec.nodes[i].outputs) {
      if (output == BP_NONE) continue;
      Network smaller = candidate;
      std::erase(smaller.spec.nodes[i].outputs, output);
      if (!smaller.spec.nodes[i].outputs.empty()) continue;  // a node with several outputs cannot lose just one of them
      smaller.spec.nodes.erase(smaller.spec.nodes.begin() + static_cast<std::ptrdiff_t>(i));
      smaller.spec.inputs.push_back(output);
      smaller.inputs.push_back(values[output]);
      if (attempt(std::move(smaller))) return true;
    }
  }
  return false;
}

// Removes a node. Its readers instead read an input of the removed node that has its output's type and shape.
bool bypass_node(const Network& candidate, const Attempt& attempt) {
  const GraphSpec& graph = candidate.spec;
  for (const NodeSpec& node : graph.nodes) {
    for (const uint32_t input : node.inputs) {
      const uint32_t output = node.outputs[0];
      if (input == BP_NONE || output == BP_NONE || graph.values[input].dtype != graph.values[output].dtype ||
          graph.values[input].extents != graph.values[output].extents) {
        continue;
      }
      Network smaller = candidate;
      for (NodeSpec& reader : smaller.spec.nodes) std::ranges::replace(reader.inputs, output, input);
      std::ranges::replace(smaller.spec.outputs, output, input);
      if (attempt(std::move(smaller))) return true;
    }
  }
  return false;
}

// Returns the first `extent` entries along an axis.
onnx::Tensor slice(const onnx::Tensor& tensor, size_t axis, int64_t extent) {
  onnx::Tensor out{tensor.dtype, tensor.extents, {}};
  out.extents[axis] = extent;
  uint64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<uint64_t>(tensor.extents[i]);
  const uint64_t row = tensor.bytes.size() / outer;  // in bytes; can_slice excludes elements smaller than a byte
  const uint64_t kept = row / static_cast<uint64_t>(tensor.extents[axis]) * static_cast<uint64_t>(extent);
  for (uint64_t i = 0; i < outer; ++i)
    out.bytes.insert(out.bytes.end(), tensor.bytes.begin() + static_cast<std::ptrdiff_t>(i * row),
                     tensor.bytes.begin() + static_cast<std::ptrdiff_t>(i * row + kept));
  return out;
}

bool can_slice(const onnx::Tensor& tensor) {
  return tensor.dtype != BP_DTYPE_STRING && tensor.count() != 0 && tensor.bytes.size() % tensor.count() == 0;
}

// Calls `visit` with every input and weight.
template <class F>
void for_each_given(Network& candidate, F visit) {
  for (onnx::Tensor& input : candidate.inputs) visit(input);
  for (ValueSpec& value : candidate.spec.values) {
    if (!value.weight) continue;
    visit(*value.weight);
    value.extents = value.weight->extents;
  }
}

// Replaces `from` by `to` in all int64 tensors and integer lists, because some of them hold shapes.
void replace_number(Network& candidate, int64_t from, int64_t to) {
  for_each_given(candidate, [&](onnx::Tensor& tensor) {
    if (tensor.dtype != BP_DTYPE_INT64) return;
    for (size_t at = 0; at < tensor.bytes.size(); at += sizeof from) {
      if (std::memcmp(&tensor.bytes[at], &from, sizeof from) == 0) std::memcpy(&tensor.bytes[at], &to, sizeof to);
    }
  });
  for (NodeSpec& node : candidate.spec.nodes) {
    for (Attribute& attribute : node.attributes) {
      if (auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) std::ranges::replace(*ints, from, to);
    }
  }
}

// Reduces an extent to 1, to its half or by one, in one of three scopes: in one tensor, in all tensors, or in all
// tensors and all integers that equal the extent.
bool shrink_extents(const Network& candidate, const Attempt& attempt) {
  Network copy = candidate;
  std::set<int64_t> extents;
  size_t given = 0;
  for_each_given(copy, [&](const onnx::Tensor& tensor) {
    extents.insert(tensor.extents.begin(), tensor.extents.end());
    ++given;
  });
  for (auto extent = extents.rbegin(); extent != extents.rend() && *extent > 1; ++extent) {
    for (const int64_t smaller : std::set<int64_t>{1, *extent / 2, *extent - 1}) {
      for (size_t only = 0; only <= given + 1;
           ++only) {  // a tensor's index; `given`: all; `given` + 1: all, and integers
        Network next = candidate;
        size_t number = 0;
        for_each_given(next, [&](onnx::Tensor& tensor) {
          if ((only < given && only != number++) || !can_slice(tensor)) return;
          for (size_t axis = 0; axis < tensor.extents.size(); ++axis) {
            if (tensor.extents[axis] == *extent) tensor = slice(tensor, axis, smaller);
          }
        });
        if (only == given + 1) replace_number(next, *extent, smaller);
        if (attempt(std::move(next))) return true;
      }
    }
  }
  return false;
}

// Sets an attribute, or all integers of its list, to 0 or to 1.
bool plain_attributes(const Network& candidate, const Attempt& attempt) {
  for (size_t n = 0; n < candidate.spec.nodes.size(); ++n) {
    for (size_t a = 0; a < candidate.spec.nodes[n].attributes.size(); ++a) {
      for (const int plain : {0, 1}) {
        Network next = candidate;
        auto& value = next.spec.nodes[n].attributes[a].value;
        if (auto* i = std::get_if<int64_t>(&value))
          *i = plain;
        else if (auto* f = std::get_if<float>(&value))
          *f = static_cast<float>(plain);
        else if (auto* ints = std::get_if<std::vector<int64_t>>(&value))
          std::ranges::fill(*ints, plain);
        else
          continue;
        if (attempt(std::move(next))) return true;
      }
    }
  }
  return false;
}

// Sets all floating-point elements of a tensor to 1 or to 0, or rounds those of a magnitude below 1.5 to integers.
bool plain_elements(const Network& candidate, const Attempt& attempt) {
  using Change = double (*)(double);
  constexpr Change kChanges[] = {[](double) { return 1.0; }, [](double) { return 0.0; },
                                 [](double x) { return std::fabs(x) < 1.5 ? std::nearbyint(x) : x; }};
  Network copy = candidate;
  size_t given = 0;
  for_each_given(copy, [&](const onnx::Tensor&) { ++given; });
  for (size_t chosen = 0; chosen < given; ++chosen) {
    for (const Change change : kChanges) {
      Network next = candidate;
      size_t number = 0;
      for_each_given(next, [&](onnx::Tensor& tensor) {
        if (chosen != number++ || !onnx::is_inexact(tensor.dtype)) return;
        Array array = to_array(tensor);
        for (double& x : array.values) x = change(x);
        tensor = to_tensor(array);
      });
      if (attempt(std::move(next))) return true;
    }
  }
  return false;
}

constexpr Step kSteps[] = {
    {"keep one output", keep_one_output}, {"end earlier", end_earlier},       {"begin later", begin_later},
    {"bypass a node", bypass_node},       {"shrink extents", shrink_extents}, {"plain attributes", plain_attributes},
    {"plain elements", plain_elements},
};

}  // namespace

std::span<const Step> steps() {
  return kSteps;
}

}  // namespace backplane::conform
