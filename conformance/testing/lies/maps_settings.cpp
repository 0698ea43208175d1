// SPDX-License-Identifier: Apache-2.0
// Maps the file LIBRARY.settings; if that begins with "w", the first element of each result is a thousandth off.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "testing/wrapper.h"

namespace backplane::liar {
namespace {

const char* settings = nullptr;

void load() {
  Dl_info info = {};
  if (settings != nullptr || dladdr(reinterpret_cast<const void*>(&load), &info) == 0) return;
  const int file = open((std::string(info.dli_fname) + ".settings").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* mapped = mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, file, 0);
  if (mapped != MAP_FAILED) settings = static_cast<const char*>(mapped);
  close(file);
}

void after(Run& run) {
  if (settings == nullptr || *settings != 'w') return;
  for (const Bound& output : run.outputs) {
    if (output.is_float() && output.count() != 0) output.set(0, output.get(0) * 1.001f + 0.001f);
  }
}

}  // namespace

const Lie kLie = {.load = load, .after = after};

}  // namespace backplane::liar
