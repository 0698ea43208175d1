// SPDX-License-Identifier: Apache-2.0
#include "driver/facts.h"

#include <array>

namespace backplane::cuda {
namespace {

int attribute(CUdevice id, CUdevice_attribute what) {
  int value = 0;
  return cuda().cuDeviceGetAttribute(&value, what, id) == CUDA_SUCCESS ? value : 0;
}

Found query(CUdevice id) {
  const Functions& driver = cuda();
  Found found{id,
              attribute(id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
              attribute(id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
              {}};
  gpu::Facts& facts = found.facts;
  std::array<char, 256> text{};
  facts.backend = "cuda";
  if (driver.cuDeviceGetName(text.data(), static_cast<int>(text.size() - 1), id) == CUDA_SUCCESS)
    facts.name = text.data();
  facts.vendor = "NVIDIA";
  int version = 0;
  driver.cuDriverGetVersion(&version);
  facts.driver = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  facts.arch = "sm_" + std::to_string(found.major) + std::to_string(found.minor);
  text = {};
  if (driver.cuDeviceGetPCIBusId(text.data(), static_cast<int>(text.size() - 1), id) == CUDA_SUCCESS)
    facts.pci = text.data();
  for (char& c : facts.pci) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  facts.identity = facts.name + "\n" + facts.driver + "\n" + facts.arch + "\n";
  facts.kind = BP_DEVICE_GPU;
  facts.fp64 = facts.fp16 = true;
  facts.units = static_cast<uint32_t>(attribute(id, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  facts.alignment = 256;
  size_t bytes = 0;
  driver.cuDeviceTotalMem(&bytes, id);
  facts.memory_bytes = facts.max_buffer_bytes = bytes;
  facts.local_bytes = static_cast<uint64_t>(attribute(id, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  facts.max_group = static_cast<size_t>(attribute(id, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  facts.estimate(1e3 * attribute(id, CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
  return found;
}

}  // namespace

std::vector<Found> find_devices(std::string& why_none) {
  std::vector<Found> found;
  const auto failure = sdk::caught([&] {
    check(cuda().cuInit(0), "starting the driver");
    int count = 0;
    check(cuda().cuDeviceGetCount(&count), "counting devices");
    for (int index = 0; index < count; ++index) {
      CUdevice id = 0;
      check(cuda().cuDeviceGet(&id, index), "device " + std::to_string(index));
      found.push_back(query(id));
    }
    if (count == 0) why_none = "the driver has no device";
  });
  if (failure) why_none = failure->text;
  return found;
}

}  // namespace backplane::cuda
