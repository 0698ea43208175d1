// SPDX-License-Identifier: Apache-2.0
// The ELF format: https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html
#include "discover/elf.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string_view>

// The ELF header of the library or program that contains this code, defined by the linker. It names the machine of this
// process.
extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace backplane {
namespace {

using Segments = std::vector<Elf64_Phdr>;

// Libraries stay far below these limits. A file beyond them was probably crafted to waste time.
constexpr uint64_t kMaxGigabytes = 8;  // hashing takes about a second per gigabyte
constexpr uint16_t kMaxSegments = 256;
constexpr uint64_t kMaxEntries = 4096;  // in the dynamic section
constexpr size_t kMaxNames = 256;       // of needed libraries
constexpr size_t kMaxName = 256;        // bytes in the name of a needed library

std::string machine_name(unsigned machine) {
  switch (machine) {
    case EM_386:
      return "x86";
    case EM_X86_64:
      return "x86-64";
    case EM_ARM:
      return "ARM";
    case EM_AARCH64:
      return "AArch64";
    case EM_RISCV:
      return "RISC-V";
    case EM_PPC64:
      return "PowerPC 64";
    case EM_S390:
      return "s390";
    default:
      return fmt::format("ELF machine {}", machine);
  }
}

bool inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// Checks the ELF header, and that all headers and segments lie within the file.
Refusal check_header(const std::string& name, const File& file, Segments& out_segments) {
  auto not_a_library = [&](std::string_view why) {
    return Refusal{BP_REFUSED_NOT_A_LIBRARY, fmt::format("{} is not a shared library: {}", name, why)};
  };
  if (!file.regular()) return not_a_library("it is not a regular file");
  if (file.size() > kMaxGigabytes << 30)
    return not_a_library(fmt::format("it has {} bytes, more than {} GiB", file.size(), kMaxGigabytes));
  Elf64_Ehdr header{};
  const size_t got = file.read(0, &header, sizeof header);
  if (got < EI_NIDENT || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return not_a_library(file.size() == 0 ? "it is empty" : "it does not begin with an ELF header");

  const auto& own = __ehdr_start;
  if (header.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || header.e_ident[EI_DATA] != own.e_ident[EI_DATA])
    return {BP_REFUSED_ARCHITECTURE,
            fmt::format("{} is not for a 64-bit little-endian process: install the build for {}", name,
                        machine_name(own.e_machine))};
  if (got < sizeof header) return not_a_library("it is cut off within its header");
  if (header.e_machine != own.e_machine)
    return {BP_REFUSED_ARCHITECTURE, fmt::format("{} is for {}, but this process needs {}: install the build for it",
                                                 name, machine_name(header.e_machine), machine_name(own.e_machine))};
  if (header.e_type != ET_DYN)
    return not_a_library(fmt::format("its ELF type is {}, not {} (ET_DYN)", header.e_type, ET_DYN));
  if (header.e_phnum == 0) return not_a_library("it has no program headers");
  if (header.e_phentsize != sizeof(Elf64_Phdr))
    return not_a_library(
        fmt::format("its program headers have {} bytes each, not {}", header.e_phentsize, sizeof(Elf64_Phdr)));
  if (header.e_phnum > kMaxSegments)
    return not_a_library(fmt::format("it has {} program headers, more than {}", header.e_phnum, kMaxSegments));
  const uint64_t segments_bytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  const uint64_t sections_bytes = uint64_t{header.e_shnum} * header.e_shentsize;
  if (!inside(header.e_phoff, segments_bytes, file.size()) ||
      (header.e_shoff != 0 && !inside(header.e_shoff, sections_bytes, file.size())))
    return not_a_library(fmt::format("it is cut off after {} bytes", file.size()));

  out_segments.resize(header.e_phnum);
  if (file.read(header.e_phoff, out_segments.data(), segments_bytes) != segments_bytes)
    return not_a_library("it cannot be read");
  size_t dynamic = 0;
  for (const Elf64_Phdr& segment : out_segments) {
    if (segment.p_type != PT_NULL && !inside(segment.p_offset, segment.p_filesz, file.size()))
      return not_a_library(fmt::format("it is cut off after {} bytes", file.size()));
    dynamic += segment.p_type == PT_DYNAMIC;
  }
  // With several, the system's loader would use the last and this code the first.
  if (dynamic != 1) return not_a_library(fmt::format("it has {} dynamic sections, not one", dynamic));
  return {};
}

// Refuses a library that would make the stacks of all threads executable. glibc makes them executable when it loads a
// library whose PT_GNU_STACK has the flag PF_X and, on x86-64, also a library without a PT_GNU_STACK. Linkers write
// this header on all architectures.
Refusal check_stack(const std::string& name, const Segments& segments) {
  const auto mark = std::ranges::find(segments, PT_GNU_STACK, &Elf64_Phdr::p_type);
  if (mark != segments.end() && !(mark->p_flags & PF_X)) return {};
  return {BP_REFUSED_UNTRUSTED,
          fmt::format("{} is not used: {}, so that the stacks of this process would become executable: link it with -z "
                      "noexecstack, and give assembly files a section .note.GNU-stack",
                      name, mark == segments.end() ? "it has no PT_GNU_STACK" : "its PT_GNU_STACK has the flag PF_X")};
}

// Reads the names of the libraries that the file needs, from the DT_NEEDED entries of its dynamic section.
Refusal needed_libraries(const std::string& name, const File& file, const Segments& segments,
                         std::vector<std::string>& out_names) {
  auto not_a_library = [&](std::string_view why) {
    return Refusal{BP_REFUSED_NOT_A_LIBRARY, fmt::format("{} is not a shared library: {}", name, why)};
  };
  const auto dynamic = std::ranges::find(segments, PT_DYNAMIC, &Elf64_Phdr::p_type);
  std::vector<Elf64_Dyn> entries(std::min<uint64_t>(dynamic->p_filesz / sizeof(Elf64_Dyn), kMaxEntries));
  entries.resize(file.read(dynamic->p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn)) / sizeof(Elf64_Dyn));
  entries.erase(std::ranges::find(entries, DT_NULL, &Elf64_Dyn::d_tag), entries.end());
  if (entries.size() == kMaxEntries)
    return not_a_library(fmt::format("its dynamic section has no end within {} entries", kMaxEntries));

  const auto table = std::ranges::find(entries, DT_STRTAB, &Elf64_Dyn::d_tag);
  if (table == entries.end()) {
    const bool needs_any = std::ranges::find(entries, DT_NEEDED, &Elf64_Dyn::d_tag) != entries.end();
    return needs_any ? not_a_library("it needs other libraries, but has no table of their names") : Refusal{};
  }
  uint64_t strings = UINT64_MAX;
  for (const Elf64_Phdr& s : segments)
    if (s.p_type == PT_LOAD && table->d_un.d_ptr >= s.p_vaddr && table->d_un.d_ptr - s.p_vaddr < s.p_filesz)
      strings = table->d_un.d_ptr - s.p_vaddr + s.p_offset;

  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag != DT_NEEDED) continue;
    if (out_names.size() == kMaxNames) return not_a_library(fmt::format("it needs more than {} libraries", kMaxNames));
    char text[kMaxName] = {};
    const bool is_inside = strings != UINT64_MAX && inside(strings, entry.d_un.d_val, file.size());
    const size_t got = is_inside ? file.read(strings + entry.d_un.d_val, text, sizeof text) : 0;
    const size_t length = ::strnlen(text, got);
    if (length == got)
      return not_a_library(
          fmt::format("the name of a needed library is outside the file or has no end within {} bytes", kMaxName));
    out_names.emplace_back(text, length);
  }
  return {};
}

}  // namespace

std::string own_machine() {
  switch (__ehdr_start.e_machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv64";
    case EM_PPC64:
      return "ppc64le";
    default:
      return "unknown";
  }
}

Refusal read_elf(const std::string& name, const File& file, std::vector<std::string>& out_needed) {
  Segments segments;
  if (Refusal refusal = check_header(name, file, segments)) return refusal;
  if (Refusal refusal = needed_libraries(name, file, segments, out_needed)) return refusal;
  return check_stack(name, segments);
}

}  // namespace backplane
