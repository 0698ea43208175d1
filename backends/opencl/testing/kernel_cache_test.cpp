// SPDX-License-Identifier: Apache-2.0
// Kernels are cached on disk for the next start of a program. A new environment stands for such a start, because a new
// process would read the same files.
#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

namespace fs = std::filesystem;
using KernelCacheTest = OpenCl;

struct Start {
  uint64_t from_source, from_binary;
  std::vector<float> result;
};

Start start() {
  const uint64_t source = cl_layer().from_source, binary = cl_layer().from_binary;
  Exec exec = opencl().compile(small_model(), only_opencl()).exec();
  exec.bind("x", small_input(3, 1));
  exec.run();
  return {cl_layer().from_source - source, cl_layer().from_binary - binary, exec.output(0u).values<float>()};
}

// A start that compiles only the model's kernels, because an earlier start has measured the device.
Start cold_start(const CacheFolder& folder) {
  start();
  for (const fs::path& file : folder.kernels()) fs::remove(file);
  return start();
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string flip(std::string all, size_t at) {
  all.at(at) = static_cast<char>(all.at(at) ^ 1);
  return all;
}

TEST_F(KernelCacheTest, ASecondStartCompilesNothing) {
  const CacheFolder folder;
  const Start cold = cold_start(folder);
  EXPECT_GE(cold.from_source, 2u);
  EXPECT_EQ(cold.from_binary, 0u);
  EXPECT_EQ(folder.kernels().size(), cold.from_source);
  const Start warm = start();
  EXPECT_EQ(warm.from_source, 0u);
  EXPECT_EQ(warm.from_binary, cold.from_source);
  EXPECT_EQ(warm.result, cold.result);
}

TEST_F(KernelCacheTest, ADamagedEntryIsBuiltAgain) {
  const CacheFolder folder;
  const Start cold = cold_start(folder);
  const std::vector<fs::path> entries = folder.kernels();
  const std::vector<std::pair<std::string, std::function<std::string(std::string)>>> damages = {
      {"empty", [](const std::string&) { return std::string(); }},
      {"a part of the header", [](const std::string& all) { return all.substr(0, 20); }},
      {"the second half is missing", [](const std::string& all) { return all.substr(0, all.size() / 2); }},
      {"one byte too many", [](const std::string& all) { return all + '\0'; }},
      {"zeros", [](const std::string& all) { return std::string(all.size(), '\0'); }},
      {"a bit of the last byte", [](std::string all) { return flip(all, all.size() - 1); }},
      {"a bit in the middle", [](std::string all) { return flip(all, all.size() / 2); }},
      {"a bit of the key", [](std::string all) { return flip(all, 40); }},
      {"sizes beyond the file", [](std::string all) { return all.replace(8, 16, 16, '\xff'), all; }},
  };
  for (const auto& [name, damage] : damages) {
    SCOPED_TRACE(name);
    write(entries[0], damage(read(entries[0])));
    const Start mended = start();
    EXPECT_EQ(mended.from_source, 1u);
    EXPECT_EQ(mended.result, cold.result);
    EXPECT_EQ(start().from_source, 0u) << "the entry was not written again";
  }
}

TEST_F(KernelCacheTest, AnEntryOfAnotherKernelOrDriverIsNotTaken) {
  const CacheFolder folder;
  const Start cold = cold_start(folder);
  const std::vector<fs::path> entries = folder.kernels();
  ASSERT_GE(entries.size(), 2u);
  write(entries[0], read(entries[1]));
  const Start swapped = start();
  EXPECT_EQ(swapped.from_source, 1u);
  EXPECT_EQ(swapped.result, cold.result);
  cl_layer().set_driver_version("another 1.0");
  EXPECT_GE(start().from_source, cold.from_source);
  EXPECT_GE(folder.kernels().size(), 2 * entries.size());
}

TEST_F(KernelCacheTest, ABinaryThatTheDriverRefusesIsBuiltAgain) {
  const CacheFolder folder;
  const Start cold = cold_start(folder);
  cl_layer().fail("clCreateProgramWithBinary", CL_INVALID_BINARY);
  const Start again = start();
  EXPECT_EQ(again.from_source, cold.from_source);
  EXPECT_EQ(again.result, cold.result);
}

TEST_F(KernelCacheTest, WithoutAFolderThatCanBeWrittenItCompiles) {
  const CacheFolder folder;
  const Start cold = cold_start(folder);
  setenv("BACKPLANE_CACHE_DIR", "/proc/none", 1);
  for (int i = 0; i < 2; ++i) {
    const Start without = start();
    EXPECT_GE(without.from_source, cold.from_source);
    EXPECT_EQ(without.result, cold.result);
  }
}

}  // namespace
}  // namespace backplane::opencl::testing
