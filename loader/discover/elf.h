// SPDX-License-Identifier: Apache-2.0
// Reads the headers of an ELF file before the system's loader does.
#pragma once

#include <string>
#include <vector>

#include "discover/file.h"
#include "discover/refusal.h"

namespace backplane {

// Refuses `file`, called `name` in errors, unless it is a complete shared library for this machine; sets the libraries
// that it needs. Reads less than 150 KB, whatever the headers contain. BP_REFUSED_NOT_A_LIBRARY, _ARCHITECTURE.
Refusal read_elf(const std::string& name, const File& file, std::vector<std::string>& out_needed);

// This process's processor, as manifests name it: "x86_64", "aarch64".
std::string own_machine();

}  // namespace backplane
