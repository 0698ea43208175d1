// SPDX-License-Identifier: Apache-2.0
#include "driver/devices.h"

#include <algorithm>
#include <cstdio>

#include "driver/cl.h"

namespace backplane::opencl {
namespace {

// Device queries that extensions define, with the numbers from the extensions' specifications.
constexpr cl_device_info kQueryPciKhr = 0x410F;  // cl_khr_pci_bus_info
constexpr cl_device_info kQueryPciBusNv = 0x4008, kQueryPciSlotNv = 0x4009, kQueryPciDomainNv = 0x400A;
constexpr cl_device_info kQueryComputeMajorNv = 0x4000, kQueryComputeMinorNv = 0x4001;

struct PciKhr {
  cl_uint domain, bus, device, function;
};

bool has_extension(cl_device_id id, std::string_view extension) {
  const std::string all = " " + device_text(id, CL_DEVICE_EXTENSIONS) + " ";
  return all.find(" " + std::string(extension) + " ") != std::string::npos;
}

std::string pci_text(cl_device_id id) {
  char text[32];
  PciKhr pci{};
  if (has_extension(id, "cl_khr_pci_bus_info")) {
    if (clGetDeviceInfo(id, kQueryPciKhr, sizeof pci, &pci, nullptr) != CL_SUCCESS) return {};
  } else if (has_extension(id, "cl_nv_device_attribute_query")) {
    const auto slot = device_number<cl_uint>(id, kQueryPciSlotNv);
    pci = {device_number<cl_uint>(id, kQueryPciDomainNv), device_number<cl_uint>(id, kQueryPciBusNv), slot >> 3,
           slot & 7};
  } else {
    return {};
  }
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0xff,
                pci.function & 0xf);
  return text;
}

std::string arch_text(cl_device_id id) {
  if (!has_extension(id, "cl_nv_device_attribute_query")) return device_text(id, CL_DEVICE_VERSION);
  return "sm_" + std::to_string(device_number<cl_uint>(id, kQueryComputeMajorNv)) +
         std::to_string(device_number<cl_uint>(id, kQueryComputeMinorNv));
}

uint32_t kind_of(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_CPU) return BP_DEVICE_CPU;
  if (type & CL_DEVICE_TYPE_GPU) return BP_DEVICE_GPU;
  return BP_DEVICE_OTHER;
}

// Some drivers put spaces in front of names.
std::string trimmed(std::string text) {
  text.erase(0, std::min(text.size(), text.find_first_not_of(' ')));
  return text;
}

FoundDevice query(cl_platform_id platform, cl_device_id id) {
  FoundDevice found{platform, id, {}};
  gpu::DeviceCaps& caps = found.caps;
  caps.backend = "opencl";
  caps.name = trimmed(device_text(id, CL_DEVICE_NAME));
  caps.vendor = trimmed(device_text(id, CL_DEVICE_VENDOR));
  caps.driver = device_text(id, CL_DRIVER_VERSION);
  caps.arch = arch_text(id);
  caps.pci = pci_text(id);
  caps.identity = caps.name + "\n" + caps.vendor + "\n" + caps.driver + "\n" + device_text(id, CL_DEVICE_VERSION) +
                  "\n" + platform_text(platform, CL_PLATFORM_NAME) + "\n" +
                  platform_text(platform, CL_PLATFORM_VERSION) + "\n";
  caps.kind = kind_of(device_number<cl_device_type>(id, CL_DEVICE_TYPE));
  caps.unified = device_number<cl_bool>(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  caps.mappable = true;
  caps.fp64 =
      has_extension(id, "cl_khr_fp64") && device_number<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  caps.fp16 = has_extension(id, "cl_khr_fp16");
  caps.subnormals = (device_number<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_DENORM) != 0;
  caps.units = std::max<cl_uint>(1, device_number<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS));
  caps.float_lanes = std::max<cl_uint>(1, device_number<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT));
  caps.alignment = std::max<cl_uint>(8, device_number<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN)) / 8;
  caps.memory_bytes = device_number<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  caps.max_buffer_bytes = device_number<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  caps.local_bytes = device_number<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE);
  caps.max_group = std::max<size_t>(1, device_number<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  caps.estimate(1e6 * device_number<cl_uint>(id, CL_DEVICE_MAX_CLOCK_FREQUENCY));
  return found;
}

}  // namespace

std::vector<FoundDevice> find_devices(std::string& why_none) {
  cl_uint count = 0;
  cl_int status = clGetPlatformIDs(0, nullptr, &count);
  if (status != CL_SUCCESS || count == 0) {
    why_none = "no OpenCL platform is installed (" + (status == CL_SUCCESS ? "0 platforms" : error_name(status)) +
               "); install the driver of your device, or pocl-opencl-icd for the processor";
    return {};
  }
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "listing the platforms");
  std::vector<FoundDevice> found;
  std::string without;
  for (const cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices);
    std::vector<cl_device_id> ids(devices);
    if (status == CL_SUCCESS && devices > 0)
      status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr);
    if (status != CL_SUCCESS || devices == 0) {
      without += (without.empty() ? "" : ", ") + platform_text(platform, CL_PLATFORM_NAME) + " (" +
                 (status == CL_SUCCESS ? "0 devices" : error_name(status)) + ")";
      continue;
    }
    for (const cl_device_id id : ids) {
      if (device_number<cl_bool>(id, CL_DEVICE_AVAILABLE) && device_number<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE))
        found.push_back(query(platform, id));
      else
        without += (without.empty() ? "" : ", ") + device_text(id, CL_DEVICE_NAME) +
                   (device_number<cl_bool>(id, CL_DEVICE_AVAILABLE) ? " (no compiler)" : " (not available)");
    }
  }
  if (found.empty()) why_none = "no OpenCL platform has a device that can be used: " + without;
  return found;
}

}  // namespace backplane::opencl
