// SPDX-License-Identifier: Apache-2.0
// libFuzzer: stored entries of backends (known.h). The digest of the input is prepended, so that all of the input is
// parsed. An entry that can be read can also be written and read again. The same bytes are also parsed as a probe's
// verdict.
#include <cstdlib>

#include "discover/digest.h"
#include "discover/known.h"
#include "discover/verdict.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto known = backplane::read_known("backplane backend 2\n" + backplane::blake2b_of(bytes) + std::string(bytes));
  if (known) {
    std::vector<bp_option_t> properties;
    for (const auto& device : known->devices) device.info(properties);
    if (!backplane::read_known(backplane::write_known(*known))) std::abort();
  }
  const auto verdict = backplane::parse_verdict(bytes, "abc");
  if (verdict && verdict->how.find('\n') != std::string::npos) std::abort();
  return 0;
}
