// SPDX-License-Identifier: Apache-2.0
// A backend's properties as onnxGetBackendInfo reports them. Libraries omit some properties and report wrong sizes for
// others; such a property is 0, empty, or the default documented below.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "library.h"

namespace onnxifi_backend {

struct BackendInfo {
  std::string name, vendor, version, device, extensions;
  std::string ir_versions, opset_versions;  // as reported
  onnxEnum device_type = 0;
  onnxBitfield capabilities = 0;
  uint64_t memory_bytes = 0, macs_fp32 = 0, macs_fp16 = 0;                 // MACs per second; 0: unknown
  uint64_t memory_bandwidth = 0, read_bandwidth = 0, write_bandwidth = 0;  // bytes per second; 0: unknown
  std::string pci;                                                         // "0000:65:00.0", or empty

  // The newest IR version that the backend reads, and the newest opset of each domain ("" is ai.onnx). Where the
  // backend does not report the IR version or the opset of ai.onnx, that of ONNX 1.3 is assumed, because it was the
  // first release with ONNXIFI.
  uint32_t ir_version = 3;
  std::map<std::string, uint32_t, std::less<>> opsets;
};

BackendInfo info_of(const Library& library, onnxBackendID id);

// Returns the text as UTF-8, with '?' for each control character and each byte that is not UTF-8.
std::string printable(std::string_view text);
// Returns the largest number in a text such as "3 4 5", or 0 if there is none.
uint32_t newest_ir_version(const std::string& text);
// Returns the largest version of each domain in a text such as "ai.onnx:7 org.example:1". A version without a domain is
// one of ai.onnx.
std::map<std::string, uint32_t, std::less<>> newest_opsets(const std::string& text);

}  // namespace onnxifi_backend
