// SPDX-License-Identifier: Apache-2.0
#include "import/mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "testing/emulated.h"

namespace backplane::model {
namespace {

namespace fs = std::filesystem;

// Callers pass resolved paths. If such a path contains a link, the link was created after the path was resolved.
TEST(Mapping, FollowsNoLinkThatTookTheFilesPlace) {
  std::string made = (fs::canonical(fs::temp_directory_path()) / "mapping_XXXXXX").string();
  ASSERT_NE(::mkdtemp(made.data()), nullptr);
  const fs::path folder = made;
  fs::create_directory(folder / "real");
  std::ofstream(folder / "real/w.bin") << "12345678";
  fs::create_symlink(folder / "real/w.bin", folder / "w.bin");
  fs::create_symlink(folder / "real", folder / "link");
  EXPECT_TRUE(Mapping::open_canonical((folder / "real/w.bin").string()).ok());
  EXPECT_TRUE(Mapping::open((folder / "w.bin").string()).ok());
  const auto file = Mapping::open_canonical((folder / "w.bin").string());
  const auto below = Mapping::open_canonical((folder / "link/w.bin").string());
  fs::remove_all(folder);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(std::string(file.status().text()), ::testing::HasSubstr("symbolic links"));
  if (testing::is_emulated()) GTEST_SKIP() << "the emulator lacks openat2, which finds links to folders";
  ASSERT_FALSE(below.ok());
  EXPECT_THAT(std::string(below.status().text()), ::testing::HasSubstr("symbolic links"));
}

}  // namespace
}  // namespace backplane::model
