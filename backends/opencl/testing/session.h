// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the OpenCL backend: environments with the OpenCL and CPU backends, a cache folder, small
// models.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "backplane/client.hpp"
#include "testing/cl_layer.h"
#include "testing/client_fixture.h"
#include "testing/small_model.h"

namespace backplane::opencl::testing {

inline const std::string kPlugin = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_opencl.so";
inline const std::string kCpuPlugin = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";

inline Environment opencl(std::map<std::string, std::string> options = {}) {
  return environment({kPlugin, kCpuPlugin}, std::move(options));
}

// Options with which all nodes must run on OpenCL; otherwise compiling fails.
inline SessionOptions only_opencl() {
  SessionOptions how;
  how.devices = {"opencl"};
  how.fallback = BP_FALLBACK_FORBID;
  how.options["loader.costs"] = "reported";
  return how;
}

// An empty folder that is used as the cache folder (BACKPLANE_CACHE_DIR) while the object lives.
class CacheFolder {
 public:
  CacheFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "backplane_opencl_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    const char* before = std::getenv(kVariable);
    if (before != nullptr) before_ = before;
    setenv(kVariable, folder_.c_str(), 1);
  }
  CacheFolder(const CacheFolder&) = delete;
  ~CacheFolder() {
    if (before_.empty())
      unsetenv(kVariable);
    else
      setenv(kVariable, before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  // The files of cache entries that contain kernels, recognized by their source text. The other files are measurements
  // of the device.
  std::vector<std::filesystem::path> kernels() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "opencl")) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string all{std::istreambuf_iterator<char>(in), {}};
      if (all.find("kernel void") != std::string::npos) files.push_back(entry.path());
    }
    return files;
  }

 private:
  static constexpr const char* kVariable = "BACKPLANE_CACHE_DIR";
  std::filesystem::path folder_;
  std::string before_;
};

using gpu::testing::small_input;
using gpu::testing::small_model;

class OpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const Device& device : opencl().devices()) {
      if (device.name.starts_with("opencl")) return;
    }
    GTEST_SKIP() << "this machine has no OpenCL device; install pocl-opencl-icd";
  }
  void TearDown() override { cl_layer().clear_failures(); }
};

}  // namespace backplane::opencl::testing
