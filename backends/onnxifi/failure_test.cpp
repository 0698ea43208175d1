// SPDX-License-Identifier: Apache-2.0
// Tests which faulty libraries are left out, and what is reported about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "testing/library_fixture.h"

namespace onnxifi_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Wrong {
  const char* vendor;
  const char* why;
};

class WrongLibrary : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongLibrary, IsNotUsedAndTheOthersAre) {
  EXPECT_THAT(vendor(GetParam().vendor).report(), HasSubstr(GetParam().why));
  const Environment env = vendors(folder(GetParam().vendor) + ":" + folder("plain"));
  EXPECT_EQ(env.devices().size(), 3u);  // the CPU and two devices of the good library
  EXPECT_EQ(env.devices().back().name, "onnxifi:1");
}

INSTANTIATE_TEST_SUITE_P(
    Onnxifi, WrongLibrary,
    ::testing::Values(Wrong{"missing", "lacks onnxReleaseBackendID, onnxGetBackendInfo"},
                      Wrong{"status", "onnxGetBackendIDs of the ONNXIFI library returned status 77"},
                      Wrong{"many", "reports 18446744073709551615 backends"},
                      Wrong{"twice", "reports one backend id twice"}, Wrong{"nowhere", "does not exist"}),
    [](const auto& info) { return std::string(info.param.vendor); });

// ---- libraries that do not survive their first calls --------------------------------------------------------------

class FatalLibrary : public ::testing::TestWithParam<Wrong> {
 protected:
  void SetUp() override { setenv("BACKPLANE_SCAN_TIMEOUT_MS", "8000", 1); }
  void TearDown() override { unsetenv("BACKPLANE_SCAN_TIMEOUT_MS"); }
  // Checks that the devices of the library `plain` are found, and that the log names the other library.
  static void expect_others(const std::string& isolate) {
    std::string log;
    EnvironmentOptions how;
    how.backend_files = {kCpu, kPlugin};
    how.only_given = true;
    const std::string path = folder(GetParam().vendor) + ":" + folder("plain");
    how.options = {{"loader.isolate", isolate}, {"onnxifi.path", path}};
    how.log = [&](uint32_t, std::string_view line) { log.append(line).append("\n"); };
    how.log_level = BP_LOG_WARNING;
    for (int start = 0; start < 2; ++start) {
      const Environment env(how);
      ASSERT_EQ(env.devices().size(), 3u) << env.report();
      EXPECT_EQ(env.devices().back().name, "onnxifi:1");
    }
    EXPECT_THAT(log,
                HasSubstr(folder(GetParam().vendor) + "/libonnxifi-" + GetParam().vendor + ".so " + GetParam().why));
  }
};

TEST_P(FatalLibrary, CostsOnlyItselfInAProcessOfItsOwn) {
  expect_others("onnxifi");
}
TEST_P(FatalLibrary, CostsOnlyItselfInTheProcessOfTheProgram) {
  expect_others("!onnxifi");
}
TEST_P(FatalLibrary, IsNamedWhereNoOtherIsFound) {
  EXPECT_THAT(vendor(GetParam().vendor, {{"loader.isolate", "onnxifi"}}).report(), HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(Onnxifi, FatalLibrary,
                         ::testing::Values(Wrong{"aborts", "crashed (SIGABRT) in onnxGetBackendIDs"},
                                           Wrong{"hangs", "did not return from onnxGetBackendIDs within 4000 ms"},
                                           Wrong{"exits", "ended the process (exit code 0) in onnxGetBackendInfo"}),
                         [](const auto& info) { return std::string(info.param.vendor); });

// The sandbox allows reading the folder that the option `path` names, not the one that a link in it leads to.
TEST(OnnxifiFailure, ALinkOutOfTheSandboxIsNamedWithTheWayOut) {
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1)
    GTEST_SKIP() << "this kernel has no Landlock";
  // The link's target is outside the build folder, which BACKPLANE_ISOLATE_PATHS may name.
  std::string made = (fs::canonical(fs::temp_directory_path()) / "backplane-XXXXXX").native();
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  const fs::path elsewhere = made, target = elsewhere / "libonnxifi-silent.so",
                 link = fs::path(VENDORS) / "links/libonnxifi-link.so";
  fs::copy_file(folder("silent") + "/libonnxifi-silent.so", target);
  fs::create_directories(link.parent_path());
  fs::remove(link);
  fs::create_symlink(target, link);
  std::map<std::string, std::string> options = {{"loader.isolate", "onnxifi"}};
  EXPECT_THAT(vendors(link.parent_path(), options).report(),
              AllOf(HasSubstr(link.native() + " is a link to " + target.native()),
                    HasSubstr("add " + elsewhere.native() + " to loader.isolate_paths")));
  options["loader.isolate_paths"] = elsewhere;
  EXPECT_EQ(vendors(link.parent_path(), options).devices().size(), 2u);
  fs::remove_all(elsewhere);
}

TEST(OnnxifiFailure, AGraphThatIsNoneFailsTheCompilation) {
  const Error none = failure([] { vendor("no_graph").compile(dense(), on("onnxifi")); });
  EXPECT_THAT(none.text(), HasSubstr("onnxInitGraph of the ONNXIFI library succeeded and returned no graph"));
  const Error refused = failure([] { vendor("refuses").compile(dense(), on("onnxifi")); });
  EXPECT_EQ(refused.status(), BP_UNSUPPORTED);
  EXPECT_THAT(refused.text(), HasSubstr("onnxInitGraph of the ONNXIFI library returned UNSUPPORTED_SHAPE"));
}

TEST(OnnxifiFailure, ABackendThatIsNoneCoversNothing) {
  const Environment env = vendor("no_backend");
  SessionOptions how;
  how.devices = {"onnxifi", "cpu"};
  const Session session = env.compile(one("Relu", BP_DTYPE_FLOAT, {2}), how);
  EXPECT_THAT(std::string(view::text(verdict_of(session, env).detail)), HasSubstr("returned no backend"));
  Exec exec = session.exec();
  exec.bind(0, Tensor::of<float>({2}, {-1, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 1));
}

TEST(OnnxifiFailure, OfARunIsReported) {
  Exec exec = vendor("fails").compile(dense(), on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  for (int run = 0; run < 2; ++run) {
    const Error error = failure([&] { exec.run(); });
    EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED);
    EXPECT_THAT(error.text(), HasSubstr("NO_DEVICE_RESOURCES"));
  }
}

// The library drops the buffers set for a run that fails, so they must be set again.
TEST(OnnxifiFailure, OfARunIsNotThatOfTheNext) {
  Exec exec = vendor("forgets").compile(dense(), on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  for (int run = 0; run < 2; ++run) {
    EXPECT_THAT(failure([&] { exec.run(); }).text(), HasSubstr("INTERNAL_ERROR"));
    exec.run();
    EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
  }
}

TEST(OnnxifiFailure, ALibraryWithoutBackendsIsNamed) {
  EXPECT_THAT(vendor("none").report(), HasSubstr("libonnxifi-none.so reports no backends"));
}

// ONNX's dummy library claims to support everything, and does nothing.
TEST(OnnxifiDummy, HarmsNothing) {
  const fs::path dummy = "/usr/lib/x86_64-linux-gnu/libonnxifi_dummy.so";
  if (!fs::exists(dummy)) GTEST_SKIP() << dummy << " is missing: install libonnx-dev";
  const fs::path scratch = fs::path(VENDORS) / "dummy";
  fs::create_directories(scratch);
  fs::copy_file(dummy, scratch / "libonnxifi-dummy.so", fs::copy_options::overwrite_existing);
  const Environment env = vendors(scratch);
  ASSERT_EQ(env.devices().size(), 2u);
  const bp_device_info_t info = env.devices().back().info;
  EXPECT_EQ(view::text(info.name), "libonnxifi-dummy.so");
  EXPECT_EQ(info.kind, BP_DEVICE_OTHER);
  EXPECT_EQ(info.memory_bytes, 0u);
  EXPECT_EQ(info.flops_fp32, 0);
  SessionOptions how;
  how.devices = {"onnxifi", "cpu"};
  const Session session = env.compile(dense(), how);
  EXPECT_THAT(std::string(view::text(verdict_of(session, env).detail)), HasSubstr("returned no backend"));
  Exec exec = session.exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
}

}  // namespace
}  // namespace onnxifi_test
