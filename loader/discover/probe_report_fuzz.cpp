// SPDX-License-Identifier: Apache-2.0
// libFuzzer: bytes that a plugin could write to the probe's descriptor after authentic reports. The first byte, modulo
// kDone, is the number of authentic reports.
#include <cstdlib>

#include "discover/probe_report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using backplane::ProbeStep;
  if (size == 0) return 0;
  static const backplane::ProbeKey kKey = backplane::make_probe_key();
  const uint32_t authentic = data[0] % static_cast<uint32_t>(ProbeStep::kDone);
  std::string report;
  for (uint32_t i = 0; i < authentic; ++i) report += backplane::probe_message(kKey, i, static_cast<ProbeStep>(i + 1));
  report.append(reinterpret_cast<const char*>(data + 1), size - 1);
  const backplane::ProbeProgress progress = backplane::read_probe_report(kKey, report);
  if (progress.last != static_cast<ProbeStep>(authentic) || progress.disturbed != (size > 1)) std::abort();
  return 0;
}
