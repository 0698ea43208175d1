// SPDX-License-Identifier: Apache-2.0
// Listing devices from stored entries, without opening libraries.
#include "discover/known.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/abi.h"
#include "discover/isolation.h"
#include "discover/library.h"
#include "discover/testing.h"
#include "discover/verdict.h"
#include "testing/manifest_writer.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using testing::kFake;
using testing::kPlugins;
using testing::manifest;
using testing::Request;
using testing::Sandbox;
using ::testing::SizeIs;

// Counts how often any process opens a file in a folder during the lifetime of this object.
class Opened {
 public:
  explicit Opened(const fs::path& folder) : watch_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(watch_, folder.c_str(), IN_OPEN), 0);
  }
  ~Opened() { ::close(watch_); }
  Opened(const Opened&) = delete;

  // The number of opens since the last call.
  size_t count() const {
    char events[64 << 10];
    size_t number = 0;
    for (ssize_t got; (got = ::read(watch_, events, sizeof events)) > 0;)
      for (ssize_t at = 0; at < got; ++number)
        at += static_cast<ssize_t>(sizeof(inotify_event)) + reinterpret_cast<const inotify_event*>(events + at)->len;
    return number;
  }

 private:
  int watch_;
};

// An entry without devices that was made three seconds after the library's last change.
KnownBackend entry_of(const fs::path& library, const std::string& id) {
  KnownBackend known;
  known.facts = facts_of(library);
  known.seen_ns = known.facts.changed_ns + 3'000'000'000;
  known.id = id;
  known.version = BP_ABI_VERSION;
  return known;
}

TEST(Listing, OfFiftyKnownBackendsOpensNoLibrary) {
  const Sandbox sandbox;
  const std::string where = situation({});
  for (int i = 0; i < 50; ++i) {
    const std::string id = "b" + std::to_string(i);
    const fs::path library = sandbox.write("lib/" + id + ".so", "opening this would refuse it");
    sandbox.write("home/backplane/backends.d/" + id + ".json", manifest(id, library.string()));
    KnownBackend known = entry_of(library, id);
    bp_device_info_t info{};
    info.kind = BP_DEVICE_NPU;
    info.name = abi::text("a device");
    known.devices.emplace_back(info);
    remember_backend(library, where, known);
  }
  const auto request = Request().option("loader.load", "when_used").option("loader.select", "b*");
  const Opened opened(sandbox.root() / "lib");
  auto fastest = std::chrono::nanoseconds::max();
  for (int run = 0; run < 30; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    auto env = request.create();
    fastest = std::min(fastest, std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin));
    ASSERT_TRUE(env.ok()) << env.status().text();
    ASSERT_THAT((*env)->devices(), SizeIs(50));
    EXPECT_EQ((*env)->devices()[49]->backend().id.substr(0, 1), "b");
    EXPECT_EQ(abi::view((*env)->devices()[7]->info().name), "a device");
    EXPECT_EQ((*env)->devices()[7]->info().kind, BP_DEVICE_NPU);
  }
  EXPECT_EQ(opened.count(), 0u);
  const double ms = std::chrono::duration<double, std::milli>(fastest).count();
  RecordProperty("milliseconds", std::to_string(ms));
  std::printf("50 known backends in %.2f ms\n", ms);
  // Usually about 2 ms; the bound is generous for slow and busy machines. Opening the libraries would take hundreds.
  if (own_sanitizer() == BP_SANITIZER_NONE) {
    EXPECT_LT(ms, 20.0);
  }
}

TEST(Listing, IsOfOneStateOfTheLibraryAndLoadsItWhenItIsUsed) {
  const Sandbox sandbox;
  const fs::path library = sandbox.root() / "lib/x.so";
  fs::create_directory(library.parent_path());
  fs::copy_file(kFake, library);
  const fs::path file = sandbox.write("fake.json", manifest("fake", library.string()));
  ::usleep(2'100'000);  // an entry is used only if the library had been unchanged for two seconds when it was made
  const auto list = Request().only_given().file(file).option("loader.load", "when_used");
  const Opened opened(library.parent_path());
  ASSERT_TRUE(list.create().ok());
  EXPECT_GT(opened.count(), 0u) << "it was not known";
  {
    auto env = list.create();
    ASSERT_THAT((*env)->devices(), SizeIs(1));
    EXPECT_EQ(opened.count(), 0u);
    EXPECT_EQ((*env)->candidates()[0].version, BP_ABI_VERSION);
    EXPECT_EQ(abi::view((*env)->devices()[0]->info().vendor), "Backplane tests");
    EXPECT_TRUE((*env)->devices()[0]->open().ok());
    EXPECT_GT(opened.count(), 0u);
    EXPECT_EQ((*env)->devices()[0]->newest().opsets.at(""), 1000u);
  }
  EXPECT_THAT((*Request(list).option("fake.devices", "2").create())->devices(), SizeIs(2)) << "another situation";
  const auto time = fs::last_write_time(library);
  fs::remove(library);
  fs::copy_file(kPlugins / "bad_crash_on_load.so", library);
  fs::last_write_time(library, time);
  EXPECT_EQ((*list.create())->candidates()[0].refusal, BP_REFUSED_CRASHED);
}

// An entry also states that a backend has no device here. It is used until something changes on which devices depend.
TEST(Listing, RemembersThatThereIsNoDevice) {
  const Sandbox sandbox;
  const fs::path library = sandbox.root() / "lib/x.so", drivers = sandbox.root() / "drivers";
  fs::create_directory(library.parent_path());
  fs::create_directory(drivers);
  fs::copy_file(kFake, library);
  const fs::path file = sandbox.write("fake.json", manifest("fake", library.string()));
  ::usleep(2'100'000);  // an entry is used only if the library had been unchanged for two seconds when it was made
  const auto list = Request()
                        .only_given()
                        .file(file)
                        .option("loader.load", "when_used")
                        .option("fake.devices", "0")
                        .option("fake.path", drivers.string());
  const auto refusal = [&] {
    const auto env = list.create();
    return std::pair((*env)->candidates()[0].refusal, (*env)->candidates()[0].text);
  };
  const auto first = refusal();
  EXPECT_EQ(first.first, BP_REFUSED_DEVICES);
  const Opened opened(library.parent_path());
  EXPECT_EQ(refusal(), first);
  EXPECT_EQ(opened.count(), 0u);
  for (const char* content : {"new", "overwritten in place"}) {
    sandbox.write("drivers/libnew.so.1", content);
    EXPECT_EQ(refusal(), first);
    EXPECT_GT(opened.count(), 0u) << content;
  }
  const auto now = Request(list).option("loader.load", "now").create();
  EXPECT_GT(opened.count(), 0u) << "a session looks again";
  EXPECT_EQ((*now)->candidates()[0].refusal, BP_REFUSED_DEVICES);
}

// With loader.load=now, the loader does not use entries, and replaces those that are wrong.
TEST(Listing, WrongEntriesAreReplaced) {
  const Sandbox sandbox;
  const fs::path library = sandbox.root() / "lib/x.so";
  fs::create_directory(library.parent_path());
  fs::copy_file(kFake, library);
  const fs::path file = sandbox.write("fake.json", manifest("fake", library.string()));
  const auto request = Request().only_given().file(file);
  const auto listed = [&](const char* load, const char* devices) {
    auto env = Request(request).option("loader.load", load).option("fake.devices", devices).create();
    return (*env)->devices().size();
  };
  KnownBackend known = entry_of(library, "fake");
  known.no_device = "there was none";
  const std::string one = situation({{"devices", "1"}}), none = situation({{"devices", "0"}});
  remember_backend(library, one, known);
  EXPECT_EQ(listed("when_used", "1"), 0u);
  EXPECT_EQ(listed("now", "1"), 1u);
  EXPECT_EQ(listed("when_used", "1"), 1u);
  known.no_device.clear();
  known.devices.emplace_back(bp_device_info_t{});
  remember_backend(library, none, known);
  EXPECT_EQ(listed("when_used", "0"), 1u);
  EXPECT_EQ(listed("now", "0"), 0u);
  EXPECT_EQ(listed("when_used", "0"), 0u);
}

// The entry has one device too many. The first opening of a device finds this out after creating the backend, which
// stays loaded as long as the environment exists. The second one must not load it again.
TEST(Listing, AStaleBackendIsNotLoadedAgain) {
  const Sandbox sandbox;
  const fs::path library = sandbox.root() / "lib/x.so";
  fs::create_directory(library.parent_path());
  fs::copy_file(kFake, library);
  const fs::path file = sandbox.write("fake.json", manifest("fake", library.string(), R"(, "isolation": "process")"));
  Isolation isolation;
  const char* paths = std::getenv("BACKPLANE_ISOLATE_PATHS");
  ASSERT_TRUE(isolation.set("isolate_paths", paths ? paths : "").ok());
  KnownBackend known = entry_of(library, "fake");
  for (int i = 0; i < 2; ++i) known.devices.emplace_back(bp_device_info_t{});
  remember_backend(library, situation({{"", isolation.text()}}), known);
  auto env = Request().only_given().file(file).option("loader.load", "when_used").create();
  ASSERT_THAT((*env)->devices(), SizeIs(2));
  Device& device = *(*env)->devices()[1];
  EXPECT_EQ(device.open().status().code(), BP_STALE);
  const Opened opened(library.parent_path());
  EXPECT_EQ(device.open().status().code(), BP_STALE);
  EXPECT_EQ(opened.count(), 0u);
}

TEST(Known, EntriesAreKeptForAMonth) {
  const Sandbox sandbox;
  const fs::path old = sandbox.write("cache/backplane/backends/old", ""),
                 young = sandbox.write("cache/backplane/backends/young", "");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(31 * 24));
  fs::last_write_time(young, fs::file_time_type::clock::now() - std::chrono::hours(29 * 24));
  remember_backend(sandbox.root() / "x.so", "", {});
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
}

TEST(Known, ASituationIsTheSameInEachLogin) {
  Sandbox sandbox;
  sandbox.set("XDG_SESSION_ID", "1");
  const std::string first = situation({});
  sandbox.set("XDG_SESSION_ID", "2");
  EXPECT_EQ(situation({}), first);
}

TEST(Known, ASituationChangesWithTheFoldersOfPathsInOptionsAndVariables) {
  const Sandbox sandbox;
  const fs::path one = sandbox.root() / "one", two = sandbox.root() / "two";
  fs::create_directory(one), fs::create_directory(two);
  const Host::Options options{{"path", "/does/not/exist:" + one.string()}};
  ::setenv("BACKPLANE_FAKE_PATH", two.c_str(), 1);
  const std::string before = situation(options);
  EXPECT_EQ(situation(options), before);
  ::usleep(20'000);  // the time stamps of folders advance in steps
  sandbox.write("one/libnew.so", "");
  const std::string with_one = situation(options);
  EXPECT_NE(with_one, before) << "of an option";
  sandbox.write("two/libnew.so", "");
  EXPECT_NE(situation(options), with_one) << "of a variable";
  ::unsetenv("BACKPLANE_FAKE_PATH");
}

TEST(Known, AnEntryIsReadWholeOrNotAtAll) {
  bp_device_info_t info{};
  info.index = 7;
  info.kind = BP_DEVICE_GPU;
  info.name = abi::text("g");
  const uint32_t peers[] = {1, 2};
  info.peers = peers, info.peer_count = 2;
  const bp_option_t properties[] = {{abi::text("clock"), abi::text("1")}};
  info.properties = properties, info.property_count = 1, info.property_stride = sizeof(bp_option_t);
  KnownBackend known;
  known.id = "x";
  known.devices.emplace_back(info);
  const std::string bytes = write_known(known);
  const auto read = read_known(bytes);
  ASSERT_TRUE(read);
  std::vector<bp_option_t> options;
  const bp_device_info_t again = read->devices.at(0).info(options);
  EXPECT_EQ(abi::view(again.name), "g");
  EXPECT_EQ(again.peer_count, 2u);
  EXPECT_EQ(again.index, 0u) << "its place in the entry";
  EXPECT_EQ(abi::view(again.properties[0].value), "1");
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string broken = bytes;
    broken[i] ^= 1;
    EXPECT_FALSE(read_known(broken)) << i;
    EXPECT_FALSE(read_known(bytes.substr(0, i))) << i;
  }
  EXPECT_FALSE(read_known(bytes + "x"));
}

}  // namespace
}  // namespace backplane
