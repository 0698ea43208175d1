// SPDX-License-Identifier: Apache-2.0
// A backend built when ai.onnx was at version 26. It supports Range-11 for int64. Version 27 gave Range an attribute
// and more types. The output's extent depends on data, so the backend requests its memory during the run.
#include "backplane/sdk.hpp"

namespace old_backend {

using namespace backplane::sdk;

struct Kernel {};

Verdict integers(const Node& node) {
  if (node.raw().attribute_count != 0) return no(BP_REASON_ATTRIBUTE, "version 11 of Range has no attributes");
  if (node.input(0).dtype() != BP_DTYPE_INT64) return no(BP_REASON_DTYPE, "input 0 must be int64");
  return yes(1e-6, 0.1f);
}

constexpr Op<Kernel> kRows[] = {
    {"", "Range", 11, integers, [](const Node&) { return std::make_unique<Kernel>(); }},
};
const OpTable<Kernel> kTable(kRows);

class Instance : public backplane::sdk::Instance {
 public:
  using backplane::sdk::Instance::Instance;
  void run(const bp_run_t& run) override {
    const auto scalar = [&](uint32_t i) { return *static_cast<const int64_t*>(address(input(i))); };
    const int64_t start = scalar(0), limit = scalar(1), delta = scalar(2);
    const int64_t count = delta > 0 && limit > start ? (limit - start + delta - 1) / delta : 0;
    bp_tensor_t out{};
    out.size = sizeof out;
    if (const bp_status_t status = run.output(run.self, BP_SLOT_OUTPUT, 1, &count, 0, &out); status != BP_OK)
      throw Error(status, "the host provided no memory for the output of " + std::to_string(count) + " numbers");
    for (int64_t i = 0; i < count; ++i) static_cast<int64_t*>(address(out))[i] = start + i * delta;
  }
};

class Program : public backplane::sdk::Program {
 public:
  Program(const backplane::sdk::Device& device, const Compile& what) : backplane::sdk::Program(device, what) {
    if (graph().node_count() != 1)
      throw Error(BP_UNSUPPORTED, "the island has " + std::to_string(graph().node_count()) +
                                      " nodes; this backend compiles a single Range");
  }
  std::unique_ptr<backplane::sdk::Instance> instance() const override { return std::make_unique<Instance>(*this); }
  bp_program_info_t info() const override {
    bp_program_info_t info{};
    info.shapes = BP_SHAPES_DATA_DEPENDENT;
    return info;
  }
};

class Device : public backplane::sdk::Device {
 public:
  using backplane::sdk::Device::Device;
  void cover(Coverage& coverage) override { kTable.answer(coverage); }
  std::unique_ptr<backplane::sdk::Program> compile(const Compile& what) override {
    return std::make_unique<Program>(*this, what);
  }
};

class Backend : public backplane::sdk::Backend {
 public:
  static constexpr About kAbout{"old", "Built for version 26", "Backplane", "1.0"};
  static constexpr bp_opset_t kOpsets[] = {{{"", 0}, 26, 0}};
  using Device = old_backend::Device;
  using Program = old_backend::Program;
  using Instance = old_backend::Instance;
  using backplane::sdk::Backend::Backend;

  uint32_t device_count(std::string&) override { return 1; }
  bp_device_info_t device_info(uint32_t) override {
    bp_device_info_t info{};
    info.kind = BP_DEVICE_OTHER;
    info.flags = BP_DEVICE_SYNCHRONOUS;
    info.name = text("old");
    info.dtypes = uint64_t{1} << BP_DTYPE_INT64;
    return info;
  }
  std::unique_ptr<backplane::sdk::Device> open(uint32_t, const Options&, const bp_device_open_t&) override {
    return std::make_unique<Device>(*this);
  }
};

}  // namespace old_backend

BACKPLANE_PLUGIN(old_backend::Backend)
