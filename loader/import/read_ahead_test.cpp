// SPDX-License-Identifier: Apache-2.0
#include "import/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

namespace backplane::model {
namespace {

constexpr size_t kSize = 80 << 20;

// Whether the file's last page is in the page cache. Does not touch the page.
bool last_page_is_there(int descriptor) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* mapped = ::mmap(nullptr, page, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(kSize - page));
  unsigned char there = 0;
  EXPECT_EQ(::mincore(mapped, page, &there), 0);
  ::munmap(mapped, page);
  return there & 1;
}

TEST(ReadAhead, ALargeFileIsReadIntoThePageCache) {
  std::string path = BACKPLANE_BUILD_DIR "/read_ahead_XXXXXX";
  const int descriptor = ::mkstemp(path.data());
  ASSERT_GE(descriptor, 0);
  ::unlink(path.c_str());
  struct statfs system {};
  ASSERT_EQ(::fstatfs(descriptor, &system), 0);
  if (system.f_type == TMPFS_MAGIC)
    GTEST_SKIP() << BACKPLANE_BUILD_DIR " is kept in memory, where nothing is read ahead";
  ASSERT_EQ(::ftruncate(descriptor, kSize), 0);
  EXPECT_FALSE(last_page_is_there(descriptor));
  { const ReadAhead ends_early(descriptor, kSize); }
  const ReadAhead reading(descriptor, kSize);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!last_page_is_there(descriptor) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(last_page_is_there(descriptor));
  ::close(descriptor);  // the reader has its own copy
}

}  // namespace
}  // namespace backplane::model
