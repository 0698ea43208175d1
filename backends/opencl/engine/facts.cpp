// SPDX-License-Identifier: Apache-2.0
#include "engine/facts.h"

#include <algorithm>
#include <cstdio>

#include "backplane/graph.hpp"

namespace backplane::opencl {
namespace {

// Queries of extensions, by their registered numbers.
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

// "pocl" and the like print spaces in front.
std::string trimmed(std::string text) {
  text.erase(0, std::min(text.size(), text.find_first_not_of(' ')));
  return text;
}

}  // namespace

Facts::Facts(cl_platform_id platform, cl_device_id id)
    : platform(platform),
      id(id),
      name(trimmed(device_text(id, CL_DEVICE_NAME))),
      vendor(trimmed(device_text(id, CL_DEVICE_VENDOR))),
      driver(device_text(id, CL_DRIVER_VERSION)),
      arch(arch_text(id)),
      pci(pci_text(id)),
      kind(kind_of(device_number<cl_device_type>(id, CL_DEVICE_TYPE))),
      unified(device_number<cl_bool>(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0) {
  fp64 = has_extension(id, "cl_khr_fp64") && device_number<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  fp16 = has_extension(id, "cl_khr_fp16");
  const auto single = device_number<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG);
  subnormals = (single & CL_FP_DENORM) != 0;
  exact_division = (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  local_memory = device_number<cl_device_local_mem_type>(id, CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  binaries = true;
  out_of_order = (device_number<cl_command_queue_properties>(id, CL_DEVICE_QUEUE_PROPERTIES) &
                  CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
  units = std::max<cl_uint>(1, device_number<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS));
  float_lanes = std::max<cl_uint>(1, device_number<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT));
  alignment = std::max<cl_uint>(8, device_number<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN)) / 8;
  memory_bytes = device_number<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  max_buffer_bytes = device_number<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  local_bytes = device_number<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE);
  max_group = std::max<size_t>(1, device_number<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  const double hertz = 1e6 * device_number<cl_uint>(id, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  // A unit of a CPU is a core with two fused multiply-adds a cycle; one of a GPU has about 64 scalar lanes with one.
  const double per_cycle = kind == BP_DEVICE_CPU ? 4.0 * float_lanes : 128.0;
  rates.flops = units * hertz * per_cycle;
  rates.bandwidth = rates.flops / 20;  // a stream moves about a byte for twenty operations
  rates.launch_seconds = 20e-6;
  const std::optional<Rates> known = known_rates(*this);
  measured = known.has_value();
  if (measured) rates = *known;
  const auto first = std::ranges::find_if(tiles(kind), [this](const Tile& t) { return fits(*this, t); });
  tile = first == tiles(kind).end() ? Tile{4, 4, 1} : *first;
}

double Facts::told_bandwidth() const {
  return kind == BP_DEVICE_CPU ? std::min(rates.bandwidth, 8e9) : rates.bandwidth;
}

bp_dtype_set_t Facts::dtypes() const {
  bp_dtype_set_t set = 0;
  for (const bp_dtype_t dtype :
       {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16, BP_DTYPE_INT8, BP_DTYPE_INT16, BP_DTYPE_INT32,
        BP_DTYPE_INT64, BP_DTYPE_UINT8, BP_DTYPE_UINT16, BP_DTYPE_UINT32, BP_DTYPE_UINT64, BP_DTYPE_BOOL})
    set |= bp_dtype_set_t{1} << dtype;
  if (fp64) set |= bp_dtype_set_t{1} << BP_DTYPE_DOUBLE;
  return set;
}

bp_device_info_t Facts::info() const {
  bp_device_info_t info{};
  info.kind = kind;
  info.flags = BP_DEVICE_DETERMINISTIC;
  if (unified) info.flags |= BP_DEVICE_UNIFIED_MEMORY;
  if (!subnormals) info.flags |= BP_DEVICE_FLUSHES_SUBNORMALS;
  info.name = view::text(name);
  info.vendor = view::text(vendor);
  info.driver = view::text(driver);
  info.arch = view::text(arch);
  info.pci = view::text(pci);
  info.memory_bytes = memory_bytes;
  info.memory_bandwidth = static_cast<uint64_t>(told_bandwidth());
  info.launch_ns = static_cast<uint64_t>(rates.launch_seconds * 1e9);
  info.flops_fp32 = rates.flops;
  info.flops_fp16 = fp16 ? rates.flops : 0;
  info.dtypes = dtypes();
  info.space_count = unified ? 2 : 1;
  return info;
}

std::string Facts::identity() const {
  return name + "\n" + vendor + "\n" + driver + "\n" + device_text(id, CL_DEVICE_VERSION) + "\n" +
         platform_text(platform, CL_PLATFORM_NAME) + "\n" + platform_text(platform, CL_PLATFORM_VERSION) + "\n";
}

std::vector<Facts> find_devices(std::string& why_none) {
  cl_uint count = 0;
  cl_int status = clGetPlatformIDs(0, nullptr, &count);
  if (status != CL_SUCCESS || count == 0) {
    why_none = "no OpenCL platform is installed (" + (status == CL_SUCCESS ? "0 platforms" : error_name(status)) +
               "); install the driver of your device, or pocl-opencl-icd for the processor";
    return {};
  }
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "platforms");
  std::vector<Facts> found;
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
        found.emplace_back(platform, id);
      else
        without += (without.empty() ? "" : ", ") + device_text(id, CL_DEVICE_NAME) + " (not available, or no compiler)";
    }
  }
  if (found.empty()) why_none = "no OpenCL platform has a device that can be used: " + without;
  return found;
}

}  // namespace backplane::opencl
