// SPDX-License-Identifier: Apache-2.0
// Reads the headers of an ELF file before the system's loader does.
#pragma once

#include <string>
#include <vector>

#include "discover/file.h"
#include "discover/refusal.h"

namespace backplane {

// Whether `file`, called `name` in errors, is a complete shared library for this machine, and the libraries that it
// needs. Reads at most some 100 KB of the file, whatever its headers contain. BP_REFUSED_NOT_A_LIBRARY, _ARCHITECTURE.
Refusal read_elf(const std::string& name, const File& file, std::vector<std::string>& out_needed);

// The processor of this process as manifests name it: "x86_64", "aarch64".
std::string own_machine();

}  // namespace backplane
