// SPDX-License-Identifier: Apache-2.0
#include "session/cover.h"

#include <fmt/format.h>

#include <algorithm>

#include "coverage/types.h"

namespace backplane {
namespace {

// The default order of devices: accelerators, then CPUs, then all others (such as reference and test devices).
int rank(uint32_t kind) {
  switch (kind) {
    case BP_DEVICE_GPU:
    case BP_DEVICE_NPU:
    case BP_DEVICE_FPGA:
      return 0;
    case BP_DEVICE_CPU:
      return 1;
    default:
      return 2;
  }
}

Result<std::vector<Device*>> choose_devices(const Environment& environment, const std::vector<std::string>& names) {
  std::vector<Device*> devices;
  for (const std::string& name : names) {
    BP_ASSIGN(Device * device, environment.find(name));
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
  }
  if (names.empty()) {
    for (const auto& device : environment.devices())
      if (!device->given_up()) devices.push_back(device.get());
    std::ranges::stable_sort(devices, {}, [](const Device* device) { return rank(device->info().kind); });
  }
  if (devices.empty() && !environment.devices().empty()) return environment.devices()[0]->lost();
  if (devices.empty())
    return Status(BP_NOT_FOUND, std::string("there is no device: ") +
                                    (environment.candidates().empty() ? "no backend was found"
                                                                      : "every backend that was found was refused") +
                                    " (see `backplane list`)");
  return devices;
}

// Returns the model with the framework's ranges for its dimensions.
Result<std::shared_ptr<const model::Model>> bounded(std::shared_ptr<const model::Model> model,
                                                    const std::vector<model::Symbol>& ranges) {
  if (ranges.empty()) return model;
  const std::shared_ptr<model::Model> own = model::copy(*model);
  for (const model::Symbol& range : ranges) {
    const auto found = std::ranges::find(own->graph.symbols, range.name, &model::Symbol::name);
    if (found == own->graph.symbols.end())
      return Status(BP_NOT_FOUND, "the model has no dimension named '" + range.name + "'");
    found->min = std::max(found->min, range.min);
    found->max = std::min(found->max, range.max);
    if (found->min > found->max)
      return Status(
          BP_INVALID_ARGUMENT,
          fmt::format("dimension '{}': the range {} to {} has no extent in common with the other ranges given for it",
                      range.name, range.min, range.max));
  }
  model::set_expected_extents(own->graph);
  return std::shared_ptr<const model::Model>(own);
}

// Whether an error of a query is the device's fault, so that the device can be left out if the framework did not list
// it. The other errors are caused by the request, and would occur with any device.
bool is_fault_of_device(const Status& status) {
  return status.code() != BP_CANCELLED && status.code() != BP_INVALID_ARGUMENT && status.code() != BP_NOT_FOUND;
}

// Queries `devices`. If `may_leave_out`, removes those that cannot be queried from `devices` and logs why. Returns the
// first error if none can be queried.
Result<std::vector<DeviceCoverage>> query(const Environment& environment,
                                          const std::shared_ptr<const model::Model>& model,
                                          std::vector<Device*>& devices, bool may_leave_out,
                                          const CoverageOptions& options) {
  std::vector<DeviceCoverage> all;
  Status first;
  std::vector<Device*> usable;
  for (Device* const device : devices) {
    Result<std::vector<DeviceCoverage>> one = query_devices(model, {device}, options);
    if (one.ok()) {
      all.push_back(std::move(one->front()));
      usable.push_back(device);
      continue;
    }
    if (!may_leave_out || !is_fault_of_device(one.status())) return one.status();
    if (first.ok()) first = one.status();
    environment.services().log().warning(
        fmt::format("device '{}' is not used: {}", device->name(), one.status().text()));
  }
  if (usable.empty()) return first;
  devices = std::move(usable);
  return all;
}

}  // namespace

Result<Covered> cover(const Environment& environment, std::shared_ptr<const model::Model> model,
                      const SessionRequest& request) {
  Covered covered;
  BP_ASSIGN(covered.model, bounded(std::move(model), request.symbols));
  BP_ASSIGN(std::vector<Device*> devices, choose_devices(environment, request.devices));
  const CoverageOptions options{request.compute_types, request.costs, request.cancel, request.options};
  // Types that one backend reports may let other devices support more nodes, so the devices are queried again.
  for (bool changed = true; changed;) {
    BP_ASSIGN(covered.devices, query(environment, covered.model, devices, request.devices.empty(), options));
    BP_ASSIGN(changed, learn_types(covered.model, covered.devices));
  }
  return covered;
}

}  // namespace backplane
