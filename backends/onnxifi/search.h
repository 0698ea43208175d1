// SPDX-License-Identifier: Apache-2.0
// Finds ONNXIFI libraries: libonnxifi-*.so in the folders of the dynamic linker, and libraries that the user names.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace onnxifi_backend {

// A library that was found, or a path that was refused, with the reason.
struct Found {
  std::filesystem::path path;
  std::string refusal;
};

// `named` is a list of absolute paths of folders and files, separated by ':'. A file that several links lead to is
// reported once, by its first path. `configuration` is the file that lists the system's folders.
std::vector<Found> find_libraries(std::string_view named, const char* configuration = "/etc/ld.so.conf");

}  // namespace onnxifi_backend
