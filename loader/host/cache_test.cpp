// SPDX-License-Identifier: Apache-2.0
#include "host/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

namespace backplane {
namespace {

namespace fs = std::filesystem;

class WriteWhole : public ::testing::Test {
 protected:
  WriteWhole() {
    std::string folder = ::testing::TempDir() + "write_whole_XXXXXX";
    root_ = ::mkdtemp(folder.data());
  }
  ~WriteWhole() override {
    std::error_code error;
    fs::remove_all(root_, error);
  }
  static std::string content(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static mode_t mode(const fs::path& path) {
    struct stat seen {};
    return ::stat(path.c_str(), &seen) == 0 ? seen.st_mode & 07777 : 0;
  }
  fs::path root_;
};

TEST_F(WriteWhole, ReplacesTheFileAndLeavesNothingElse) {
  const fs::path file = root_ / "a/b/file";
  EXPECT_TRUE(write_whole(file, "one"));
  EXPECT_TRUE(write_whole(file, std::string(100'000, 'x')));
  EXPECT_EQ(content(file), std::string(100'000, 'x'));
  fs::create_directory(root_ / "a/b/folder");
  EXPECT_FALSE(write_whole(root_ / "a/b/folder", "a folder stays"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "a/b"), {}), 2);
}

// In another container, a process with the same id as this one may be writing the same file.
TEST_F(WriteWhole, LeavesTheTemporaryFilesOfOthersAlone) {
  const fs::path file = root_ / "file";
  constexpr int kOthers = 100;
  const auto theirs = [&](int i) { return file.string() + '.' + std::to_string(::getpid()) + '.' + std::to_string(i); };
  for (int i = 1; i <= kOthers; ++i) std::ofstream(theirs(i)) << i;
  EXPECT_TRUE(write_whole(file, "mine"));
  EXPECT_EQ(content(file), "mine");
  for (int i = 1; i <= kOthers; ++i) EXPECT_EQ(content(theirs(i)), std::to_string(i));
}

TEST_F(WriteWhole, CreatesFoldersThatOnlyTheirUserMayEnter) {
  const mode_t before = ::umask(0);
  EXPECT_TRUE(write_whole(root_ / "a/b/file", "x"));
  ::umask(before);
  EXPECT_EQ(mode(root_ / "a"), 0700u);
  EXPECT_EQ(mode(root_ / "a/b"), 0700u);
  EXPECT_EQ(mode(root_ / "a/b/file"), 0644u);
}

}  // namespace
}  // namespace backplane
