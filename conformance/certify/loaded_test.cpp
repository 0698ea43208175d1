// SPDX-License-Identifier: Apache-2.0
#include "certify/loaded.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace backplane::conform {
namespace {

namespace fs = std::filesystem;

// A folder of files, each mapped into this process.
class MappedFiles {
 public:
  explicit MappedFiles(int count) {
    fs::create_directories(folder_);
    for (int i = 0; i < count; ++i) {
      const std::string path = (folder_ / std::to_string(i)).string();
      std::ofstream(path) << "x";
      const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      void* const at = mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, file, 0);
      close(file);
      if (at != MAP_FAILED) mapped_.push_back(at);
    }
  }
  MappedFiles(const MappedFiles&) = delete;
  ~MappedFiles() {
    for (void* const at : mapped_) munmap(at, 1);
    fs::remove_all(folder_);
  }
  size_t count() const { return mapped_.size(); }

 private:
  const fs::path folder_ = fs::path(testing::TempDir()) / ("backplane_loaded_test_" + std::to_string(getpid()));
  std::vector<void*> mapped_;
};

std::vector<std::string> unreadable(const LoadedFiles& files) {
  std::vector<std::string> paths;
  for (const LoadedFile& file : files.hashed())
    if (file.sha256.empty()) paths.push_back(file.path);
  return paths;
}

TEST(LoadedFiles, MoreFilesThanAreNotedAreNotHidden) {
  LoadedFiles files;
  {
    const MappedFiles few(3);
    files.note(getpid());
    EXPECT_EQ(std::ranges::count_if(files.hashed(),
                                    [](const LoadedFile& file) {
                                      return file.path.find("backplane_loaded_test_") != std::string::npos &&
                                             !file.sha256.empty();
                                    }),
              3);
    EXPECT_THAT(unreadable(files), testing::IsEmpty());
  }
  const MappedFiles many(4200);
  if (many.count() != 4200) GTEST_SKIP() << "only " << many.count() << " files can be mapped";
  LoadedFiles others;
  others.note(getpid());
  EXPECT_THAT(unreadable(others), testing::ElementsAre("(more files than 4096)"));
  files.note(getpid());  // several processes with few files each may have too many together
  EXPECT_THAT(unreadable(files), testing::Contains("(more files than 4096)"));
}

}  // namespace
}  // namespace backplane::conform
