// SPDX-License-Identifier: Apache-2.0
// Runs ONNXIFI libraries through the loader: test libraries with vendors' quirks, faulty ones, and Backplane's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "testing/client_fixture.h"

namespace {

using namespace backplane;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kPlugin = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_onnxifi.so";
const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";

std::string folder(const std::string& vendor) {
  return VENDORS "/" + vendor;
}

Environment vendors(const std::string& path, std::map<std::string, std::string> options = {}) {
  options["onnxifi.path"] = path;
  return environment({kCpu, kPlugin}, std::move(options));
}
Environment vendor(const std::string& name, std::map<std::string, std::string> options = {}) {
  return vendors(folder(name), std::move(options));
}

SessionOptions on(const std::string& device) {
  SessionOptions how;
  how.devices = {device};
  how.fallback = BP_FALLBACK_FORBID;
  return how;
}
SessionOptions pinned(std::map<std::string, std::string> pins) {
  SessionOptions how;
  how.pins = std::move(pins);
  how.options["loader.costs"] = "reported";  // the loader does not measure copies
  return how;
}

std::vector<float> values(const Tensor& tensor) {
  const auto* const first = static_cast<const float*>(tensor.data());
  return {first, first + tensor.count()};
}

// y = Relu(x · w + b), [2,2]
Model dense() {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 2});
  const uint32_t w = graph.weight("w", Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const uint32_t b = graph.weight("b", Tensor::of<float>({2}, {-10, 10}));
  return graph.finish({graph.node("Relu", "y", {graph.node("Add", "s", {graph.node("MatMul", "p", {x, w}), b})})});
}

// Neg is meant for the CPU, Relu and Add for the library: n0 (cpu), r and a (onnxifi), n1 (cpu), r2 (onnxifi).
Model mixed() {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
  const uint32_t n0 = graph.node("Neg", "n0", {x});
  const uint32_t a = graph.node("Add", "a", {graph.node("Relu", "r", {n0}), x});
  return graph.finish({graph.node("Relu", "r2", {graph.node("Neg", "n1", {a})}), a});
}

bp_node_verdict_t verdict_of(const Session& session, const Environment& env, uint32_t node = 0) {
  for (const Device& device : env.devices()) {
    if (device.name == "onnxifi") return session.verdict(node, device.info.id);
  }
  ADD_FAILURE() << "there is no device onnxifi";
  return {};
}

class Quirk : public ::testing::TestWithParam<const char*> {};

TEST_P(Quirk, RunsAModelAlone) {
  const Environment env = vendor(GetParam());
  Exec exec = env.compile(dense(), on("onnxifi")).exec();
  Tensor x = Tensor::of<float>({2, 2}, {1, 0, 0, 1});
  exec.bind(0, x);
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
  static_cast<float*>(x.data())[0] = 20;  // same memory, other contents
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(10, 50, 0, 14));
  exec.bind(0, Tensor::of<float>({2, 2}, {0, 10, 10, 0}));  // other memory
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(20, 50, 0, 30));
}

TEST_P(Quirk, RunsIslandsNextToTheCpu) {
  const Environment env = vendor(GetParam());
  const Session session =
      env.compile(mixed(), pinned({{"r", "onnxifi"}, {"a", "onnxifi"}, {"r2", "onnxifi"}, {"op=Neg", "cpu"}}));
  Exec exec = session.exec();
  exec.bind(0, Tensor::of<float>({3}, {-2, 0, 3}));
  for (int run = 0; run < 3; ++run) {
    exec.run();
    EXPECT_THAT(values(exec.output(1)), ElementsAre(0, 0, 3));
    EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 0, 0));
  }
  EXPECT_THAT(session.report(), AllOf(HasSubstr("\"onnxifi\""), HasSubstr("\"cpu\"")));
}

TEST_P(Quirk, IsRunByManyThreads) {
  const Environment env = vendor(GetParam());
  const Session session = env.compile(dense(), on("onnxifi"));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Exec exec = session.exec();
      const auto n = static_cast<float>(10 + t);
      exec.bind(0, Tensor::of<float>({2, 2}, {n, 0, 0, n}));
      for (int run = 0; run < 50; ++run) {
        exec.run();
        right += values(exec.output(0)) == std::vector<float>{n - 10, 2 * n + 10, 3 * n - 10, 4 * n + 10} ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

// The manifest requests isolation. The sandbox lets the process read the folder that the option `path` names.
TEST_P(Quirk, RunsInAProcessOfItsOwn) {
  const Environment env = vendor(GetParam(), {{"loader.isolate", "onnxifi"}});
  ASSERT_EQ(env.devices().back().name.substr(0, 7), "onnxifi");
  Exec exec = env.compile(dense(), on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
  const Session session =
      env.compile(mixed(), pinned({{"r", "onnxifi"}, {"a", "onnxifi"}, {"r2", "onnxifi"}, {"op=Neg", "cpu"}}));
  Exec islands = session.exec();
  islands.bind(0, Tensor::of<float>({3}, {-2, 0, 3}));
  islands.run();
  EXPECT_THAT(values(islands.output(1)), ElementsAre(0, 0, 3));
}

INSTANTIATE_TEST_SUITE_P(Onnxifi, Quirk,
                         ::testing::Values("at_wait", "descriptors", "emulated", "extension", "fork", "late", "plain",
                                           "positional", "silent", "strict", "synchronous"),
                         [](const auto& info) { return std::string(info.param); });

TEST(OnnxifiDevices, AreTheBackendIdsOfALibrary) {
  const Environment env = vendor("plain");
  std::vector<std::string> names;
  for (const Device& device : env.devices()) {
    if (device.name == "cpu") continue;
    names.push_back(device.name + "=" + std::string(view::text(device.info.name)));
    EXPECT_EQ(device.info.kind, BP_DEVICE_NPU);
    EXPECT_EQ(view::text(device.info.vendor), "Test Vendor");
    EXPECT_EQ(view::text(device.info.driver), "1.2.3");
    EXPECT_EQ(device.info.memory_bytes, uint64_t{1} << 30);
    EXPECT_EQ(device.info.flops_fp32, 1e9);
  }
  EXPECT_THAT(names, ElementsAre("onnxifi=Plain: chip 0", "onnxifi:1=Plain: chip 1"));
}

// Each copy of the library has two devices.
TEST(OnnxifiDevices, BeyondTheLoadersLimitAreLeftOut) {
  std::string made = (fs::canonical(fs::temp_directory_path()) / "backplane-XXXXXX").native();
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  for (int i = 0; i < 130; ++i)
    fs::copy_file(folder("plain") + "/libonnxifi-plain.so", made + "/libonnxifi-plain" + std::to_string(i) + ".so");
  EXPECT_EQ(vendors(made).devices().size(), 1u + 256);  // the first is the CPU
  fs::remove_all(made);
}

TEST(OnnxifiDevices, OfALibraryThatReportsNothingAreNamedAfterIt) {
  const Environment env = vendor("silent");
  EXPECT_EQ(view::text(env.devices().back().info.name), "libonnxifi-silent.so");
}

TEST(OnnxifiDevices, HaveNamesInUtf8) {
  const Environment env = vendor("positional");
  EXPECT_EQ(view::text(env.devices().back().info.name), "Posición™: chip 0");
}

TEST(OnnxifiDevices, HaveTextsAndVersionsThatAreBounded) {
  const Environment env = vendor("sizes");
  const Device device = env.devices().back();
  EXPECT_EQ(device.name, "onnxifi");
  const std::string_view name = view::text(device.info.name);
  EXPECT_THAT(std::string(name), HasSubstr("Lies ????"));
  EXPECT_LE(name.size(), 4096u);
  Exec exec = env.compile(dense(), on("onnxifi")).exec();  // in opset 8, the only valid one that the library reports
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
}

// ---- coverage ------------------------------------------------------------------------------------------------------

struct Refused {
  const char* name;
  uint32_t reason;
  const char* text;
  std::function<Model()> model;
};

class Refusal : public ::testing::TestWithParam<Refused> {};

TEST_P(Refusal, HasTheReason) {
  const Environment env = vendor("plain");
  SessionOptions how;
  how.devices = {"onnxifi", "cpu"};
  how.flags = BP_SESSION_PLACE_ONLY;
  const Model model = GetParam().model();
  const Session session = env.compile(model, how);
  const bp_node_verdict_t verdict = verdict_of(session, env);
  EXPECT_EQ(verdict.answer, BP_ANSWER_NO);
  EXPECT_EQ(verdict.reason, GetParam().reason);
  EXPECT_THAT(std::string(view::text(verdict.detail)), HasSubstr(GetParam().text));
}

Model one(const char* op, bp_dtype_t dtype, const std::vector<int64_t>& extents,
          const std::vector<std::string>& symbols = {}, const std::map<std::string, int64_t>& numbers = {}) {
  Graph graph;
  return graph.finish({graph.node(op, "n", {graph.input("x", dtype, extents, symbols)}, numbers)});
}

INSTANTIATE_TEST_SUITE_P(
    Onnxifi, Refusal,
    ::testing::Values(
        Refused{"operator", BP_REASON_OPERATOR, "UNSUPPORTED_OPERATOR", [] { return one("Neg", BP_DTYPE_FLOAT, {2}); }},
        Refused{"dtype", BP_REASON_DTYPE, "UNSUPPORTED_DATATYPE", [] { return one("Relu", BP_DTYPE_INT32, {2}); }},
        Refused{"shape", BP_REASON_SHAPE, "UNSUPPORTED_SHAPE",
                [] {
                  return one("Relu", BP_DTYPE_FLOAT, {1, 1, 1, 1, 2});
                }},
        Refused{"attribute", BP_REASON_ATTRIBUTE, "UNSUPPORTED_ATTRIBUTE",
                [] {
                  return one("ReduceSum", BP_DTYPE_FLOAT, {2, 3}, {}, {{"keepdims", 0}});
                }},
        Refused{"opset", BP_REASON_OPSET, "Gelu in version 20 is newer",
                [] { return one("Gelu", BP_DTYPE_FLOAT, {2}); }},
        Refused{"older", BP_REASON_OPSET, "which works on all dimensions from its axis on",
                [] {
                  return one("Softmax", BP_DTYPE_FLOAT, {2, 3}, {}, {{"axis", 0}});
                }},
        Refused{"symbol", BP_REASON_SHAPE, "not known before the run",
                [] { return one("Relu", BP_DTYPE_FLOAT, {-1}, {"n"}); }},
        Refused{"boolean", BP_REASON_DTYPE, "bool, which ONNXIFI does not have",
                [] { return one("Not", BP_DTYPE_BOOL, {2}); }},
        Refused{"empty", BP_REASON_SHAPE, "has no elements", [] { return one("Relu", BP_DTYPE_FLOAT, {0}); }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(OnnxifiCoverage, OlderFormsAreWritten) {
  const Environment env = vendor("plain");  // reads opset 8, in which axes are attributes
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 3});
  const uint32_t last = graph.weight("last", Tensor::of<int64_t>({1}, {-1}));
  const uint32_t sum = graph.node("ReduceSum", "sum", {x, last});
  const uint32_t column = graph.node("Squeeze", "column", {sum, last});
  const Model model = graph.finish({graph.node("Unsqueeze", "wide", {column, last})});
  Exec exec = env.compile(model, on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  exec.run();
  EXPECT_THAT(exec.output(0).extents(), ElementsAre(2, 1));
  EXPECT_THAT(values(exec.output(0)), ElementsAre(6, 15));
}

// The test library `strict` reads -1 as outside the tensor.
TEST(OnnxifiCoverage, ConstantIndicesCountFromTheStart) {
  const Environment env = vendor("strict");
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {4, 2});
  const uint32_t indices = graph.weight("indices", Tensor::of<int64_t>({3}, {-1, 0, -4}));
  const uint32_t rows = graph.weight("rows", Tensor::of<int64_t>({1, 2}, {-1, -3}));
  const uint32_t labels = graph.weight("labels", Tensor::of<int64_t>({3}, {-1, 5, -5}));
  const uint32_t updates = graph.weight("updates", Tensor::of<float>({1, 2}, {70, 80}));
  const uint32_t depth = graph.weight("depth", Tensor::of<int64_t>({1}, {4}));
  const uint32_t off_on = graph.input("off_on", BP_DTYPE_FLOAT, {2});
  const uint32_t gathered = graph.node("Gather", "gathered", {x, indices}, {{"axis", 0}});
  const uint32_t scattered = graph.node("ScatterElements", "scattered", {x, rows, updates}, {{"axis", -2}});
  const Model model = graph.finish({gathered, scattered, graph.node("OneHot", "hot", {labels, depth, off_on})});
  Exec exec = env.compile(model, on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  exec.bind(1, Tensor::of<float>({2}, {0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(7, 8, 1, 2, 1, 2));
  EXPECT_THAT(values(exec.output(1)), ElementsAre(1, 2, 3, 80, 5, 6, 70, 8));
  EXPECT_THAT(values(exec.output(2)), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(OnnxifiCoverage, ComputedIndicesAreRefusedWhereNegativeOnesAreUnknown) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {4}), at = graph.input("at", BP_DTYPE_INT64, {2});
  const Model model = graph.finish({graph.node("Gather", "y", {x, at}, {{"axis", 0}})});
  const Environment env = vendor("strict");
  SessionOptions how;
  how.devices = {"onnxifi", "cpu"};
  const Session session = env.compile(model, how);
  const bp_node_verdict_t verdict = verdict_of(session, env);
  EXPECT_EQ(verdict.reason, BP_REASON_OPSET);
  EXPECT_THAT(std::string(view::text(verdict.detail)), HasSubstr("which has no negative indices"));
  Exec exec = session.exec();
  exec.bind(0, Tensor::of<float>({4}, {1, 2, 3, 4}));
  exec.bind(1, Tensor::of<int64_t>({2}, {-1, 0}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(4, 1));
}

// ---- wrong libraries -----------------------------------------------------------------------------------------------

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

// ---- streams -------------------------------------------------------------------------------------------------------

// The devices have streams, but no memory functions of their own.
TEST(OnnxifiStream, KeepsMemoryUntilItsWorkHasEnded) {
  const Environment env = vendor("plain");
  const uint64_t device = env.devices().back().info.id;
  Exec exec = env.compile(dense(), on(env.devices().back().name)).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  const Stream stream = env.stream(device);
  RunOptions in_stream;
  in_stream.stream = &stream;
  exec.run(in_stream);
  const Semaphore ready;
  const bp_point_t point = ready.at(1);
  bp_run_t run{};
  run.size = sizeof run;
  run.stream = stream.get();
  run.waits = &point;
  run.wait_count = 1;
  ASSERT_EQ(api().exec_run(exec.get(), &run, nullptr), BP_OK);
  const bp_allocate_t how{sizeof how, 0, 64, nullptr, nullptr};
  bp_buffer_t buffer{};
  ASSERT_EQ(api().memory_allocate(env.get(), device, &how, &buffer, nullptr), BP_OK);
  std::atomic<bool> is_released{false};
  std::thread releases([&] {
    const bp_release_t what{sizeof what, 0, &buffer, stream.get()};
    api().memory_release(env.get(), &what);
    is_released = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(is_released) << "while a run in the stream waits";
  ready.signal(1);
  releases.join();
  stream.wait();
}

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

TEST(OnnxifiOptions, AreChecked) {
  EXPECT_THAT(vendor("plain", {{"onnxifi.weights", "somehow"}}).report(),
              HasSubstr("it must be auto, model or descriptors"));
  const Environment env = vendor("plain", {{"onnxifi.weights", "descriptors"}});
  Exec exec = env.compile(dense(), on("onnxifi")).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
  EXPECT_EQ(failure([] {
              const Environment model = vendor("descriptors", {{"onnxifi.weights", "model"}});
              model.compile(dense(), on("onnxifi"));
            }).status(),
            BP_UNSUPPORTED);
}

// ---- ONNX's dummy library, and Backplane's own ---------------------------------------------------------------------

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

// The name of the device under which Backplane's own ONNXIFI library reports the CPU, or "none".
std::string inner_cpu(const Environment& env) {
  for (const Device& device : env.devices()) {
    if (view::text(device.info.name).substr(0, 14) == "Backplane cpu:") return device.name;
  }
  return "none";
}

// Backplane's own library, used as a vendor's, finds and opens backends itself, which takes long on a busy machine.
class OnnxifiRoundTrip : public ::testing::Test {
 protected:
  void SetUp() override { setenv("BACKPLANE_SCAN_TIMEOUT_MS", "100000", 1); }
  void TearDown() override { unsetenv("BACKPLANE_SCAN_TIMEOUT_MS"); }
};

TEST_F(OnnxifiRoundTrip, FindsTheDevicesOfTheLoaderOnceAndRunsOnThem) {
  const Environment env = vendor("backplane");
  for (const Device& device : env.devices())
    EXPECT_EQ(view::text(device.info.name).find("Backplane onnxifi"), std::string_view::npos);
  Exec exec = env.compile(dense(), on(inner_cpu(env))).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
}

std::string property(const Device& device, std::string_view name) {
  for (uint32_t i = 0; i < device.info.property_count; ++i) {
    const bp_option_t& each = device.info.properties[i];
    if (view::text(each.name) == name) return std::string(view::text(each.value));
  }
  return "none";
}

TEST_F(OnnxifiRoundTrip, ReportsTheVersionsThatTheLoaderKnows) {
  const Environment env = vendor("backplane");
  const Device device = env.devices().back();
  EXPECT_EQ(property(device, "onnxifi.ir_versions"), "3 4 5 6 7 8 9 10 11 12 13");
  EXPECT_EQ(property(device, "onnxifi.opsets"), "ai.onnx:27 ai.onnx.ml:5 ai.onnx.preview.training:1 com.microsoft:1");
  EXPECT_EQ(property(device, "onnxifi.extensions"), "onnx_extension_function onnxSetIOAndRunGraph");
}

std::vector<float> results(const Environment& env, const Model& model, const std::string& device) {
  Exec exec = env.compile(model, on(device)).exec();
  Tensor x(BP_DTYPE_FLOAT, model.graph().input(0).extents());
  auto* const data = static_cast<float*>(x.data());
  for (uint64_t i = 0; i < x.count(); ++i) data[i] = std::sin(static_cast<float>(i % 1000));
  exec.bind(0, x);
  exec.run();
  return values(exec.output(0));
}

// Options that run the backend in a process of its own, with the strict sandbox. That forbids starting programs, so the
// loader in the library uses Backplane's plugins without a probe.
std::map<std::string, std::string> isolated() {
  return {{"loader.isolate", "onnxifi"}, {"loader.isolate_paths", BACKPLANE_BUILD_DIR}};
}

TEST_F(OnnxifiRoundTrip, RunsResnetWithTheResultsOfTheCpuBackend) {
  const char* const data = std::getenv("BACKPLANE_DATA");
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  const std::string file = (data != nullptr ? data : home + "/.cache/backplane") + "/light/resnet50/model.onnx";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is missing: run scripts/setup.sh";
  for (const auto& options : {std::map<std::string, std::string>(), isolated()}) {
    const Environment env = vendor("backplane", options);
    const Model model = env.open(file);
    EXPECT_EQ(results(env, model, inner_cpu(env)), results(env, model, "cpu"));
  }
}

TEST_F(OnnxifiRoundTrip, RunsInAProcessOfItsOwn) {
  const Environment env = vendor("backplane", isolated());
  Exec exec = env.compile(dense(), on(inner_cpu(env))).exec();
  exec.bind(0, Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  exec.run();
  EXPECT_THAT(values(exec.output(0)), ElementsAre(0, 12, 0, 14));
}

// The backend writes the model in old forms, and the loader in the library upgrades it, so results must not change.
class OldForms : public ::testing::TestWithParam<const char*> {};

TEST_P(OldForms, MeanTheSame) {
  setenv("BACKPLANE_TEST_OPSET", GetParam(), 1);
  const Environment env = vendor("old");
  Graph graph;
  const auto ints = [&](const char* name, const std::vector<int64_t>& numbers) {
    return graph.weight(name, Tensor::of<int64_t>({static_cast<int64_t>(numbers.size())}, numbers));
  };
  const auto number = [&](const char* name, float value) { return graph.weight(name, Tensor::of<float>({}, {value})); };
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 6, 4, 4});
  const uint32_t clipped = graph.node("Clip", "clip", {x, number("low", -0.5f), number("high", 0.75f)});
  const uint32_t padded =
      graph.node("Pad", "pad", {clipped, ints("pads", {1, 1, 1, 1}), number("fill", 2), ints("where", {2, -1})});
  const uint32_t part = graph.node(
      "Slice", "slice", {padded, ints("from", {1, 1}), ints("to", {5, 5}), ints("along", {-2, 3}), ints("by", {1, 1})});
  const uint32_t mean = graph.node("ReduceMean", "mean", {part, ints("axes", {-1})}, {{"keepdims", 0}});
  const uint32_t soft = graph.node("Softmax", "soft", {mean}, {{"axis", -1}});
  const uint32_t wide = graph.node("Unsqueeze", "wide", {soft, ints("at", {-1})});
  const uint32_t sum = graph.node("Add", "sum", {wide, part});
  const uint32_t total = graph.node("ReduceSum", "total", {sum, ints("all", {1, 2})}, {{"keepdims", 1}});
  const Model model = graph.finish({graph.node("Squeeze", "flat", {total, ints("ones", {-2, 1})})});
  EXPECT_EQ(results(env, model, inner_cpu(env)), results(env, model, "cpu"));
}

INSTANTIATE_TEST_SUITE_P(Onnxifi, OldForms, ::testing::Values("7", "8", "9", "10", "11", "13", "17"),
                         [](const auto& info) { return "opset" + std::string(info.param); });

}  // namespace
