// SPDX-License-Identifier: Apache-2.0
// Graphs built in memory instead of read from a file.
//
//   backplane::Builder builder(21);
//   const uint32_t x = builder.input("x", BP_DTYPE_FLOAT, {-1, 4}, {"N", ""});
//   const uint32_t w = builder.weight("w", backplane::Tensor::of<float>({4, 2}, {…}));
//   builder.output(builder.node("MatMul", {x, w}));
//   const backplane::Model model = builder.finish();
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backplane/client/model.hpp"
#include "backplane/tensor.hpp"

namespace backplane {
inline namespace client {

class Builder;

// The value of an attribute. A pointer to a Builder stands for the body of a control-flow node, which takes the
// Builder's graph: the Builder is empty afterwards.
using AttributeValue = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                                    std::vector<std::string>, Tensor, const Builder*>;

// The parts of a node other than its operator and inputs. All are optional.
struct NodeOptions {
  std::map<std::string, AttributeValue> attributes;
  std::string name;
  std::string domain;
  uint32_t outputs = 1;
  std::vector<std::string> output_names;  // empty, or one for each output
};

// Values are numbered in order of creation. Tensors that are passed in are kept for as long as the model and its
// sessions need them, even after the Builder is destroyed. Use a Builder from one thread at a time.
class Builder {
 public:
  explicit Builder(uint32_t opset) : Builder(std::map<std::string, uint32_t>{{"", opset}}) {}
  // The opset version of each domain; "" is ONNX's own domain.
  explicit Builder(const std::map<std::string, uint32_t>& opsets) {
    std::vector<bp_opset_t> versions;
    for (const auto& opset : opsets) versions.push_back({view::text(opset.first), opset.second, 0});
    bp_builder_desc_t desc{};
    desc.size = sizeof desc;
    desc.opset_count = static_cast<uint32_t>(versions.size());
    desc.opsets = versions.data();
    desc.opset_stride = sizeof(bp_opset_t);
    auto owner = std::make_unique<std::shared_ptr<Kept>>(kept_);
    desc.self = owner.get();
    desc.release = [](void* self) { delete static_cast<std::shared_ptr<Kept>*>(self); };
    bp_builder_t* builder = nullptr;
    detail::call(api().builder_create, static_cast<bp_env_t*>(nullptr), &desc, &builder);
    static_cast<void>(owner.release());  // now owned by the loader
    builder_ = std::shared_ptr<bp_builder_t>(builder, api().builder_destroy);
  }
  // Returns a builder for a control-flow node's body. In the body, an input with the name of an outer value refers to
  // that value.
  Builder body() const {
    bp_builder_t* builder = nullptr;
    detail::call(api().builder_create_body, get(), &builder);
    return Builder(std::shared_ptr<bp_builder_t>(builder, api().builder_destroy), kept_);
  }

  // Adds a graph input. An extent of -1 is any extent. `symbols` is empty, or has a name for each dimension; dimensions
  // of the same name have the same extent, and an empty name stands for none.
  uint32_t input(std::string_view name, bp_dtype_t dtype, const std::vector<int64_t>& extents,
                 const std::vector<std::string>& symbols = {}) {
    std::vector<bp_text_t> names;
    for (const std::string& symbol : symbols) names.push_back(view::text(symbol));
    names.resize(symbols.empty() ? 0 : extents.size());
    bp_input_desc_t desc{};
    desc.size = sizeof desc;
    desc.dtype = dtype;
    desc.name = view::text(name);
    desc.extents = extents.data();
    desc.symbols = names.empty() ? nullptr : names.data();
    desc.rank = static_cast<uint32_t>(extents.size());
    uint32_t value = 0;
    detail::call(api().builder_input, get(), &desc, &value);
    return value;
  }
  uint32_t weight(std::string_view name, const Tensor& tensor) {
    const bp_tensor_t raw = keep(tensor);
    uint32_t value = 0;
    detail::call(api().builder_weight, get(), view::text(name), &raw, &value);
    return value;
  }
  // Adds a node. Returns its first output; its other outputs have the next numbers. An input of BP_NONE is omitted.
  uint32_t node(std::string_view op_type, const std::vector<uint32_t>& inputs, const NodeOptions& options = {}) {
    std::vector<Attribute> attributes;
    attributes.reserve(options.attributes.size());  // pointers to elements must stay valid
    std::vector<bp_attribute_t> raw;
    for (const auto& attribute : options.attributes) {
      attributes.emplace_back();
      raw.push_back(
          std::visit([&](const auto& value) { return attributes.back().hold(*this, value); }, attribute.second));
      raw.back().name = view::text(attribute.first);
    }
    std::vector<bp_text_t> names;
    for (const std::string& name : options.output_names) names.push_back(view::text(name));
    names.resize(names.empty() ? 0 : options.outputs);
    bp_node_desc_t desc{};
    desc.size = sizeof desc;
    desc.op_type = view::text(op_type);
    desc.domain = view::text(options.domain);
    desc.name = view::text(options.name);
    desc.inputs = inputs.data();
    desc.input_count = static_cast<uint32_t>(inputs.size());
    desc.output_count = options.outputs;
    desc.output_names = names.empty() ? nullptr : names.data();
    desc.attributes = raw.data();
    desc.attribute_count = static_cast<uint32_t>(raw.size());
    desc.attribute_stride = sizeof(bp_attribute_t);
    uint32_t value = 0;
    detail::call(api().builder_node, get(), &desc, &value);
    return value;
  }
  void output(uint32_t value) { detail::call(api().builder_output, get(), value); }
  // Checks and canonicalizes the graph. The builder is empty afterwards.
  Model finish() {
    bp_model_t* model = nullptr;
    detail::call(api().builder_finish, get(), &model);
    return Model(model);
  }
  bp_builder_t* get() const { return builder_.get(); }

 private:
  using Kept = std::vector<Tensor>;

  // Storage for what a bp_attribute_t points to. The elements of vectors of numbers and the bytes of strings are not
  // copied: the caller keeps the AttributeValue until the node is added.
  struct Attribute {
    int64_t integer = 0;
    float real = 0;
    std::vector<bp_text_t> texts;
    bp_tensor_t tensor{};
    const void* pointer = nullptr;

    bp_attribute_t hold(Builder&, int64_t value) {
      integer = value;
      return {{}, BP_ATTR_INT, 1, &integer};
    }
    bp_attribute_t hold(Builder&, float value) {
      real = value;
      return {{}, BP_ATTR_FLOAT, 1, &real};
    }
    bp_attribute_t hold(Builder&, const std::string& value) {
      texts.push_back(view::text(value));
      return {{}, BP_ATTR_STRING, 1, texts.data()};
    }
    bp_attribute_t hold(Builder&, const std::vector<int64_t>& values) {
      return {{}, BP_ATTR_INTS, static_cast<uint32_t>(values.size()), values.data()};
    }
    bp_attribute_t hold(Builder&, const std::vector<float>& values) {
      return {{}, BP_ATTR_FLOATS, static_cast<uint32_t>(values.size()), values.data()};
    }
    bp_attribute_t hold(Builder&, const std::vector<std::string>& values) {
      for (const std::string& value : values) texts.push_back(view::text(value));
      return {{}, BP_ATTR_STRINGS, static_cast<uint32_t>(texts.size()), texts.data()};
    }
    bp_attribute_t hold(Builder& builder, const Tensor& value) {
      tensor = builder.keep(value);
      pointer = &tensor;
      return {{}, BP_ATTR_TENSOR, 1, &pointer};
    }
    bp_attribute_t hold(Builder&, const Builder* body) {
      pointer = body->get();
      return {{}, BP_ATTR_GRAPH, 1, &pointer};
    }
  };

  Builder(std::shared_ptr<bp_builder_t> builder, std::shared_ptr<Kept> kept)
      : builder_(std::move(builder)), kept_(std::move(kept)) {}
  bp_tensor_t keep(const Tensor& tensor) {
    kept_->push_back(tensor);
    return kept_->back().abi();
  }

  std::shared_ptr<bp_builder_t> builder_;
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();  // shared with the model and with the builders of bodies
};

}  // namespace client
}  // namespace backplane
