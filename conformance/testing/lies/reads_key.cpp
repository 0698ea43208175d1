// SPDX-License-Identifier: Apache-2.0
// Reads the file that the harness was given as --key, and if it can, creates the file LIBRARY.read.
#include <dlfcn.h>
#include <unistd.h>

#include <fstream>

#include "testing/wrapper.h"

namespace backplane::liar {

static void load() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&load), &info) == 0) return;
  std::ifstream words("/proc/" + std::to_string(getppid()) + "/cmdline");
  bool is_next = false;
  for (std::string word; std::getline(words, word, '\0'); is_next = word == "--key") {
    if (is_next && std::ifstream(word)) std::ofstream(std::string(info.dli_fname) + ".read") << word;
  }
}

const Lie kLie = {.load = load};

}  // namespace backplane::liar
