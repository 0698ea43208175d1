// SPDX-License-Identifier: Apache-2.0
// libFuzzer: reads arbitrary bytes as an ELF file. Reads stay within the file, and every refusal names the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "discover/elf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int kFile = memfd_create("library", MFD_CLOEXEC);
  if (ftruncate(kFile, 0) != 0 || pwrite(kFile, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  backplane::File file;
  if (file.open("/proc/self/fd/" + std::to_string(kFile))) std::abort();
  std::vector<std::string> needed;
  const backplane::Refusal refusal = backplane::read_elf("x.so", file, needed);
  if (refusal && refusal.text.find("x.so") == std::string::npos) std::abort();
  if (needed.size() > 256) std::abort();
  return 0;
}
