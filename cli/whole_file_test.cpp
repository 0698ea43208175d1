// SPDX-License-Identifier: Apache-2.0
#include "cli/whole_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

namespace backplane::cli {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

class WholeFile : public testing::Test {
 protected:
  WholeFile() {
    std::string name = (fs::temp_directory_path() / "whole_file.XXXXXX").string();
    folder_ = mkdtemp(name.data());
    file_ = folder_ / "file";
  }
  ~WholeFile() override { fs::remove_all(folder_); }

  void put(const std::string& text) const { std::ofstream(file_, std::ios::binary) << text; }
  std::string content() const {
    std::ifstream stream(file_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  // The only name in the folder, or "several".
  std::string only_name() const {
    fs::directory_iterator entry(folder_);
    const std::string name = entry->path().filename();
    return ++entry == fs::directory_iterator() ? name : "several";
  }
  mode_t mode() const {
    struct stat info = {};
    EXPECT_EQ(lstat(file_.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  std::string why(const fs::path& file, uint64_t most = kMaxFile) const {
    try {
      (void)read_file(file, most);
    } catch (const FileError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_, file_;
};

TEST_F(WholeFile, IsRead) {
  for (const size_t size : {0, 1, 65535, 65536, 65537, 300000}) {
    const std::string text(size, 'x');
    put(text);
    EXPECT_EQ(read_file(file_, size), text);
    std::string pieces;
    read_pieces(file_, size, [&](std::string_view piece) { pieces += piece; });
    EXPECT_EQ(pieces, text);
  }
}

TEST_F(WholeFile, OfTheKernelHasNoSize) {
  EXPECT_THAT(read_file("/proc/self/maps"), HasSubstr("[stack]"));
}

TEST_F(WholeFile, WhichIsNoRegularFileIsRefusedAtOnce) {
  EXPECT_THAT(why(folder_), EndsWith("' is a folder, not a regular file"));
  EXPECT_THAT(why("/dev/zero"), EndsWith("'/dev/zero' is a device, not a regular file"));
  EXPECT_THAT(why(folder_ / "none"), EndsWith("none' cannot be opened: No such file or directory"));
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(why(file_), EndsWith("' is a pipe, not a regular file"));
  EXPECT_THROW(read_pieces(file_, kMaxFile, [](std::string_view) {}), FileError);
  fs::remove(file_);
  sockaddr_un address = {AF_UNIX, {}};
  std::strncpy(address.sun_path, file_.c_str(), sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(why(file_), EndsWith("' is a socket, not a regular file"));
  close(socket);
}

TEST_F(WholeFile, LinkIsRefusedOnlyIfItIsNotTrusted) {
  put("text");
  fs::create_symlink(file_, folder_ / "link");
  EXPECT_EQ(read_file(folder_ / "link"), "text");
  try {
    (void)read_untrusted_file(folder_ / "link", kMaxFile);
    FAIL();
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), EndsWith("' is a symbolic link, not a regular file"));
  }
}

TEST_F(WholeFile, SizeIsCheckedFirst) {
  put("four");
  EXPECT_THAT(why(file_, 3), EndsWith("' has 4 bytes, more than the 3 that can be read"));
  fs::resize_file(file_, uint64_t{1} << 40);  // a hole, which takes hours to read
  EXPECT_THAT(why(file_), HasSubstr("' has 1099511627776 bytes"));
  EXPECT_THROW(read_pieces(file_, kMaxFile, [](std::string_view) { FAIL(); }), FileError);
}

TEST_F(WholeFile, IsWrittenWithTheUmask) {
  const mode_t before = umask(027);
  write_file(file_, "text");
  umask(before);
  EXPECT_EQ(content(), "text");
  EXPECT_EQ(mode(), 0640u);
  EXPECT_EQ(only_name(), "file");
}

TEST_F(WholeFile, KeepsItsPermissions) {
  put("a longer text");
  ASSERT_EQ(chmod(file_.c_str(), 0604), 0);
  write_file(file_, "text");
  EXPECT_EQ(content(), "text");
  EXPECT_EQ(mode(), 0604u);
  EXPECT_EQ(only_name(), "file");
}

TEST_F(WholeFile, KeepsItsContentWhenTheNewOneDoesNotFit) {
  put("precious");
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little = {1000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  std::string text;
  try {
    write_file(file_, std::string(2000, 'x'));
  } catch (const FileError& error) {
    text = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(text, EndsWith("file' cannot be written: File too large"));
  EXPECT_EQ(content(), "precious");
  EXPECT_EQ(only_name(), "file");
}

TEST_F(WholeFile, WritesThroughLinks) {
  put("text");
  fs::create_symlink("file", folder_ / "symbolic");
  fs::create_hard_link(file_, folder_ / "hard");
  write_file(folder_ / "symbolic", "one");
  EXPECT_EQ(content(), "one");
  EXPECT_TRUE(fs::is_symlink(folder_ / "symbolic"));
  write_file(folder_ / "hard", "two");
  EXPECT_EQ(content(), "two");
  fs::create_symlink("new", folder_ / "dangling");
  write_file(folder_ / "dangling", "three");
  EXPECT_EQ(read_file(folder_ / "new"), "three");
}

TEST_F(WholeFile, WritesThroughPipesAndDevices) {
  write_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THROW(write_file("/dev/full", "text"), FileError);
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const int reader = open(file_.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(file_, "text");
  char text[5] = {};
  EXPECT_EQ(read(reader, text, 4), 4);
  EXPECT_STREQ(text, "text");
  EXPECT_TRUE(fs::is_fifo(file_));
  close(reader);
}

TEST_F(WholeFile, ThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(write_file(folder_, "text"), FileError);
  EXPECT_THROW(write_file(folder_ / "none" / "file", "text"), FileError);
  EXPECT_THROW(write_file("", "text"), FileError);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(WholeFile, IsNotWrittenWithoutThePermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everything";
  put("precious");
  ASSERT_EQ(chmod(file_.c_str(), 0400), 0);
  EXPECT_THROW(write_file(file_, "text"), FileError);
  EXPECT_EQ(content(), "precious");
  // The folder allows no new file, but the file may be written.
  ASSERT_EQ(chmod(file_.c_str(), 0600), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0500), 0);
  write_file(file_, "text");
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(content(), "text");
}

}  // namespace
}  // namespace backplane::cli
