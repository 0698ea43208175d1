// SPDX-License-Identifier: Apache-2.0
// The search for backends, and its order.
#include "discover/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "discover/environment.h"
#include "discover/testing.h"
#include "host/cache.h"
#include "host/variable.h"
#include "testing/manifest_writer.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using testing::Request;
using testing::Sandbox;
using ::testing::SizeIs;

// The files in the sandbox that the search finds, in order. Each is preceded by the source that named it.
std::vector<std::string> paths(const Sandbox& sandbox, const Request& request) {
  std::vector<std::string> seen;
  for (const Found& found : search(request.with(search_paths)))
    if (const std::string path = found.path.string(); path.starts_with(sandbox.root().string()))
      seen.push_back(found.found_by + " " + path.substr(sandbox.root().string().size() + 1));
  return seen;
}

class Places : public ::testing::Test {
 protected:
  Places() {
    for (const char* file : {"env.json", "added.so", "folder/b.json", "folder/a.json", "folder/B.json", "folder/a.txt",
                             "home/backplane/backends.d/h.json", "system/backplane/backends.d/s.json",
                             "home_config/backplane/backends.d/hc.json", "system_config/backplane/backends.d/sc.json"})
      sandbox.write(file, "");
    request.file(sandbox.root() / "given.so").folder(sandbox.root() / "folder");
  }
  Sandbox sandbox;
  Request request;
};

TEST_F(Places, FollowTheDocumentedOrder) {
  sandbox.set("BACKPLANE_ADD_BACKEND_FILES", "::" + (sandbox.root() / "added.so").string() + ":");
  EXPECT_THAT(paths(sandbox, request),
              ElementsAre("backend_files given.so", "BACKPLANE_ADD_BACKEND_FILES added.so",
                          "backend_folders folder/B.json", "backend_folders folder/a.json",
                          "backend_folders folder/b.json", "XDG_CONFIG_HOME home_config/backplane/backends.d/hc.json",
                          "XDG_CONFIG_DIRS system_config/backplane/backends.d/sc.json",
                          "XDG_DATA_HOME home/backplane/backends.d/h.json",
                          "XDG_DATA_DIRS system/backplane/backends.d/s.json"));
}

TEST_F(Places, BackendFilesReplaceFoldersButNotWhatIsAdded) {
  sandbox.set("BACKPLANE_BACKEND_FILES", (sandbox.root() / "env.json").string());
  sandbox.set("BACKPLANE_ADD_BACKEND_FILES", (sandbox.root() / "added.so").string());
  EXPECT_THAT(paths(sandbox, request), ElementsAre("backend_files given.so", "BACKPLANE_BACKEND_FILES env.json",
                                                   "BACKPLANE_ADD_BACKEND_FILES added.so"));
  sandbox.set("BACKPLANE_BACKEND_FILES", "");  // set but empty: no files, and no folders either
  EXPECT_THAT(paths(sandbox, request), ElementsAre("backend_files given.so", "BACKPLANE_ADD_BACKEND_FILES added.so"));
}

TEST_F(Places, OnlyGivenIgnoresTheEnvironment) {
  sandbox.set("BACKPLANE_BACKEND_FILES", (sandbox.root() / "env.json").string());
  EXPECT_THAT(paths(sandbox, request.only_given()),
              ElementsAre("backend_files given.so", "backend_folders folder/B.json", "backend_folders folder/a.json",
                          "backend_folders folder/b.json"));
}

TEST_F(Places, AFolderIsReadOnceAndAMissingOneIsReported) {
  request.folder(sandbox.root() / "folder/../folder").folder(sandbox.root() / "nowhere");
  EXPECT_THAT(paths(sandbox, request.only_given()), SizeIs(5));
  auto env = request.create();
  ASSERT_TRUE(env.ok());
  EXPECT_THAT((*env)->search_paths(), SizeIs(4));
  EXPECT_EQ((*env)->candidates().back().refusal, BP_REFUSED_MISSING);
  EXPECT_THAT((*env)->candidates().back().text, HasSubstr("nowhere"));
}

TEST_F(Places, ElevatedPrivilegesIgnoreTheEnvironmentAndTheHome) {
  sandbox.set("BACKPLANE_BACKEND_FILES", (sandbox.root() / "env.json").string());
  sandbox.set("HOME", (sandbox.root() / "home").string());
  pretend_elevated(true);
  const auto seen = paths(sandbox, request);
  const fs::path cache = cache_folder();
  pretend_elevated(false);
  EXPECT_THAT(seen, ElementsAre("backend_files given.so", "backend_folders folder/B.json",
                                "backend_folders folder/a.json", "backend_folders folder/b.json"));
  EXPECT_TRUE(cache.empty());
}

TEST_F(Places, RelativeDataFoldersAreIgnored) {
  sandbox.set("XDG_DATA_HOME", "home");
  sandbox.set("XDG_CONFIG_HOME", "home_config");
  sandbox.set("XDG_CONFIG_DIRS", "system_config");
  EXPECT_THAT(paths(sandbox, Request()), ElementsAre("XDG_DATA_DIRS system/backplane/backends.d/s.json"));
  std::vector<std::string> sources;
  for (const SearchPath& path : Request().with(search_paths)) sources.push_back(path.found_by);
  EXPECT_THAT(sources, IsSupersetOf({"XDG_DATA_DIRS", "system"}));
  for (const char* ignored : {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"})
    EXPECT_THAT(sources, Not(Contains(ignored)));
}

TEST(LoaderFolder, IsThisProgramsEvenAfterAChangeOfFolder) {
  EXPECT_EQ(loader_folder(), fs::read_symlink("/proc/self/exe").parent_path());
  const fs::path before = fs::current_path();
  fs::current_path("/");
  EXPECT_EQ(loader_folder(), fs::read_symlink("/proc/self/exe").parent_path());
  fs::current_path(before);
}

}  // namespace
}  // namespace backplane
