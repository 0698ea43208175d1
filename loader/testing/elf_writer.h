// SPDX-License-Identifier: Apache-2.0
// Builds ELF files that are expensive to read: the ELF header of a valid library, followed by far more program headers
// and needed libraries than a linker writes.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace backplane::testing {

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Returns a file with `segments` program headers. `dynamic_sections` of them share one dynamic section that lists
// `names` needed libraries. All of these have the same name, of `name_bytes` bytes. `terminated` means that the name
// ends within the file, `table` that the dynamic section has the string table of the names.
inline std::string elf_file(const Elf64_Ehdr& like, uint16_t segments, uint16_t dynamic_sections, size_t names,
                            size_t name_bytes, bool terminated = true, bool table = true) {
  Elf64_Ehdr header = like;
  header.e_shoff = 0;
  header.e_shnum = 0;
  header.e_phoff = sizeof header;
  header.e_phnum = segments;
  const uint64_t dynamic = sizeof header + uint64_t{segments} * sizeof(Elf64_Phdr);
  const uint64_t strings = dynamic + (names + 2) * sizeof(Elf64_Dyn);
  const uint64_t end = strings + name_bytes + (terminated ? 1 : 0);
  std::string bytes;
  append(bytes, header);
  for (uint16_t i = 0; i < segments; ++i) {
    Elf64_Phdr segment{};
    segment.p_type = i == 0 ? PT_LOAD : i <= dynamic_sections ? PT_DYNAMIC : PT_NOTE;
    segment.p_offset = segment.p_vaddr = i == 0 ? 0 : dynamic;
    segment.p_filesz = segment.p_memsz = i == 0 ? end : strings - dynamic;
    append(bytes, segment);
  }
  append(bytes, Elf64_Dyn{table ? DT_STRTAB : DT_DEBUG, {strings}});
  for (size_t i = 0; i < names; ++i) append(bytes, Elf64_Dyn{DT_NEEDED, {0}});
  append(bytes, Elf64_Dyn{DT_NULL, {0}});
  bytes.append(name_bytes, 'x');
  if (terminated) bytes += '\0';
  return bytes;
}

}  // namespace backplane::testing
