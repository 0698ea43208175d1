// SPDX-License-Identifier: Apache-2.0
// Implements onnxGetBackendInfo, with information about the device and about the loader.
#include "onnxifi/info.h"

#include <cstdlib>

namespace backplane::onnxifi {
namespace {

std::string bytes_of(uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The bytes of a number. Throws UNSUPPORTED_ATTRIBUTE if the number is 0, which means unknown.
std::string known(uint64_t value) {
  if (value == 0) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE};
  return bytes_of(value);
}

// The bytes of half of a plugin's number of operations per second, because a multiply-add counts as two operations.
// Throws UNSUPPORTED_ATTRIBUTE if the half is below 1 or exceeds 64 bits; 0 means unknown.
std::string known_macs(double operations) {
  const double macs = operations / 2;
  if (!(macs >= 1 && macs < 0x1p64)) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE};
  return bytes_of(static_cast<uint64_t>(macs));
}

// The bytes of number `part` (from 0) in "domain:bus:device.function", whose numbers are hexadecimal.
std::string pci(std::string_view place, size_t part) {
  for (size_t i = 0; i < part; ++i) {
    const size_t end = place.find(':');
    if (end == std::string_view::npos) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE};
    place.remove_prefix(end + 1);
  }
  if (place.empty()) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE};
  return bytes_of(std::strtoull(std::string(place).c_str(), nullptr, 16));
}

onnxEnum device_type(uint32_t kind) {
  switch (kind) {
    case BP_DEVICE_CPU:
      return ONNXIFI_DEVICE_TYPE_CPU;
    case BP_DEVICE_GPU:
      return ONNXIFI_DEVICE_TYPE_GPU;
    case BP_DEVICE_FPGA:
      return ONNXIFI_DEVICE_TYPE_FPGA;
    default:
      return ONNXIFI_DEVICE_TYPE_NPU;
  }
}

// The driver's index of a CUDA device, which follows the colon in its name. The first device has a name without a
// colon.
uint64_t cuda_index(const BackendId& id) {
  if ((id.memory_types() & ONNXIFI_MEMORY_TYPE_CUDA_BUFFER) == 0) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE};
  const std::string& name = id.device().name;
  const size_t colon = name.find(':');
  return colon == std::string::npos ? 0 : std::strtoull(name.c_str() + colon + 1, nullptr, 10);
}

// A field of a protobuf message; `bytes` has fewer than 128 bytes.
std::string field(int number, std::string_view bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + std::string(bytes);
}
std::string field(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

// A model y = Identity(x) with this IR version and this opset of a domain.
std::string model_in(int ir_version, std::string_view domain, int opset) {
  const std::string type = field(1, field(1, BP_DTYPE_FLOAT) + field(2, field(1, field(1, 1))));
  const auto value = [&](const char* name) { return field(1, name) + field(2, type); };
  const std::string node = field(1, "x") + field(2, "y") + field(4, "Identity");
  const std::string graph = field(1, node) + field(2, "g") + field(11, value("x")) + field(12, value("y"));
  std::string model = field(1, ir_version) + field(8, field(1, domain) + field(2, opset));
  if (!domain.empty()) model += field(8, field(1, "") + field(2, 13));
  return model + field(7, graph);
}

// A model y = op(x) or y = op(x, x), with tensors [outer, inner]; an empty text stands for extent 2, others are
// symbols.
std::string model_of(std::string_view op, int operands, std::string_view outer, std::string_view inner) {
  const auto extent = [](std::string_view symbol) { return field(1, symbol.empty() ? field(1, 2) : field(2, symbol)); };
  const std::string type = field(1, field(1, BP_DTYPE_FLOAT) + field(2, extent(outer) + extent(inner)));
  const auto value = [&](const char* name) { return field(1, name) + field(2, type); };
  std::string node;
  for (int i = 0; i < operands; ++i) node += field(1, "x");
  node += field(2, "y") + field(4, op);
  const std::string graph = field(1, node) + field(2, "g") + field(11, value("x")) + field(12, value("y"));
  return field(1, 8) + field(8, field(1, "") + field(2, 13)) + field(7, graph);
}

// The capabilities for symbolic extents that the device supports in at least one of the operators below. Where a device
// supports symbolic extents, the loader also handles extents that become known only in a run.
onnxBitfield symbols_of(const BackendId& id) {
  onnxBitfield result = 0;
  const auto runs = [&](const std::string& model) {
    return compatibility(id.environment(), id.device(), id.environment().parse(model)) == ONNXIFI_STATUS_SUCCESS;
  };
  for (const auto& [op, operands] : {std::pair("Add", 2), {"Relu", 1}, {"Identity", 1}, {"Neg", 1}}) {
    if (!runs(model_of(op, operands, "", ""))) continue;
    if (runs(model_of(op, operands, "n", "")))
      result |= ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE | ONNXIFI_CAPABILITY_VARIABLE_BATCH_SIZE;
    if (runs(model_of(op, operands, "n", "m")))
      result |= ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS | ONNXIFI_CAPABILITY_VARIABLE_SIZE_OUTPUTS;
  }
  return result;
}

// The IR versions that the loader reads. An imported model has the newest of them, whatever version its file has.
std::string ir_versions(const Environment& environment) {
  constexpr uint32_t kFirst = 3;  // the IR version of ONNX 1.0
  const uint32_t last = environment.parse(model_in(8, "", 13)).graph().raw()->ir_version;
  std::string text;
  for (uint32_t version = kFirst; version <= last; ++version)
    text += (text.empty() ? "" : " ") + std::to_string(version);
  return text;
}

// The newest opset of one of ONNX's own domains that the loader accepts; it refuses later ones.
int newest_opset(const Environment& environment, std::string_view domain) {
  constexpr int kLimit = 127;
  int last = 0;
  for (int version = 1; version < kLimit; ++version) {
    try {
      environment.parse(model_in(8, domain, version));
      last = version;
    } catch (const Error&) {
      if (last != 0) break;
    }
  }
  return last;
}

std::string opset_versions(const Environment& environment) {
  std::string text;
  for (const char* domain : {"", "ai.onnx.ml", "ai.onnx.preview.training"}) {
    const int last = newest_opset(environment, domain);
    if (last != 0) text += std::string(*domain == 0 ? "ai.onnx" : domain) + ":" + std::to_string(last) + " ";
  }
  return text + "com.microsoft:1";  // this domain has one version, and the loader accepts any number
}

}  // namespace

std::string info(const BackendId& id, onnxBackendInfo type) {
  const bp_device_info_t& device = id.device().info;
  constexpr uint64_t kVersion = uint64_t{1} << 32;
  switch (type) {
    case ONNXIFI_BACKEND_ONNXIFI_VERSION:
      return bytes_of(kVersion);
    case ONNXIFI_BACKEND_NAME:
      return "Backplane " + id.device().name;
    case ONNXIFI_BACKEND_VENDOR:
      return std::string(view::text(device.vendor));
    case ONNXIFI_BACKEND_VERSION:
      return std::string(view::text(api().release));
    case ONNXIFI_BACKEND_EXTENSIONS:
      return "onnx_extension_function onnxSetIOAndRunGraph";
    case ONNXIFI_BACKEND_DEVICE:
      return std::string(view::text(device.name));
    case ONNXIFI_BACKEND_DEVICE_TYPE:
      return bytes_of(device_type(device.kind));
    case ONNXIFI_BACKEND_ONNX_IR_VERSION: {
      static const std::string kVersions = ir_versions(id.environment());
      return kVersions;
    }
    case ONNXIFI_BACKEND_OPSET_VERSION: {
      static const std::string kVersions = opset_versions(id.environment());
      return kVersions;
    }
    case ONNXIFI_BACKEND_CAPABILITIES:
      return bytes_of(ONNXIFI_CAPABILITY_THREAD_SAFE | symbols_of(id));
    case ONNXIFI_BACKEND_INIT_PROPERTIES:
    case ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES:
      return bytes_of(0);  // no vendor-specific properties
    case ONNXIFI_BACKEND_MEMORY_TYPES:
      return bytes_of(id.memory_types());
    case ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES:
      return bytes_of(ONNXIFI_SYNCHRONIZATION_EVENT);
    case ONNXIFI_BACKEND_MEMORY_SIZE:
    case ONNXIFI_BACKEND_MAX_GRAPH_SIZE:
      return bytes_of(device.memory_bytes);
    case ONNXIFI_BACKEND_MAX_GRAPH_COUNT:
      return bytes_of(UINT64_MAX);
    case ONNXIFI_BACKEND_MACS_FP32:
      return known_macs(device.flops_fp32);
    case ONNXIFI_BACKEND_MACS_FP16:
      return known_macs(device.flops_fp16);
    case ONNXIFI_BACKEND_MEMORY_BANDWIDTH:
      return known(device.memory_bandwidth);
    case ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH:
    case ONNXIFI_BACKEND_CPU_MEMORY_WRITE_BANDWIDTH:
      return known(device.link_bandwidth);
    case ONNXIFI_BACKEND_PCI_DOMAIN_ID:
      return pci(view::text(device.pci), 0);
    case ONNXIFI_BACKEND_PCI_BUS_ID:
      return pci(view::text(device.pci), 1);
    case ONNXIFI_BACKEND_PCI_DEVICE_ID:
      return pci(view::text(device.pci), 2);
    case ONNXIFI_BACKEND_CUDA_INDEX:
      return bytes_of(cuda_index(id));
    default:
      throw Failure{ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE};
  }
}

}  // namespace backplane::onnxifi
