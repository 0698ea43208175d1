// SPDX-License-Identifier: Apache-2.0
// Paths of test plugins, and functions that create environments and check refusals, for several tests of discovery.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/abi.h"
#include "discover/environment.h"

namespace backplane::testing {

inline const std::filesystem::path kPlugins = BACKPLANE_BUILD_DIR "/tests/plugins";
inline const std::filesystem::path kFake = kPlugins / "fake.so";

// Builds a bp_env_desc_t as a framework does, and owns the arrays to which it refers.
class Request {
 public:
  Request& file(const std::filesystem::path& path) { return files_.push_back(path.string()), *this; }
  Request& folder(const std::filesystem::path& path) { return folders_.push_back(path.string()), *this; }
  Request& option(std::string name, std::string value) {
    return options_.emplace_back(std::move(name), std::move(value)), *this;
  }
  Request& only_given() { return flags_ = BP_ENV_ONLY_GIVEN, *this; }

  template <class F>
  auto with(F use) const {
    std::vector<bp_text_t> files, folders;
    std::vector<bp_option_t> options;
    for (const std::string& path : files_) files.push_back(abi::text(path));
    for (const std::string& path : folders_) folders.push_back(abi::text(path));
    for (const auto& [name, value] : options_) options.push_back({abi::text(name), abi::text(value)});
    bp_env_desc_t desc{};
    desc.size = sizeof desc;
    desc.flags = flags_;
    desc.backend_files = files.data();
    desc.backend_file_count = static_cast<uint32_t>(files.size());
    desc.backend_folders = folders.data();
    desc.backend_folder_count = static_cast<uint32_t>(folders.size());
    desc.options = options.data();
    desc.option_count = static_cast<uint32_t>(options.size());
    desc.option_stride = sizeof(bp_option_t);
    desc.log = [](void*, uint32_t, bp_text_t) {};
    return use(desc);
  }
  Result<std::shared_ptr<Environment>> create() const { return with(Environment::create); }

 private:
  uint32_t flags_ = 0;
  std::vector<std::string> files_, folders_;
  std::vector<std::pair<std::string, std::string>> options_;
};

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Expects `bad` to be refused with `code` and with `in_text` in the text, and kFake, which comes after it, to be
// usable.
inline void expect_refused(const std::filesystem::path& bad, uint32_t code, const std::string& in_text) {
  SCOPED_TRACE(bad.string());
  auto env = Request().only_given().file(bad).file(kFake).create();
  ASSERT_TRUE(env.ok()) << env.status().text();
  const auto candidates = (*env)->candidates();
  ASSERT_THAT(candidates, ::testing::SizeIs(2));
  EXPECT_EQ(candidates[0].refusal, code) << candidates[0].text;
  EXPECT_THAT(candidates[0].text, ::testing::HasSubstr(bad.filename().string()));
  EXPECT_THAT(candidates[0].text, ::testing::HasSubstr(in_text));
  EXPECT_EQ(candidates[0].text.find('\n'), std::string::npos);
  EXPECT_EQ(candidates[0].version, 0u);

  EXPECT_EQ(candidates[1].refusal, BP_REFUSED_NONE) << candidates[1].text;
  ASSERT_THAT((*env)->devices(), ::testing::SizeIs(1));
  EXPECT_TRUE((*env)->devices()[0]->open().ok());
}

// The refusal codes of all candidates.
inline std::vector<uint32_t> refusals(const Request& request) {
  auto env = request.create();
  EXPECT_TRUE(env.ok()) << env.status().text();
  std::vector<uint32_t> codes;
  if (env.ok())
    for (const Candidate& candidate : (*env)->candidates()) codes.push_back(candidate.refusal);
  return codes;
}

inline Candidate tried(const std::filesystem::path& library, const char* policy) {
  auto env = Request().only_given().file(library).option("loader.probe", policy).create();
  EXPECT_TRUE(env.ok());
  return (*env)->candidates()[0];
}

}  // namespace backplane::testing
