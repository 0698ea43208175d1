// SPDX-License-Identifier: Apache-2.0
// Files that other users can write to or replace.
#include "discover/writers.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "discover/environment.h"
#include "discover/known.h"
#include "discover/library.h"
#include "discover/owners.h"
#include "discover/testing.h"
#include "discover/verdict.h"
#include "host/variable.h"
#include "testing/manifest_writer.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::kFake;
using testing::kPlugins;
using testing::Request;
using testing::Sandbox;
using testing::tried;

class Writable : public ::testing::Test {
 protected:
  Candidate look() const {
    auto env = Request().only_given().file(library).create();
    return (*env)->candidates()[0];
  }
  void expect_untrusted(const std::string& in_text) const {
    const Candidate candidate = look();
    EXPECT_EQ(candidate.refusal, BP_REFUSED_UNTRUSTED) << candidate.text;
    EXPECT_THAT(candidate.text, HasSubstr(in_text));
  }
  void SetUp() override {
    fs::create_directories(library.parent_path());
    fs::copy_file(kFake, library);
  }
  const Sandbox sandbox;
  const fs::path library = sandbox.root() / "a/b/x.so";
};

TEST_F(Writable, FilesAreRefused) {
  EXPECT_EQ(look().refusal, BP_REFUSED_NONE) << look().text;
  ::chmod(library.c_str(), 0777);
  expect_untrusted("it is world-writable");
}

TEST_F(Writable, FilesAndFoldersOfOtherUsersAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  for (const fs::path& path : {library, library.parent_path(), sandbox.root() / "a"}) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
    expect_untrusted("it belongs to another user (number 12345)");
    CheckedFolders checked;
    EXPECT_EQ(check_writers(library, &checked).code, BP_REFUSED_UNTRUSTED);
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
  EXPECT_FALSE(check_writers(library));
}

TEST_F(Writable, OtherUsersAreSeenAlsoWhereTheFolderWasCheckedBefore) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  CheckedFolders checked;
  EXPECT_FALSE(check_writers(library, &checked));
  ASSERT_EQ(::chown(library.c_str(), 12345, 0), 0);
  EXPECT_EQ(check_writers(library, &checked).code, BP_REFUSED_UNTRUSTED);
  ASSERT_EQ(::chown(library.c_str(), 0, 12345), 0);
  ::chmod(library.c_str(), 0664);
  EXPECT_EQ(check_writers(library, &checked).code, BP_REFUSED_UNTRUSTED);
}

TEST_F(Writable, GroupsWithOtherMembersAreRefused) {
  ::chmod(library.c_str(), 0664);
  ::chmod(library.parent_path().c_str(), 0775);
  EXPECT_EQ(!check_writers(library), !has_other_members(::getegid(), ::geteuid()));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to another group";
  for (const fs::path& path : {library, library.parent_path()}) {
    ASSERT_EQ(::chown(path.c_str(), 0, 12345), 0);
    expect_untrusted("it is writable by its group, which may have other members; chmod g-w fixes that");
    ::chmod(path.c_str(), 0755);
    EXPECT_FALSE(check_writers(library));
    ::chmod(path.c_str(), 0775);
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
  ::chmod(library.parent_path().c_str(), 0755);
}

TEST_F(Writable, AnAccessControlListIsRefused) {
  // Version 2; user::rw-, user:12345:rw-, group::r--, mask::rw-, other::r--.
  struct Entry {
    uint16_t tag, rights;
    uint32_t id;
  };
  struct {
    uint32_t version = 2;
    Entry entries[5] = {
        {1, 6, UINT32_MAX}, {2, 6, 12345}, {4, 4, UINT32_MAX}, {16, 6, UINT32_MAX}, {32, 4, UINT32_MAX}};
  } list;
  if (::setxattr(library.c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0)
    GTEST_SKIP() << "the file system has no access control lists";
  expect_untrusted("it is writable by others in its access control list");
}

TEST(Owners, AreRootTheUserAndTheOwnerOfTheLoader) {
  EXPECT_TRUE(is_trusted_owner(0));
  EXPECT_TRUE(is_trusted_owner(::geteuid()));
  struct stat own {};
  ASSERT_EQ(::stat("/proc/self/exe", &own), 0);
  EXPECT_TRUE(is_trusted_owner(own.st_uid));
  EXPECT_FALSE(is_trusted_owner(12345));
  EXPECT_TRUE(has_other_members(12345, 0));
  EXPECT_FALSE(has_other_members(12345, 12345));  // the group of one user has the user's number
}

TEST_F(Writable, FoldersAreRefusedAlsoWithAStickyBit) {
  for (const mode_t mode : {0777, 01777}) {
    ::chmod(library.parent_path().c_str(), mode);
    expect_untrusted((sandbox.root() / "a/b").string() + ": it is world-writable");
  }
}

TEST_F(Writable, FoldersOnTheWayAreRefusedUnlessSticky) {
  ::chmod((sandbox.root() / "a").c_str(), 0777);
  expect_untrusted((sandbox.root() / "a").string() + ": it is world-writable");
  ::chmod((sandbox.root() / "a").c_str(), 01777);
  EXPECT_EQ(look().refusal, BP_REFUSED_NONE) << look().text;
}

TEST_F(Writable, LinksAreFollowedThroughTheirFolders) {
  fs::create_directory(sandbox.root() / "open");
  ::chmod((sandbox.root() / "open").c_str(), 0777);
  fs::create_symlink(library, sandbox.root() / "open/x.so");
  auto env = Request().only_given().file(sandbox.root() / "open/x.so").create();
  EXPECT_EQ((*env)->candidates()[0].refusal, BP_REFUSED_UNTRUSTED) << (*env)->candidates()[0].text;
}

class Sticky : public ::testing::Test {
 protected:
  static void expect_untrusted(const fs::path& path, const std::string& in_text, CheckedFolders* checked = nullptr) {
    const Refusal refusal = check_writers(path, checked);
    EXPECT_EQ(refusal.code, BP_REFUSED_UNTRUSTED) << path;
    EXPECT_THAT(refusal.text, HasSubstr(in_text));
  }
  void SetUp() override {
    fs::create_directories(mine);
    ::chmod(shared.c_str(), 01777);
    sandbox.write("shared/theirs.so", "");
  }
  const Sandbox sandbox;
  const fs::path shared = sandbox.root() / "shared", mine = shared / "mine";
};

TEST_F(Sticky, FilesInItAreRefusedOnEveryWay) {
  fs::create_symlink("../theirs.so", mine / "relative.so");
  fs::create_symlink("./../../shared/theirs.so", mine / "far.so");
  fs::create_symlink(shared / "theirs.so", mine / "absolute.so");
  for (const fs::path& path :
       {mine / "relative.so", mine / "far.so", mine / "absolute.so", mine / ".." / "theirs.so", shared / "theirs.so"})
    expect_untrusted(path, shared.string() + ": it is world-writable");
  sandbox.write("shared/mine/good.so", "");
  fs::create_symlink("../mine/good.so", mine / "good_link.so");
  EXPECT_FALSE(check_writers(mine / "good_link.so"));
}

TEST_F(Sticky, FoldersOfOtherUsersInItAreRefusedOnEveryWay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  fs::create_directory(shared / "theirs");
  sandbox.write("shared/theirs/x.so", "");
  ASSERT_EQ(::chown((shared / "theirs").c_str(), 12345, 0), 0);
  fs::create_symlink("../theirs/x.so", mine / "x.so");
  for (const fs::path& path : {mine / "x.so", mine / "../theirs/x.so", shared / "theirs/x.so"})
    expect_untrusted(path, (shared / "theirs").string() + ": it belongs to another user");
}

// Another user could show a file while it is opened and hide it from the check. This process may rename the folder too,
// so the test does the same.
TEST_F(Sticky, AnOpenFileMustStillBeWhereItsPathLeads) {
  const fs::path library = sandbox.write("shared/mine/x.so", ""), moved = shared / "moved/x.so";
  File opened;
  ASSERT_FALSE(opened.open(library));
  EXPECT_FALSE(check_writers(library, opened));
  const auto expect_refused = [&](const fs::path& path, const char* why, CheckedFolders* checked = nullptr) {
    const Refusal refusal = check_writers(path, opened, checked);
    EXPECT_EQ(refusal.code, BP_REFUSED_UNTRUSTED) << path;
    EXPECT_THAT(refusal.text, HasSubstr(why));
  };
  constexpr const char* kReplaced = "replaced while it was being checked";
  fs::rename(mine, shared / "moved");
  expect_refused(library, "its path leads to no file");
  sandbox.write("shared/mine/x.so", "");
  expect_refused(library, kReplaced);
  CheckedFolders checked;
  EXPECT_FALSE(check_writers(moved, opened, &checked));
  fs::remove(moved);
  sandbox.write("shared/moved/x.so", "");
  expect_refused(moved, kReplaced, &checked);
}

// A path that leads to no file does not make its folder count as checked.
TEST_F(Sticky, IsNotTrustedAfterAnotherPathInItWasAccepted) {
  for (const char* name : {"missing.so", "mine"}) {
    CheckedFolders checked;
    EXPECT_FALSE(check_writers(shared / name, &checked)) << name;
    expect_untrusted(shared / "theirs.so", shared.string() + ": it is world-writable", &checked);
  }
}

TEST_F(Writable, ElevatedPrivilegesTrustRootAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "the files would have to belong to root";
  ::chmod(library.c_str(), 0775);
  EXPECT_FALSE(check_writers(library));
  pretend_elevated(true);
  const Refusal group = check_writers(library);
  ::chmod(library.c_str(), 0755);
  const Refusal root = check_writers(library);
  ASSERT_EQ(::chown(library.c_str(), 12345, 0), 0);
  const Refusal other = check_writers(library);
  pretend_elevated(false);
  EXPECT_THAT(group.text, HasSubstr("it is writable by its group, and this process has elevated privileges"));
  EXPECT_FALSE(root) << root.text;
  EXPECT_THAT(other.text, HasSubstr("does not belong to root"));
}

TEST(Exchanged, AFileOfEqualSizeAndTimeIsNoticed) {
  const Sandbox sandbox;
  std::string good = bytes_of(kFake), bad = bytes_of(kPlugins / "bad_crash_in_query.so");
  good.resize(std::max(good.size(), bad.size()));
  bad.resize(good.size());
  const fs::path library = sandbox.write("x.so", good);
  const auto time = fs::last_write_time(library);
  EXPECT_EQ(tried(library, "cached").refusal, BP_REFUSED_NONE);  // probed and loaded

  fs::remove(library);  // replaced, not overwritten, because this process has the old file mapped
  sandbox.write("x.so", bad);
  fs::last_write_time(library, time);
  const Candidate candidate = tried(library, "cached");
  EXPECT_EQ(candidate.refusal, BP_REFUSED_CRASHED) << candidate.text;

  fs::remove(library);
  good.back() ^= 1;  // a byte that is not in any loaded segment
  sandbox.write("x.so", good);
  EXPECT_THAT(tried(library, "cached").text, HasSubstr("this process has loaded an earlier version"));
}

TEST(Exchanged, AWriteInPlaceChangesWhatIsKnownOfTheFile) {
  const Sandbox sandbox;
  const fs::path file = sandbox.write("x.so", "one");
  const auto time = fs::last_write_time(file);
  const FileFacts before = facts_of(file);
  ::usleep(20'000);  // the clock of the file system advances in steps
  sandbox.write("x.so", "two");
  fs::last_write_time(file, time);
  EXPECT_EQ(facts_of(file).size, before.size);
  EXPECT_EQ(facts_of(file).modified_ns, before.modified_ns);
  EXPECT_NE(facts_of(file), before);
}

// Times after the year 2262, in nanoseconds, do not fit into 64 bits.
TEST(Exchanged, TimesInTheFarFutureAreCompared) {
  const Sandbox sandbox;
  const fs::path file = sandbox.write("x.so", "");
  const auto facts_at = [&](time_t seconds) {
    const timespec times[] = {{0, UTIME_OMIT}, {seconds, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
    return facts_of(file);
  };
  const FileFacts before = facts_at(13'000'000'000);
  ::usleep(20'000);  // the clock of the file system advances in steps
  EXPECT_NE(facts_at(13'000'000'001), before);
}

TEST(Exchanged, WhatIsLoadedIsWhatWasHashed) {
  const Sandbox sandbox;
  const fs::path library = sandbox.root() / "x.so";
  fs::copy_file(kFake, library);
  File opened;
  ASSERT_FALSE(opened.open(library));
  fs::remove(library);
  fs::copy_file(kPlugins / "bad_crash_on_load.so", library);  // if it were loaded, it would crash this process
  bp_plugin_query_t query = nullptr;
  const Refusal refusal = load_library(library, opened, "content", query);
  EXPECT_EQ(refusal.code, BP_REFUSED_UNTRUSTED);
  EXPECT_THAT(refusal.text, HasSubstr("replaced"));
}

}  // namespace
}  // namespace backplane
