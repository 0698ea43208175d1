// SPDX-License-Identifier: Apache-2.0
// Which backends are selected and disabled, and how devices are named and identified.
#include "discover/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <tuple>

#include "base/abi.h"
#include "discover/isolation.h"
#include "discover/testing.h"
#include "discover/verdict.h"
#include "testing/manifest_writer.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kFake;
using testing::manifest;
using testing::refusals;
using testing::Request;
using testing::Sandbox;
using ::testing::SizeIs;

TEST(Environment, FirstBackendOfAnIdWins) {
  const Sandbox sandbox;
  const fs::path first = sandbox.write("first.json", manifest("fake", kFake.string()));
  const fs::path second = sandbox.write("second.json", manifest("fake", kFake.string()));
  auto env = Request().only_given().file(first).file(second).file(kFake).create();
  ASSERT_TRUE(env.ok());
  EXPECT_EQ((*env)->candidates()[0].refusal, BP_REFUSED_NONE) << (*env)->candidates()[0].text;
  EXPECT_EQ((*env)->candidates()[1].refusal, BP_REFUSED_DUPLICATE);
  EXPECT_EQ((*env)->candidates()[2].refusal, BP_REFUSED_DUPLICATE);
  EXPECT_THAT((*env)->candidates()[2].text, HasSubstr("was already found in"));
  EXPECT_THAT((*env)->devices(), SizeIs(1));
}

TEST(Environment, DevicesAreNumberedAndNamed) {
  const Sandbox sandbox;
  auto env = Request().only_given().file(kFake).option("fake.devices", "3").create();
  ASSERT_TRUE(env.ok());
  ASSERT_THAT((*env)->devices(), SizeIs(3));
  EXPECT_EQ((*env)->candidates()[0].device_count, 3u);
  EXPECT_EQ((*env)->candidates()[0].version, BP_ABI_VERSION);
  EXPECT_EQ(*(*env)->find("fake"), (*env)->devices()[0].get());
  EXPECT_EQ(*(*env)->find("fake:0"), (*env)->devices()[0].get());
  EXPECT_EQ(*(*env)->find("fake:2"), (*env)->devices()[2].get());
  EXPECT_EQ(*(*env)->device(2), (*env)->devices()[1].get());
  EXPECT_EQ((*env)->devices()[2]->info().index, 3u);
  EXPECT_EQ(abi::view((*env)->devices()[2]->info().vendor), "Backplane tests");
  ASSERT_TRUE((*env)->devices()[0]->open().ok());
  EXPECT_EQ((*env)->devices()[0]->newest().opsets.at(""), 1000u);
  const auto missing = (*env)->find("fake:3");
  EXPECT_EQ(missing.status().code(), BP_NOT_FOUND);
  EXPECT_THAT(std::string(missing.status().text()), HasSubstr("fake, fake:1, fake:2"));
  EXPECT_EQ((*env)->device(0).status().code(), BP_NOT_FOUND);
  EXPECT_EQ((*env)->device(4).status().code(), BP_NOT_FOUND);
}

TEST(Environment, VariablesWithInvalidValuesAreNamed) {
  Sandbox sandbox;
  for (const auto& [name, value] :
       {std::pair("BACKPLANE_ISOLATE_SANDBOX", "none"), std::pair("BACKPLANE_ISOLATE_PATHS", "relative/path")}) {
    sandbox.set(name, value);
    const auto env = Request().only_given().file(kFake).create();
    EXPECT_EQ(env.status().code(), BP_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(env.status().text()), HasSubstr(name));
    sandbox.set(name, std::nullopt);
  }
}

TEST(Environment, AnInvalidTimeLimitIsLogged) {
  Sandbox sandbox;
  const auto lines_with = [&](const char* limit) {
    sandbox.set("BACKPLANE_SCAN_TIMEOUT_MS", limit);
    std::vector<std::string> lines;
    const auto env = Request().only_given().file(kFake).with([&](bp_env_desc_t desc) {
      desc.log_level = BP_LOG_WARNING;
      desc.self = &lines;
      desc.log = [](void* self, uint32_t, bp_text_t text) {
        static_cast<std::vector<std::string>*>(self)->push_back(abi::string(text));
      };
      return Environment::create(desc);
    });
    EXPECT_TRUE(env.ok()) << env.status().text();
    EXPECT_TRUE(env.ok() && (*env)->candidates()[0].refusal == BP_REFUSED_NONE);
    return lines;
  };
  for (const char* invalid : {"20s", "0", "", "-1", "99999999999"})
    EXPECT_THAT(lines_with(invalid), ElementsAre(HasSubstr("BACKPLANE_SCAN_TIMEOUT_MS is \"" + std::string(invalid))));
  EXPECT_THAT(lines_with("30000"), ::testing::IsEmpty());
}

std::vector<uint64_t> ids_of(const std::string& option, const std::string& value) {
  auto env = Request().only_given().file(kFake).option("fake.devices", "2").option("fake." + option, value).create();
  EXPECT_TRUE(env.ok()) << env.status().text();
  std::vector<uint64_t> ids;
  if (env.ok())
    for (const auto& device : (*env)->devices()) ids.push_back(device->id());
  return ids;
}

// A device keeps its id if the driver lists the devices in another order.
TEST(Environment, DevicesAreIdentifiedByUuidOrPciAddress) {
  const Sandbox sandbox;
  for (const auto& [option, one, other] :
       {std::tuple("pci", "0000:01:00.0", "0000:02:00.0"), std::tuple("uuid", "the first", "the second")}) {
    SCOPED_TRACE(option);
    const std::string first(one), second(other);
    const std::vector<uint64_t> ids = ids_of(option, first + "," + second);
    ASSERT_THAT(ids, SizeIs(2));
    EXPECT_NE(ids[0], 0u);
    EXPECT_NE(ids[0], ids[1]);
    EXPECT_THAT(ids_of(option, first + "," + second), ElementsAre(ids[0], ids[1]));
    EXPECT_THAT(ids_of(option, second + "," + first), ElementsAre(ids[1], ids[0]));
    // If only one device reports an identity, the other's id is derived from its number.
    const std::vector<uint64_t> mixed = ids_of(option, first);
    ASSERT_THAT(mixed, SizeIs(2));
    EXPECT_EQ(mixed[0], ids[0]);
    EXPECT_EQ(mixed[1], ids_of(option, "")[1]);
    // A driver may report the same identity for all its devices.
    const std::vector<uint64_t> same = ids_of(option, first + "," + first);
    ASSERT_THAT(same, SizeIs(2));
    EXPECT_NE(same[0], same[1]);
  }
}

TEST(Environment, UsersCanSelectAndDisableBackends) {
  Sandbox sandbox;
  const fs::path file = sandbox.write("fake.json", manifest("fake", kFake.string()));
  struct {
    const char *select, *disable;
    uint32_t expected;
  } const cases[] = {{nullptr, "cpu,fake", BP_REFUSED_DISABLED},
                     {nullptr, "f?k*", BP_REFUSED_DISABLED},
                     {nullptr, "cpu,,f", BP_REFUSED_NONE},
                     {"fake", nullptr, BP_REFUSED_NONE},
                     {"*ak*,cpu", nullptr, BP_REFUSED_NONE},
                     {"cpu", nullptr, BP_REFUSED_DISABLED},
                     {"fake", "fake", BP_REFUSED_DISABLED},
                     {"*", "*", BP_REFUSED_DISABLED},
                     {"", nullptr, BP_REFUSED_NONE}};
  for (const auto& one : cases) {
    SCOPED_TRACE(std::string(one.select ? one.select : "-") + " / " + (one.disable ? one.disable : "-"));
    sandbox.set("BACKPLANE_SELECT", one.select ? std::optional<std::string>(one.select) : std::nullopt);
    sandbox.set("BACKPLANE_DISABLE", one.disable ? std::optional<std::string>(one.disable) : std::nullopt);
    EXPECT_THAT(refusals(Request().only_given().file(file)), ElementsAre(one.expected));
    EXPECT_THAT(refusals(Request().only_given().file(kFake)), ElementsAre(one.expected));
  }
  sandbox.set("BACKPLANE_SELECT", std::nullopt);
  sandbox.set("BACKPLANE_DISABLE", std::nullopt);
  const auto given = Request().only_given().file(file);
  EXPECT_THAT(refusals(Request(given).option("loader.disable", "fake")), ElementsAre(BP_REFUSED_DISABLED));
  EXPECT_THAT(refusals(Request(given).option("loader.select", "org.backplane.test.*")), ElementsAre(BP_REFUSED_NONE));
  EXPECT_THAT(refusals(Request(given).option("loader.select", "com.*")), ElementsAre(BP_REFUSED_DISABLED));
}

TEST(Environment, AHigherFolderMasksTheSameId) {
  const Sandbox sandbox;
  sandbox.write("high/a.json", manifest("fake", "gone.so"));
  sandbox.write("low/b.json", manifest("fake", kFake.string()));
  auto env = Request().only_given().folder(sandbox.root() / "high").folder(sandbox.root() / "low").create();
  ASSERT_TRUE(env.ok());
  ASSERT_THAT((*env)->candidates(), SizeIs(2));
  EXPECT_EQ((*env)->candidates()[0].refusal, BP_REFUSED_MISSING);
  EXPECT_EQ((*env)->candidates()[1].refusal, BP_REFUSED_DUPLICATE);
  EXPECT_THAT((*env)->candidates()[1].text, HasSubstr("masked by " + (sandbox.root() / "high/a.json").string()));
}

TEST(Environment, AnEmptyManifestDisablesItsNameInLowerFolders) {
  const Sandbox sandbox;
  sandbox.write("high/a.json", "");
  sandbox.write("low/a.json", manifest("fake", kFake.string()));
  sandbox.write("low/b.json", manifest("other", "gone.so"));
  EXPECT_THAT(refusals(Request().only_given().folder(sandbox.root() / "high").folder(sandbox.root() / "low")),
              ElementsAre(BP_REFUSED_DISABLED, BP_REFUSED_DISABLED, BP_REFUSED_MISSING));
  EXPECT_THAT(refusals(Request().only_given().folder(sandbox.root() / "low").folder(sandbox.root() / "high")),
              ElementsAre(BP_REFUSED_NONE, BP_REFUSED_MISSING, BP_REFUSED_DISABLED));
}

TEST(Environment, PriorityOrdersTheManifestsOfAFolder) {
  const Sandbox sandbox;
  sandbox.write("x/a.json", manifest("a", "a.so", R"(, "priority": -1)"));
  sandbox.write("x/b.json", manifest("b", "b.so"));
  sandbox.write("x/c.json", manifest("c", "c.so", R"(, "priority": 7)"));
  sandbox.write("y/d.json", manifest("d", "d.so", R"(, "priority": 9)"));
  auto env = Request().only_given().folder(sandbox.root() / "x").folder(sandbox.root() / "y").create();
  ASSERT_TRUE(env.ok());
  std::vector<std::string> ids;
  for (const Candidate& candidate : (*env)->candidates()) ids.push_back(candidate.id);
  EXPECT_THAT(ids, ElementsAre("c", "b", "a", "d"));
}

TEST(Environment, ThousandsOfManifestsMayNameOneLibrary) {
  const Sandbox sandbox;
  constexpr int kCount = 3000;
  const fs::path cpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";  // a large library
  const fs::path library = fs::exists(cpu) ? cpu : kFake;
  for (int i = 0; i < kCount; ++i)
    sandbox.write("many/" + std::to_string(i) + ".json", manifest("x" + std::to_string(i), library.string()));
  const std::clock_t begin = std::clock();
  const auto codes = refusals(Request().only_given().folder(sandbox.root() / "many").file(kFake));
  EXPECT_LT(std::clock() - begin,
            10 * CLOCKS_PER_SEC);  // hashing the library for each manifest would take twice as long
  ASSERT_THAT(codes, SizeIs(kCount + 1));
  EXPECT_EQ(codes.front(), BP_REFUSED_NONE);  // files come before folders
  EXPECT_THAT(std::vector<uint32_t>(codes.begin() + 1, codes.end()), ::testing::Each(BP_REFUSED_ID));
}

TEST(Environment, AManifestThatAnybodyCanWriteIsRefused) {
  const Sandbox sandbox;
  const fs::path file = sandbox.write("fake.json", manifest("fake", kFake.string()));
  ::chmod(file.c_str(), 0666);
  EXPECT_THAT(refusals(Request().only_given().file(file)), ElementsAre(BP_REFUSED_UNTRUSTED));
}

TEST(Environment, AFileFromADeletedWorkingFolderIsRefusedAndNoOther) {
  const Sandbox sandbox;
  fs::create_directory(sandbox.root() / "gone");
  fs::copy_file(kFake, sandbox.root() / "x.so");
  const fs::path before = fs::current_path();
  fs::current_path(sandbox.root() / "gone");
  fs::remove(sandbox.root() / "gone");
  const auto codes = refusals(Request().only_given().file("../x.so").file(kFake));
  fs::current_path(before);
  EXPECT_THAT(codes, ElementsAre(BP_REFUSED_UNTRUSTED, BP_REFUSED_NONE));
}

TEST(Isolation, TakesTheIdFromTheNameOfTheFile) {
  for (const char* name :
       {"libbackplane_cpu.so", "libbackplane_cpu.so.1", "libbackplane_cpu.so.0.1.0", "cpu.so", "cpu"})
    EXPECT_EQ(id_of_file(fs::path("/some.so/where") / name), "cpu") << name;
}

// The file's name and the id that the plugin reports differ.
TEST(Isolation, PatternsMatchTheReportedIdAndTheNameOfTheFile) {
  const Sandbox sandbox;
  const fs::path library = sandbox.root() / "libbackplane_other.so";
  fs::copy_file(kFake, library);
  const auto is_isolated = [&](const char* patterns) {
    auto env = Request().only_given().file(library).option("loader.isolate", patterns).create();
    EXPECT_EQ((*env)->candidates()[0].refusal, BP_REFUSED_NONE) << (*env)->candidates()[0].text;
    EXPECT_TRUE((*env)->devices()[0]->open().ok());
    return (*env)->candidates()[0].isolated;
  };
  for (const char* patterns : {"fake", "fak?", "other", "*", "!other,fake"}) EXPECT_TRUE(is_isolated(patterns));
  for (const char* patterns : {"fakes", " fake", "*,!fake", "*,!other", ""}) EXPECT_FALSE(is_isolated(patterns));
}

TEST(Isolation, APatternThatMatchesNothingIsAWarning) {
  const auto warnings = [](const char* option, const char* patterns) {
    return Request().only_given().file(kFake).option(option, patterns).with([](bp_env_desc_t desc) {
      std::string lines;
      desc.log = [](void* self, uint32_t level, bp_text_t text) {
        if (level <= BP_LOG_WARNING) *static_cast<std::string*>(self) += abi::string(text);
      };
      desc.self = &lines;
      EXPECT_TRUE(Environment::create(desc).ok());
      return lines;
    });
  };
  EXPECT_THAT(warnings("loader.isolate", "fake, fake,!fakes"), HasSubstr("loader.isolate has \" fake\", \"!fakes\","));
  EXPECT_EQ(warnings("loader.isolate", "fa*"), "");
  EXPECT_EQ(warnings("loader.disable", "gpu"), "");  // usual for a backend that is not installed everywhere
}

TEST(Environment, TextsAreOneLineOfPrintableCharacters) {
  const Sandbox sandbox;
  const std::string forged = R"(, "arch": "vax\n\u001b[31mbackplane: all is well")";
  auto env = Request().only_given().file(sandbox.write("x.json", manifest("x", "x.so", forged))).create();
  ASSERT_TRUE(env.ok());
  const Candidate& candidate = (*env)->candidates()[0];
  EXPECT_EQ(candidate.refusal, BP_REFUSED_ARCHITECTURE);
  EXPECT_THAT(candidate.text, HasSubstr("is for vax  [31mbackplane"));
}

TEST(Environment, ADeviceIsGivenUpWithoutWaitingForItsOpening) {
  auto env = Request().only_given().file(kFake).option("fake.open_ms", "2000").create();
  ASSERT_TRUE(env.ok()) << env.status().text();
  ASSERT_THAT((*env)->devices(), SizeIs(1));
  Device& device = *(*env)->devices()[0];
  std::atomic<bool> opened{false};
  bp_status_t code = BP_OK;
  std::thread opening([&] {
    code = device.open().status().code();
    opened = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  device.give_up();
  EXPECT_FALSE(opened);
  opening.join();
  EXPECT_EQ(code, BP_DEVICE_LOST);
  EXPECT_EQ(device.open().status().code(), BP_DEVICE_LOST);
}

TEST(Environment, WrongOptionsAreErrorsOfTheCall) {
  const Sandbox sandbox;
  EXPECT_EQ(Request().only_given().option("loader.color", "red").create().status().code(), BP_NOT_FOUND);
  EXPECT_EQ(Request().only_given().option("threads", "2").create().status().code(), BP_NOT_FOUND);
  EXPECT_EQ(Request().only_given().option("loader.probe", "perhaps").create().status().code(), BP_INVALID_ARGUMENT);
  for (const char* wrong : {"0", "3600001", "5s", ""})
    EXPECT_EQ(Request().only_given().option("loader.abandon_after", wrong).create().status().code(),
              BP_INVALID_ARGUMENT)
        << wrong;
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.backend_file_count = 1;
  EXPECT_EQ(Environment::create(desc).status().code(), BP_INVALID_ARGUMENT);
  desc.backend_file_count = 0;
  desc.flags = BP_ENV_ONLY_GIVEN;
  desc.log_level = BP_LOG_DEBUG + 1;
  EXPECT_EQ(Environment::create(desc).status().code(), BP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace backplane
