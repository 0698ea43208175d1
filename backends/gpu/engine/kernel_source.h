// SPDX-License-Identifier: Apache-2.0
// A kernel before it is built: which file, what is put before it, with which macros.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace backplane::gpu {

// A file of kernels/, embedded when the plugin is built (embed.cmake).
struct KernelFile {
  std::string_view name;  // without ".cl"
  std::string_view text;
};
std::span<const KernelFile> kernel_files();

// What is compiled is kernels/types.cl, `code`, and the file, with the options. Kernels with equal sources share a
// program; the entry chooses one in it.
struct KernelSource {
  std::string_view file;  // of kernels/, or empty when `code` is all
  std::string entry;      // the kernel function
  std::string options;    // "-DTYPE=f32 -DROWS=4"
  std::string code;       // generated, may be empty

  // Throws sdk::Error when no such file is embedded.
  std::string text() const;
};

}  // namespace backplane::gpu
