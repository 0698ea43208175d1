// SPDX-License-Identifier: Apache-2.0
#include "driver/devices.h"

#include <array>

namespace backplane::cuda {
namespace {

// A positive attribute of the device. Throws if the driver does not report one.
int attribute(CUdevice id, CUdevice_attribute what, const std::string& name) {
  int value = 0;
  check(cuda().cuDeviceGetAttribute(&value, what, id), "querying " + name);
  if (value <= 0) throw sdk::Error(BP_UNSUPPORTED, "the driver reports " + std::to_string(value) + " as " + name);
  return value;
}

// The minor number of the compute capability. Unlike the other attributes, it may be 0.
int minor_of(CUdevice id) {
  int value = 0;
  check(cuda().cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, id),
        "querying the compute capability");
  return value;
}

FoundDevice query(CUdevice id) {
  const Functions& driver = cuda();
  FoundDevice found{
      id, attribute(id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "the compute capability"), minor_of(id), {}};
  gpu::DeviceCaps& caps = found.caps;
  std::array<char, 256> text{};
  caps.backend = "cuda";
  if (driver.cuDeviceGetName(text.data(), static_cast<int>(text.size() - 1), id) == CUDA_SUCCESS)
    caps.name = text.data();
  caps.vendor = "NVIDIA";
  int version = 0;
  driver.cuDriverGetVersion(&version);
  caps.driver = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  caps.arch = "sm_" + std::to_string(found.major) + std::to_string(found.minor);
  text = {};
  if (driver.cuDeviceGetPCIBusId(text.data(), static_cast<int>(text.size() - 1), id) == CUDA_SUCCESS)
    caps.pci = text.data();
  for (char& c : caps.pci) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  caps.identity = caps.name + "\n" + caps.driver + "\n" + caps.arch + "\n";
  caps.kind = BP_DEVICE_GPU;
  caps.fp64 = caps.fp16 = true;
  caps.units =
      static_cast<uint32_t>(attribute(id, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "the number of multiprocessors"));
  caps.alignment = 256;
  size_t bytes = 0;
  check(driver.cuDeviceTotalMem(&bytes, id), "querying the size of the memory");
  caps.memory_bytes = caps.max_buffer_bytes = bytes;
  caps.local_bytes = static_cast<uint64_t>(
      attribute(id, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, "the size of shared memory"));
  caps.max_group = static_cast<size_t>(attribute(id, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, "the size of a block"));
  caps.max_groups_across = kMaxGroupsAcross;
  caps.estimate(1e3 * attribute(id, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, "the clock rate"));
  return found;
}

}  // namespace

std::vector<FoundDevice> find_devices(std::string& why_none) {
  if (const auto absent = sdk::caught([] { cuda(); })) {
    why_none = absent->text;
    return {};
  }
  const CUresult started = cuda().cuInit(0);
  int count = 0;
  if (started != CUDA_ERROR_NO_DEVICE) {
    check(started, "starting the driver");
    check(cuda().cuDeviceGetCount(&count), "counting devices");
  }
  if (count == 0) why_none = "the driver has no device";
  std::vector<FoundDevice> found;
  std::optional<sdk::Error> unusable;
  for (int index = 0; index < count; ++index) {
    const auto failure = sdk::caught([&] {
      CUdevice id = 0;
      check(cuda().cuDeviceGet(&id, index), "getting its handle");
      found.push_back(query(id));
    });
    if (failure && !unusable) {
      unusable = failure;
      unusable->text = "device " + std::to_string(index) + ": " + failure->text;
    }
  }
  if (found.empty() && unusable) throw sdk::Error(*unusable);
  // cuMemcpyPeerAsync copies between any two devices: through host memory if they cannot access each other's.
  for (size_t index = 0; index < found.size(); ++index)
    for (size_t other = 0; other < found.size(); ++other)
      if (other != index) found[index].caps.peers.push_back(static_cast<uint32_t>(other));
  return found;
}

}  // namespace backplane::cuda
