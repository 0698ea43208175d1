// SPDX-License-Identifier: Apache-2.0
// libFuzzer: reads arbitrary bytes as a manifest. Every refusal names the file.
#include <cstdlib>

#include "discover/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const backplane::Log kLog(BP_LOG_ERROR, nullptr, nullptr);
  backplane::Manifest manifest;
  const backplane::Refusal refusal =
      backplane::parse_manifest({reinterpret_cast<const char*>(data), size}, "/folder/x.json", kLog, manifest);
  if (refusal && refusal.text.find("/folder/x.json") == std::string::npos) std::abort();
  if (refusal || manifest.disables) return 0;
  if (!backplane::legal_backend_id(manifest.backend_id) || !manifest.library.is_absolute()) std::abort();
  return 0;
}
