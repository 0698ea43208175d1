// SPDX-License-Identifier: Apache-2.0
// A backend for an operator and a function of its vendor's own domain, com.acme. ONNX defines neither:
// - The loader passes the operator Shift on unchanged and queries the device for its output type (`infer`).
// - The loader offers a call of the function Twice, whose body is in the model, as one node first. This device claims
//   it whole and runs it with its own kernel. A device that refuses the call would be offered the nodes of the body.
#include <functional>

#include "backplane/sdk.hpp"

using namespace backplane;

namespace acme {

using Kernel = std::function<void(const sdk::NodeCall& call)>;

// Checks only the input, because the output has no type until the loader has called `infer`. The loader does not know
// the operator, so the model may omit the input.
sdk::Verdict floats(const sdk::Node& node) {
  const view::Value x = node.input(0);
  return sdk::expect(node)
      .inputs(1)
      .outputs(1)
      .input_dtype(0, sdk::one(BP_DTYPE_FLOAT))
      .that(x && x.has_static_shape(), BP_REASON_SHAPE, "the input's shape is not known")
      .yes(1e-9, 0.3f);
}

// Computes y = x + by.
std::unique_ptr<Kernel> shift(const sdk::Node& node) {
  const float by = node.float_attribute("by", 1);
  return std::make_unique<Kernel>([by](const sdk::NodeCall& call) {
    for (uint64_t i = 0; i < call.count(); ++i) call.output<float>(0)[i] = call.input<float>(0)[i] + by;
  });
}

// The model defines Twice(x) = Add(x, x).
std::unique_ptr<Kernel> twice(const sdk::Node&) {
  return std::make_unique<Kernel>([](const sdk::NodeCall& call) {
    for (uint64_t i = 0; i < call.count(); ++i) call.output<float>(0)[i] = 2 * call.input<float>(0)[i];
  });
}

constexpr sdk::Op<Kernel> kRows[] = {{"com.acme", "Shift", 1, floats, shift}, {"com.acme", "Twice", 1, floats, twice}};
constexpr bp_opset_t kOpsets[] = {{{"com.acme", 8}, 1, 0}};
const sdk::OpTable<Kernel> kOps(kRows, kOpsets);

struct Device : sdk::Device {
  using sdk::Device::Device;
  void cover(sdk::Coverage& coverage) override { kOps.answer(coverage); }
  // The output has the type of the input.
  void infer(const sdk::Node& node, const sdk::Types& types) override {
    const view::Value x = node.input(0);
    std::vector<bp_dim_t> dims;
    for (int32_t i = 0; i < x.rank(); ++i)
      dims.push_back(node.graph()->dims[x.type().first_dim + static_cast<uint32_t>(i)]);
    if (x.rank() < 0) return types.output_of_unknown_rank(0, x.dtype());
    types.output(0, x.dtype(), dims);
  }
  std::unique_ptr<sdk::Program> compile(const sdk::Compile& what) override {
    return std::make_unique<sdk::NodeProgram<Kernel>>(*this, what,
                                                      [](const sdk::Node& node) { return kOps.create(node); });
  }
};

struct Backend : sdk::Backend {
  static constexpr sdk::About kAbout{"acme", "Acme", "Acme Inc.", "1.0"};
  static constexpr auto& kOpsets = acme::kOpsets;
  using Device = acme::Device;
  using Program = sdk::NodeProgram<Kernel>;
  using Instance = sdk::Instance;
  using sdk::Backend::Backend;

  uint32_t device_count(std::string&) override { return 1; }
  bp_device_info_t device_info(uint32_t) override {
    bp_device_info_t info{};
    info.kind = BP_DEVICE_NPU;
    info.flags = BP_DEVICE_SYNCHRONOUS | BP_DEVICE_UNIFIED_MEMORY;
    info.name = view::text("Acme's device");
    info.dtypes = sdk::one(BP_DTYPE_FLOAT);
    return info;
  }
  std::unique_ptr<sdk::Device> open(uint32_t, const sdk::Options&, const bp_device_open_t&) override {
    return std::make_unique<Device>(*this);
  }
};

}  // namespace acme

BACKPLANE_PLUGIN(acme::Backend)
