// SPDX-License-Identifier: Apache-2.0
// The OpenCL backend: every usable device of every OpenCL platform.
#include "driver/driver.h"
#include "engine/instance.h"
#include "ops/table.h"

namespace backplane::opencl {

class Backend final : public sdk::Backend {
 public:
  static constexpr sdk::About kAbout{"opencl", "OpenCL", "Backplane", "1.0"};
  static constexpr auto& kOpsets = gpu::kNewestOpsets;
  static constexpr std::string_view kOptions[] = {"binaries", "memory", "tile", "winograd"};
  static constexpr bool kNativeContexts = true;
  using Device = gpu::Device;
  using Program = gpu::Island;
  using Instance = gpu::Instance;
  using sdk::Backend::Backend;

  uint32_t device_count(std::string& why_none) override {
    devices_ = find_devices(why_none);
    const bool own_memory = chosen("memory", "shared", "own"), drivers_keep = chosen("binaries", "kept", "driver");
    for (FoundDevice& device : devices_) {
      device.caps.unified = device.caps.unified && !own_memory;
      device.caps.binaries = !drivers_keep;
    }
    return static_cast<uint32_t>(devices_.size());
  }
  bp_device_info_t device_info(uint32_t index) override { return devices_[index].caps.info(); }
  std::unique_ptr<sdk::Device> open(uint32_t index, const sdk::Options& options, const bp_device_open_t& how) override {
    options.allow({});
    return std::make_unique<Device>(*this, devices_[index].caps, std::make_unique<Driver>(devices_[index], how.native),
                                    gpu::table());
  }

 private:
  // Returns true if the option has the value `other`, and false if it has the value `usual` or is not set. Throws
  // sdk::Error for any other value.
  bool chosen(const char* option, std::string_view usual, std::string_view other) const {
    const std::string_view value = host().option(option).value_or(usual);
    if (value == usual || value == other) return value == other;
    throw sdk::Error(BP_INVALID_ARGUMENT, "option " + std::string(option) + " is \"" + std::string(value) +
                                              "\": it must be " + std::string(usual) + " (the default) or " +
                                              std::string(other));
  }

  std::vector<FoundDevice> devices_;
};

}  // namespace backplane::opencl

BACKPLANE_PLUGIN(backplane::opencl::Backend)
