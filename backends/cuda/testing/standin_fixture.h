// SPDX-License-Identifier: Apache-2.0
// Shared by the tests that run the backend under the loader on the stand-ins.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>

#include "testing/client_fixture.h"
#include "testing/standin/cuda.h"

namespace backplane::cuda::testing {

// The number of existing objects of the stand-ins, by kind.
inline std::map<std::string, int64_t> objects() {
  std::map<std::string, int64_t> all;
  for (const char* kind :
       {"contexts", "modules", "memory", "pinned", "registered", "streams", "events", "graphs", "executable graphs",
        "cublaslt", "operations", "layouts", "preferences", "cudnn", "descriptors"})
    all[kind] = standin_objects(kind);
  return all;
}

// The tests of a suite share a cache folder, which is empty at first. After each test, injected failures end.
class StandinTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (std::filesystem::temp_directory_path() / "backplane_cuda_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    setenv("BACKPLANE_CACHE_DIR", folder_.c_str(), 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }
  void TearDown() override { standin_fail(nullptr, CUDA_SUCCESS, 0); }

  static EnvironmentOptions options(const std::map<std::string, std::string>& more = {}) {
    EnvironmentOptions how;
    how.backend_files = {BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cuda.so",
                         BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so"};
    how.only_given = true;
    how.options = {{"cuda.tile", "4x4x2/16:8x8"}, {"cuda.winograd", "never"}};
    for (const auto& [name, value] : more) how.options[name] = value;
    return how;
  }
  static Environment env(const std::map<std::string, std::string>& more = {}) { return Environment(options(more)); }
  static SessionOptions only(const char* device) {
    SessionOptions how;
    how.devices = {device};
    how.fallback = BP_FALLBACK_FORBID;
    how.options["loader.costs"] = "reported";
    return how;
  }

  static inline std::filesystem::path folder_;
};

}  // namespace backplane::cuda::testing
