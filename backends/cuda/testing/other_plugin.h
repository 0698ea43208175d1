// SPDX-License-Identifier: Apache-2.0
// Shared by tests of libraries that are missing or do not start.
#pragma once

#include <fstream>
#include <iterator>
#include <mutex>

#include "backplane/sdk/tables.hpp"
#include "testing/products_fixture.h"

namespace backplane::cuda::testing {

// `log_of_run` runs a model on a copy of the plugin in which `from` is replaced by `to`, a text of equal length, and
// returns the log. It expects right results, and that no call of cuBLASLt or cuDNN computed them.
class OtherPlugin : public Products {
 protected:
  // Why the real library at `path` cannot be tried; empty if it can.
  static std::string no_real_library(const char* path) {
    if (!std::filesystem::exists(path)) return std::string(path) + " does not exist";
    if (sdk::kSanitizer == BP_SANITIZER_NONE) return "";
    return "with a sanitizer, dlopen searches the folders of the test program, where the stand-in is";
  }
  std::string log_of_run(const Case& one, const std::string& from, const std::string& to) {
    std::ifstream in(options().backend_files[0], std::ios::binary);
    std::string plugin{std::istreambuf_iterator<char>(in), {}};
    size_t replaced = 0;
    for (size_t at = plugin.find(from); at != std::string::npos; at = plugin.find(from, at)) {
      plugin.replace(at, from.size(), to);
      ++replaced;
    }
    EXPECT_GT(replaced, 0u);
    const std::filesystem::path folder = folder_ / to.substr(to.find('l')), path = folder / "libbackplane_cuda.so";
    std::filesystem::create_directory(folder);
    std::ofstream(path, std::ios::binary) << plugin;
    EnvironmentOptions how = options();
    how.backend_files[0] = path;
    how.log_level = BP_LOG_DEBUG;
    std::mutex mutex;
    std::string log;
    how.log = [&](uint32_t, std::string_view line) {
      const std::lock_guard lock(mutex);
      log.append(line).append("\n");
    };
    const std::vector<float> expected = results(env(), "cpu", one);
    const auto calls = [] { return standin_calls("cublasLtMatmul") + standin_calls("cudnnBackendExecute"); };
    const uint64_t before = calls();
    {
      const Environment env(how);
      SessionOptions session = only("cuda");
      session.compute_types = BP_COMPUTE_TF32;
      Exec exec = env.compile(model_of(one), session).exec();
      exec.bind("x", numbers(one.x, 0));
      exec.run();
      expect_near(exec.output(0u).values<float>(), expected, one.bound);
    }
    EXPECT_EQ(calls(), before);
    const std::lock_guard lock(mutex);
    return log;
  }
};

}  // namespace backplane::cuda::testing
