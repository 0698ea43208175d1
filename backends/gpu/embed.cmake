# SPDX-License-Identifier: Apache-2.0
# cmake -DOUT=kernels.cpp "-DFILES=a.cl;b.cl" -P embed.cmake
#
# Writes a C++ table of the kernel files: the name of each, without its extension, and its text.
set(rows "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND rows "    {\"${name}\", R\"cl(${text})cl\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"engine/kernel_source.h\"

namespace backplane::gpu {
namespace {

constexpr KernelFile kFiles[] = {
${rows}};

}  // namespace

std::span<const KernelFile> kernel_files() { return kFiles; }

}  // namespace backplane::gpu
")
