// SPDX-License-Identifier: Apache-2.0
// Reads the headers of an ELF file before the system's loader opens it.
#pragma once

#include <string>
#include <vector>

#include "discover/file.h"
#include "discover/refusal.h"

namespace backplane {

// Appends the names of the libraries that `file` needs to `out_needed`. BP_REFUSED_NOT_A_LIBRARY or _ARCHITECTURE if
// the file is not a complete shared library for this machine, _UNTRUSTED if loading it would make the stacks of this
// process executable. Errors call the file `name`. Reads less than 150 KB, even if the headers are malicious.
Refusal read_elf(const std::string& name, const File& file, std::vector<std::string>& out_needed);

// The processor of this process, spelled as in manifests: "x86_64", "aarch64". "unknown" if elf.cpp has no name for it.
std::string own_machine();

}  // namespace backplane
