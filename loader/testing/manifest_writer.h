// SPDX-License-Identifier: Apache-2.0
// A sandbox for tests of discovery: an empty folder that all search paths point to, and manifests written into it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "backplane/version.h"

namespace backplane::testing {

// Returns a valid manifest of org.backplane.test.<id>, parts of which tests replace. `more` holds additional members,
// such as ", \"key\": 1".
inline std::string manifest(std::string_view id, std::string_view library, std::string_view more = {}) {
  const std::string abi = "\"" + std::to_string(BP_VERSION_MAJOR(BP_ABI_VERSION)) + "." +
                          std::to_string(BP_VERSION_MINOR(BP_ABI_VERSION)) + "\"";
  std::string text = R"({"format_version": "1.0", "id": "org.backplane.test.)";
  text.append(id).append(R"(", "library": ")").append(library);
  text += R"(", "interface": {"min": )" + abi + R"(, "max": )" + abi + "}";
  return text.append(more).append("}");
}

// During its lifetime, the XDG variables point into its folder, and those that choose or isolate backends are unset, as
// is BACKPLANE_LOG. The destructor restores them, and those changed with `set`, and removes the folder.
//
// BACKPLANE_ISOLATE_PATHS stays, so that plugins of another build folder can open libraries (api/abi/grown_test.sh).
class Sandbox {
 public:
  Sandbox() {
    std::string name = (std::filesystem::temp_directory_path() / "backplane-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    set("XDG_CONFIG_HOME", (root_ / "home_config").string());
    set("XDG_CONFIG_DIRS", (root_ / "system_config").string());
    set("XDG_DATA_HOME", (root_ / "home").string());
    set("XDG_DATA_DIRS", (root_ / "system").string());
    set("XDG_CACHE_HOME", (root_ / "cache").string());
    for (const char* name : {"BACKPLANE_BACKEND_FILES", "BACKPLANE_ADD_BACKEND_FILES", "BACKPLANE_SELECT",
                             "BACKPLANE_DISABLE", "BACKPLANE_REQUIRE_SIGNED", "BACKPLANE_LOG",
                             "BACKPLANE_SCAN_TIMEOUT_MS", "BACKPLANE_ISOLATE", "BACKPLANE_ISOLATE_SANDBOX"})
      set(name, std::nullopt);
  }
  ~Sandbox() {
    for (const auto& [name, value] : before_) put(name, value);
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }
  Sandbox(const Sandbox&) = delete;

  const std::filesystem::path& root() const { return root_; }

  void set(const std::string& name, const std::optional<std::string>& value) {
    const char* now = std::getenv(name.c_str());
    before_.try_emplace(name, now ? std::optional<std::string>(now) : std::nullopt);
    put(name, value);
  }

  // Writes a file, and creates its parent folders if needed. Returns its absolute path.
  std::filesystem::path write(const std::filesystem::path& relative, std::string_view text) const {
    const std::filesystem::path path = root_ / relative;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
    return path;
  }

 private:
  static void put(const std::string& name, const std::optional<std::string>& value) {
    if (value)
      ::setenv(name.c_str(), value->c_str(), 1);
    else
      ::unsetenv(name.c_str());
  }

  std::filesystem::path root_;
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace backplane::testing
