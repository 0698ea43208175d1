// SPDX-License-Identifier: Apache-2.0
// What tests of the public C++ client share: backends by file, graphs in a few lines, the error of a call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backplane/client.hpp"

namespace backplane {

inline Environment environment(std::vector<std::string> files, std::map<std::string, std::string> options = {}) {
  EnvironmentOptions how;
  how.backend_files = std::move(files);
  how.only_given = true;
  how.options = std::move(options);
  return Environment(how);
}

// A thin wrapper of the C builder.
class Graph {
 public:
  explicit Graph(uint32_t opset = 27) {
    const bp_opset_t version{{"", 0}, opset, 0};
    detail::call(api().builder_create, static_cast<bp_env_t*>(nullptr), &version, 1u,
                 static_cast<uint32_t>(sizeof version), &builder_);
  }
  ~Graph() { api().builder_destroy(builder_); }

  uint32_t input(const std::string& name, bp_dtype_t dtype, std::vector<int64_t> extents,
                 const std::vector<std::string>& symbols = {}) {
    std::vector<bp_text_t> names;
    for (const std::string& symbol : symbols) names.push_back(view::text(symbol));
    uint32_t value = 0;
    detail::call(api().builder_input, builder_, view::text(name), dtype, static_cast<uint32_t>(extents.size()),
                 static_cast<const int64_t*>(extents.data()),
                 static_cast<const bp_text_t*>(names.empty() ? nullptr : names.data()), &value);
    return value;
  }
  uint32_t weight(const std::string& name, const Tensor& tensor) {
    weights_.push_back(tensor);
    const bp_tensor_t raw = tensor.abi();
    uint32_t value = 0;
    detail::call(api().builder_weight, builder_, view::text(name), &raw, &value);
    return value;
  }
  uint32_t node(const std::string& op, const std::string& name, std::vector<uint32_t> inputs,
                const std::map<std::string, int64_t>& numbers = {}) {
    std::vector<bp_attribute_t> attributes;
    for (const auto& [key, number] : numbers) attributes.push_back({view::text(key), BP_ATTR_INT, 1, &number});
    const bp_text_t output = view::text(name);
    bp_node_desc_t desc{};
    desc.size = sizeof desc;
    desc.op_type = view::text(op);
    desc.name = view::text(name);
    desc.inputs = inputs.data();
    desc.input_count = static_cast<uint32_t>(inputs.size());
    desc.output_count = 1;
    desc.output_names = &output;
    desc.attributes = attributes.data();
    desc.attribute_count = static_cast<uint32_t>(attributes.size());
    desc.attribute_stride = sizeof(bp_attribute_t);
    uint32_t value = 0;
    detail::call(api().builder_node, builder_, &desc, &value);
    return value;
  }
  Model finish(const std::vector<uint32_t>& outputs) {
    for (uint32_t output : outputs) detail::call(api().builder_output, builder_, output);
    bp_model_t* model = nullptr;
    detail::call(api().builder_finish, builder_, &model);
    return Model(model, std::make_shared<std::vector<Tensor>>(weights_));
  }

 private:
  bp_builder_t* builder_ = nullptr;
  std::vector<Tensor> weights_;  // the model refers to them
};

// The error that a call throws.
template <class Call>
Error failure(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(BP_OK, "nothing was thrown");
}

}  // namespace backplane
