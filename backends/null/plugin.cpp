// SPDX-License-Identifier: Apache-2.0
// The backend and its one device.
#include "ops.h"

namespace null_backend {

using namespace backplane::sdk;

class Device : public backplane::sdk::Device {
 public:
  using backplane::sdk::Device::Device;
  void cover(Coverage& coverage) override { kOps.answer(coverage); }
  std::unique_ptr<Program> compile(const Compile& what) override {
    what.options().allow({});
    return std::make_unique<NodeProgram<Kernel>>(*this, what, [](const Node& node) { return kOps.create(node); });
  }
};

class Backend : public backplane::sdk::Backend {
 public:
  static constexpr About kAbout{"null", "Null", "Backplane", "1.0"};
  static constexpr auto& kOpsets = null_backend::kOpsets;
  static constexpr std::array<std::string_view, 0> kOptions = {};
  using Device = null_backend::Device;
  using Program = NodeProgram<Kernel>;
  using Instance = backplane::sdk::Instance;
  using backplane::sdk::Backend::Backend;

  uint32_t device_count(std::string&) override { return 1; }
  bp_device_info_t device_info(uint32_t) override {
    bp_device_info_t info{};
    info.kind = BP_DEVICE_OTHER;
    info.flags = BP_DEVICE_SYNCHRONOUS | BP_DEVICE_UNIFIED_MEMORY | BP_DEVICE_DETERMINISTIC;
    info.name = text("Null device: one thread, plain loops");
    info.vendor = text("Backplane");
    info.driver = text("1.0");
    info.launch_ns = 1000;
    info.dtypes = one(BP_DTYPE_FLOAT);
    return info;
  }

  std::unique_ptr<backplane::sdk::Device> open(uint32_t, const Options& options, const bp_device_open_t&) override {
    options.allow({});
    return std::make_unique<Device>(*this);
  }
};

}  // namespace null_backend

BACKPLANE_PLUGIN(null_backend::Backend)
