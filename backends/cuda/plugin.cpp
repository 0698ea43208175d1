// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: all devices of NVIDIA's driver.
#include "driver/driver.h"
#include "engine/instance.h"
#include "ops/table.h"

namespace backplane::cuda {

class Backend final : public sdk::Backend {
 public:
  static constexpr sdk::About kAbout{"cuda", "CUDA", "Backplane", "1.0"};
  static constexpr auto& kOpsets = gpu::kNewestOpsets;
  static constexpr std::string_view kOptions[] = {"convolutions", "graphs", "products", "tile", "winograd"};
  static constexpr bool kNativeContexts = true;
  using Device = gpu::Device;
  using Program = gpu::Island;
  using Instance = gpu::Instance;
  using sdk::Backend::Backend;

  uint32_t device_count(std::string& why_none) override {
    devices_ = find_devices(why_none);
    return static_cast<uint32_t>(devices_.size());
  }
  bp_device_info_t device_info(uint32_t index) override { return devices_[index].caps.info(); }
  std::unique_ptr<sdk::Device> open(uint32_t index, const sdk::Options& options, const bp_device_open_t& how) override {
    options.allow({});
    return std::make_unique<Device>(*this, devices_[index].caps, std::make_unique<Driver>(devices_[index], how.native),
                                    gpu::table());
  }

 private:
  std::vector<FoundDevice> devices_;
};

}  // namespace backplane::cuda

BACKPLANE_PLUGIN(backplane::cuda::Backend)
