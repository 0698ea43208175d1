// SPDX-License-Identifier: Apache-2.0
// A kernel before it is built: its file, generated code, and macros.
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
// Returns a file's text. Throws sdk::Error if no such file is embedded.
std::string_view kernel_text(std::string_view name);

// The full source is the driver's prelude, kernels/types.cl, `code` and the file, in this order. Kernels with equal
// source and options share a module; `entry` selects one of its functions.
struct KernelSource {
  std::string_view file;  // in kernels/, without ".cl"; empty if `code` contains the kernel
  std::string entry;      // the kernel function
  std::string options;    // "-DTYPE=f32 -DROWS=4"
  std::string code;       // generated, may be empty

  // The source without the prelude. Throws sdk::Error if no such file is embedded.
  std::string text() const;
};

}  // namespace backplane::gpu
