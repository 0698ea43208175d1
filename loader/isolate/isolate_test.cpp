// SPDX-License-Identifier: Apache-2.0
// Backends in separate processes, through the public API.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "testing/client_fixture.h"
#include "testing/emulated.h"
#include "testing/manifest_writer.h"
#include "testing/onnx_writer.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Clock = std::chrono::steady_clock;

const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
const std::string kNull = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_null.so";
const std::string kFake = BACKPLANE_BUILD_DIR "/tests/plugins/fake.so";
const std::string kFault = BACKPLANE_BUILD_DIR "/tests/plugins/fault.so";
const std::string kPartial = BACKPLANE_BUILD_DIR "/tests/plugins/partial.so";

Environment isolated(std::vector<std::string> files, const std::string& which,
                     std::map<std::string, std::string> options = {}) {
  options["loader.isolate"] = which;
  return environment(std::move(files), std::move(options));
}

// The running processes of isolated backends that this process has started.
std::vector<pid_t> processes() {
  std::vector<pid_t> found;
  DIR* const all = ::opendir("/proc");
  while (const dirent* entry = ::readdir(all)) {
    const std::string folder = "/proc/" + std::string(entry->d_name);
    std::ifstream file(folder + "/stat"), words(folder + "/cmdline");  // under QEMU, stat names QEMU
    pid_t number = 0, parent = 0;
    std::string name, state, command;
    std::getline(words, command);
    if (file >> number >> name >> state >> parent && parent == ::getpid() && state != "Z" &&
        command.find("backplane-isolated") != std::string::npos)
      found.push_back(number);
  }
  ::closedir(all);
  return found;
}

SessionOptions on(std::vector<std::string> devices) {
  SessionOptions how;
  how.devices = std::move(devices);
  return how;
}

Model one_node(const std::string& op, const std::vector<int64_t>& extents = {3}) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, extents);
  return graph.finish({graph.node(op, "y", {x})});
}

// y = relu(x + b). The first dimension is symbolic, and the weight b is too large to be sent with the graph.
Model sum_with_large_weight(int64_t columns) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1, columns}, {"rows", ""});
  std::vector<float> values(static_cast<size_t>(columns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
  const uint32_t b = graph.weight("b", Tensor::of<float>({columns}, values));
  return graph.finish({graph.node("Relu", "y", {graph.node("Add", "s", {x, b})})});
}

std::vector<float> run(Exec& exec, const std::vector<float>& x) {
  exec.bind("x", Tensor::of<float>({static_cast<int64_t>(x.size())}, x));
  exec.run();
  return exec.output(0u).values<float>();
}

TEST(Isolate, RunsInAnotherProcess) {
  const size_t before = processes().size();
  {
    const Environment env = isolated({kCpu}, "cpu");
    EXPECT_EQ(processes().size(), before + 1);
    Exec exec = env.compile(one_node("Neg")).exec();
    EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(-1, 2, -3));
    EXPECT_THAT(run(exec, {4, 5, 6}), ElementsAre(-4, -5, -6));
    const bp_text_t text = env.candidates()[0].text;
    EXPECT_THAT(std::string(text.data, text.size), HasSubstr("in a process of its own (strict sandbox)"));
  }
  EXPECT_EQ(processes().size(), before);
}

TEST(Isolate, PatternsChooseTheBackends) {
  const size_t before = processes().size();
  const Environment env = isolated({kCpu, kNull}, "*,!cpu");
  EXPECT_EQ(processes().size(), before + 1);
}

TEST(Isolate, AManifestAsksForIt) {
  testing::Sandbox sandbox;
  const auto file = sandbox.write("cpu.json", testing::manifest("cpu", kCpu, R"(, "isolation": "process")"));
  const size_t before = processes().size();
  {
    const Environment env = environment({file.string()});
    EXPECT_EQ(processes().size(), before + 1);
    Exec exec = env.compile(one_node("Abs")).exec();
    EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(1, 2, 3));
  }
  const Environment env = environment({file.string()}, {{"loader.isolate", "!cpu"}});
  EXPECT_EQ(processes().size(), before);
}

TEST(Isolate, ADeviceThatCannotBeDescribedIsReportedWithThePluginsText) {
  const Environment env = isolated({kFault}, "fault", {{"fault.ops", "Neg"}, {"fault.what", "fails_when_open"}});
  const Error error = failure([&] { env.compile(one_node("Neg")); });
  EXPECT_EQ(error.status(), BP_IO_ERROR);
  EXPECT_THAT(error.text(), HasSubstr("the firmware does not respond"));
}

TEST(Isolate, ResultsAreThoseOfTheSameBackendInProcess) {
  for (const int64_t columns : {8, 20'000}) {
    std::vector<std::vector<float>> results;
    for (const std::string which : {"cpu", "none"}) {
      const Environment env = isolated({kCpu}, which);
      Exec exec = env.compile(sum_with_large_weight(columns)).exec();
      for (const int64_t rows : {1, 3, 2}) {
        std::vector<float> x(static_cast<size_t>(rows * columns));
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) - 6;
        exec.bind("x", Tensor::of<float>({rows, columns}, x));
        exec.run();
        EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{rows, columns}));
        results.push_back(exec.output(0u).values<float>());
      }
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i], results[i + 3]);
  }
}

TEST(Isolate, GraphsOfManyNodes) {
  const Environment env = isolated({kCpu}, "cpu");
  Graph graph;
  uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {3});
  for (int i = 0; i < 301; ++i) value = graph.node("Neg", "n" + std::to_string(i), {value});
  Exec exec = env.compile(graph.finish({value})).exec();
  EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(-1, 2, -3));
}

TEST(Isolate, WeightsOfAFileAreMappedThere) {
  using namespace testing::onnx;
  constexpr int64_t kColumns = 50'000;
  const std::vector<float> values(kColumns, 2.5f);
  const testing::Sandbox sandbox;
  const std::string file =
      sandbox
          .write("weights.onnx", model_bytes({{"", 17}}, graph({node("Add", {"x", "w"}, {"y"})},
                                                               {tensor_value("x", BP_DTYPE_FLOAT, {kColumns})},
                                                               {tensor_value("y", BP_DTYPE_FLOAT, {kColumns})},
                                                               {tensor("w", BP_DTYPE_FLOAT, {kColumns}, values)})))
          .string();
  const Environment env = isolated({kFault}, "fault", {{"fault.ops", "Add"}, {"fault.what", "maps_weights"}});
  const std::vector<pid_t> all = processes();
  ASSERT_FALSE(all.empty());
  const Session session = env.compile(env.open(file));
  std::ifstream maps("/proc/" + std::to_string(all.back()) + "/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), {});
  EXPECT_THAT(text, HasSubstr("weights.onnx"));
}

TEST(Isolate, OutputsWhoseExtentsTheRunFindsOut) {
  const Environment env = isolated({kCpu}, "cpu");
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {4});
  Exec exec = env.compile(graph.finish({graph.node("NonZero", "y", {x})})).exec();
  exec.bind("x", Tensor::of<float>({4}, {0, 5, 0, 7}));
  exec.run();
  EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{1, 2}));
  EXPECT_THAT(exec.output(0u).values<int64_t>(), ElementsAre(1, 3));
}

TEST(Isolate, ADeviceWithStreamsAndMemoryOfItsOwnRunsOnHostTensors) {
  const Environment env =
      isolated({kPartial}, "partial",
               {{"partial.async", "1"}, {"partial.memory", "own"}, {"loader.isolate_paths", BACKPLANE_BUILD_DIR}});
  Exec exec = env.compile(one_node("Neg")).exec();
  EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(-1, 2, -3));
  EXPECT_THAT(run(exec, {0, 1, 2}), ElementsAre(0, -1, -2));
  bp_device_t* handle = nullptr;
  EXPECT_EQ(api().env_plugin_device(env.get(), env.devices()[0].info.id, &handle, nullptr), BP_UNSUPPORTED);
  EXPECT_EQ(handle, nullptr);
}

// Binds memory that is shared with the process, and other memory.
TEST(Isolate, ABufferOfAnInputAndAnOutputIsOneThere) {
  constexpr int64_t kElements = 1 << 16;
  const Environment env = isolated({kFake}, "fake", {{"fake.ops", "Neg"}, {"fake.must", "1"}});
  Exec exec = env.compile(one_node("Neg", {kElements})).exec();
  const std::vector<int64_t> extents = {kElements};
  const uint64_t bytes = kElements * sizeof(float);
  const uint64_t device = env.devices()[0].info.id;
  const Buffer first = env.allocate(device, bytes), second = env.allocate(device, bytes);
  Tensor plain(BP_DTYPE_FLOAT, extents);
  for (bp_tensor_t tensor :
       {first.tensor(BP_DTYPE_FLOAT, extents), second.tensor(BP_DTYPE_FLOAT, extents), plain.abi()}) {
    tensor.buffer.device = 0;
    exec.bind_memory(0, tensor);
    exec.bind_memory(BP_SLOT_OUTPUT, tensor);
    EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_OK);
  }
}

TEST(Isolate, OneProcessServesManySessionsAndThreads) {
  const size_t before = processes().size();
  const Environment env = isolated({kCpu}, "cpu");
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      const std::string op = t % 2 ? "Neg" : "Abs";
      Exec exec = env.compile(one_node(op)).exec();
      for (int i = 0; i < 50; ++i) {
        const auto value = static_cast<float>(-i - t);
        const std::vector<float> y = run(exec, {value, value, value});
        right += y == std::vector<float>(3, -value);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 300);
  EXPECT_EQ(processes().size(), before + 1);
}

TEST(Isolate, ACrashIsAnErrorWithTheBackendsName) {
  const Environment env =
      isolated({kFault}, "fault", {{"fault.ops", "Neg"}, {"fault.what", "crash_in_run"}, {"fault.first", "1"}});
  Exec exec = env.compile(one_node("Neg")).exec();
  run(exec, {1, 2, 3});
  const Error error = failure([&] { run(exec, {1, 2, 3}); });
  EXPECT_EQ(error.status(), BP_DEVICE_LOST);
  EXPECT_THAT(error.text(), HasSubstr("backend fault"));
  EXPECT_THAT(error.text(), HasSubstr("crashed (SIGABRT) while it ran"));
  EXPECT_EQ(failure([&] { run(exec, {1, 2, 3}); }).status(), BP_DEVICE_LOST);
  Exec again = env.compile(one_node("Neg")).exec();  // in a new process
  EXPECT_THAT(run(again, {1, 2, 3}), ElementsAre(1, 2, 3));
}

TEST(Isolate, AHangEndsSoonAfterTheDeadline) {
  const Environment env =
      isolated({kFault}, "fault", {{"fault.ops", "Neg"}, {"fault.what", "hang_in_run"}, {"fault.first", "1"}});
  Exec exec = env.compile(one_node("Neg")).exec();
  run(exec, {1, 2, 3});
  RunOptions options;
  options.timeout = std::chrono::milliseconds(100);
  const auto begin = Clock::now();
  const Error error = failure([&] { exec.run(options); });
  EXPECT_EQ(error.status(), BP_TIMED_OUT);
  EXPECT_THAT(error.text(), HasSubstr("did not return in time while it ran"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  Exec again = env.compile(one_node("Neg")).exec();
  EXPECT_THAT(run(again, {1, 2, 3}), ElementsAre(1, 2, 3));
}

// Neither a signal that stops the process, nor a plugin that blocks signals and closes the control socket, lets it
// outlive a framework that is killed.
TEST(Isolate, AProcessEndsWithItsFramework) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulator cannot fork a program with several threads";
  for (const int signal : {SIGSTOP, SIGCONT}) {
    SCOPED_TRACE(signal);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t framework = ::fork();
    if (framework == 0) {
      std::thread([&] {  // a framework may end this thread; the process must stay
        const Environment env = isolated({kFault}, "fault", {{"fault.ops", "Neg"}, {"fault.what", "hang_in_run"}});
        Exec exec = env.compile(one_node("Neg")).exec();
        const pid_t child = processes().at(0);
        ::kill(child, signal);
        static_cast<void>(::write(ends[1], &child, sizeof child));
        run(exec, {1, 2, 3});
      })
          .detach();
      for (;;) ::pause();
    }
    pid_t child = -1;
    ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
    const int process = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    ASSERT_GE(process, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until the run has begun
    ::kill(framework, SIGKILL);
    ::waitpid(framework, nullptr, 0);
    pollfd ended{process, POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, 20'000), 1) << "it is still there";
    ::kill(child, SIGKILL);
    for (const int number : {process, ends[0], ends[1]}) ::close(number);
  }
}

// A process is started for a thread of the framework that ends before the framework does.
TEST(Isolate, AProcessOutlivesTheThreadThatStartedIt) {
  std::optional<Environment> env;
  std::thread([&] { env.emplace(isolated({kCpu}, "cpu")); }).join();
  Exec exec = env->compile(one_node("Neg")).exec();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_THAT(run(exec, {1, -2, 3}), ElementsAre(-1, 2, -3));
  EXPECT_EQ(failure([&] { run(exec, {1, -2, 3}); }).text(), "nothing was thrown");
}

TEST(Isolate, DeadlinesReachTheBackend) {
  const Environment env =
      isolated({kPartial}, "partial", {{"partial.fault", "hang@y#2"}, {"loader.isolate_paths", BACKPLANE_BUILD_DIR}});
  Exec exec = env.compile(one_node("Neg")).exec();
  EXPECT_THAT(run(exec, {1, 2, 3}), ElementsAre(-1, -2, -3));
  RunOptions options;
  options.timeout = std::chrono::milliseconds(500);  // long enough for the process to receive the run
  EXPECT_EQ(failure([&] { exec.run(options); }).status(), BP_TIMED_OUT);
  options.timeout = std::chrono::seconds(60);
  exec.run(options);  // the process was not killed
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-1, -2, -3));
}

TEST(Isolate, ASessionIsPlacedAgainAfterACrash) {
  const Environment env = isolated({kFault, kCpu}, "fault", {{"fault.ops", "Neg"}, {"fault.what", "crash_in_run"}});
  SessionOptions how = on({"fault", "cpu"});
  how.fallback = BP_FALLBACK_PREFER;
  Exec exec = env.compile(one_node("Neg"), how).exec();
  EXPECT_THAT(run(exec, {1, 2, 3}), ElementsAre(-1, -2, -3));  // computed by the CPU
}

// Kills the process during 200 runs. The first run of each process ends well; the second would never end.
TEST(Isolate, KillingTheProcessLosesNoLaterRun) {
  const Environment env =
      isolated({kFault}, "fault", {{"fault.ops", "Neg"}, {"fault.what", "hang_in_run"}, {"fault.first", "1"}});
  const Model model = one_node("Neg");
  int ended_well = 0;
  for (int i = 0; i < 200; ++i) {
    Exec exec = env.compile(model).exec();
    if (i == 0) run(exec, {1, 2, 3});
    exec.bind("x", Tensor::of<float>({3}, {1, 2, 3}));
    std::thread killer([i, all = processes()] {
      std::this_thread::sleep_for(std::chrono::microseconds(200 + i * 20));
      for (const pid_t process : all) ::kill(process, SIGKILL);
    });
    const Error error = failure([&] { exec.run(); });
    killer.join();
    ASSERT_EQ(error.status(), BP_DEVICE_LOST) << error.text();
    Exec later = env.compile(model).exec();
    ended_well += run(later, {4, 5, 6}) == std::vector<float>{4, 5, 6};
  }
  EXPECT_EQ(ended_well, 200);
}

void kill_processes() {
  for (const pid_t process : processes()) {
    ::kill(process, SIGKILL);
    while (::kill(process, 0) == 0 && std::ranges::count(processes(), process) != 0) std::this_thread::yield();
  }
}

// After the backend was started again, a device is found by its description, whatever its index is.
TEST(Isolate, ADeviceIsNotMistakenForAnotherAfterARestart) {
  testing::Sandbox sandbox;
  const Environment env = isolated({kFault}, "fault",
                                   {{"fault.ops", "Neg"},
                                    {"fault.devices", "2"},
                                    {"fault.uuid", "first,second"},
                                    {"fault.what", "loses_first"},
                                    {"fault.path", sandbox.root().string()}});
  ASSERT_EQ(env.devices().size(), 2u);
  const Model model = one_node("Neg");
  for (const std::string device : {"fault", "fault:1"}) {
    Exec exec = env.compile(model, on({device})).exec();
    EXPECT_THAT(run(exec, {1, 2, 3}), ElementsAre(1, 2, 3)) << device;
  }
  sandbox.write("lost", "");
  kill_processes();
  const Error error = failure([&] { env.compile(model, on({"fault"})); });
  EXPECT_EQ(error.status(), BP_DEVICE_LOST);
  EXPECT_THAT(error.text(), HasSubstr("was started again and does not have this device any more"));
  Exec second = env.compile(model, on({"fault:1"})).exec();
  EXPECT_THAT(run(second, {4, 5, 6}), ElementsAre(4, 5, 6));
}

TEST(Isolate, FailuresInARowPauseLongerAndLonger) {
  const Environment env = isolated({kFault}, "fault", {{"fault.ops", "Neg"}, {"fault.what", "crash_in_compile"}});
  std::string text;
  for (int i = 0; i < 20 && text.find("times in a row") == text.npos; ++i)
    text = failure([&] { env.compile(one_node("Neg")); }).text();
  EXPECT_THAT(text, HasSubstr("times in a row: it is started again in"));
}

TEST(Isolate, AllDescriptionsTogetherHaveOneTimeLimit) {
  testing::Sandbox sandbox;
  sandbox.set("BACKPLANE_SCAN_TIMEOUT_MS", "2000");
  const auto begin = Clock::now();
  EXPECT_EQ(isolated({kFault}, "fault", {{"fault.what", "slow_info"}}).devices().size(), 0u);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8));  // one after another they would take ten
}

TEST(Isolate, TheSandboxForbidsNetworkFilesProgramsAndOtherGroups) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulator has no sandbox";
  for (const std::string escape :
       {"opens_socket", "opens_file", "starts_program", "leaves_group", "signals_parent", "lets_signal_parent",
        "limits_parent", "slows_parent", "reads_parent", "changes_mode", "shares_memory"}) {
    SCOPED_TRACE(escape);
    EXPECT_EQ(isolated({kFault}, "fault", {{"fault.what", escape}}).devices().size(), 1u);
    const Environment open = isolated({kFault}, "fault", {{"fault.what", escape}, {"loader.isolate_sandbox", "off"}});
    EXPECT_EQ(open.devices().size(), 0u) << "the test does not see what the sandbox forbids";
  }
}

TEST(Isolate, LargeTensorsOfTheLoaderAreNotCopied) {
  constexpr int64_t kElements = 16 << 20;  // 64 MiB of floats
  const Environment env = isolated({kFault}, "fault", {{"fault.ops", "Neg"}});
  Exec exec = env.compile(one_node("Neg", {kElements})).exec();
  const uint64_t device = env.devices()[0].info.id;
  const auto memory = [&] {
    bp_allocate_t what{};
    what.size = sizeof what;
    what.bytes = kElements * sizeof(float);
    bp_buffer_t buffer{};
    detail::call(api().memory_allocate, env.get(), device, static_cast<const bp_allocate_t*>(&what), &buffer);
    return buffer;
  };
  const int64_t extents[] = {kElements};
  const auto tensor = [&](const bp_buffer_t& buffer) {
    bp_tensor_t of{};
    of.size = sizeof of;
    of.dtype = BP_DTYPE_FLOAT;
    of.rank = 1;
    of.extents = extents;
    of.buffer = buffer;
    of.buffer.device = 0;
    return of;
  };
  const auto milliseconds = [&] {
    exec.run();
    const auto begin = Clock::now();
    for (int i = 0; i < 3; ++i) exec.run();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / 3;
  };
  bp_buffer_t in = memory(), out = memory();
  auto* x = static_cast<float*>(in.address);
  auto* y = static_cast<float*>(out.address);
  for (int64_t i = 0; i < kElements; ++i) x[i] = static_cast<float>(i);
  exec.bind_memory(0, tensor(in));
  exec.bind_memory(BP_SLOT_OUTPUT, tensor(out));
  const double shared = milliseconds();
  EXPECT_EQ(y[kElements - 1], x[kElements - 1]);
  x[7] = -1;  // the next run sees this without another bind
  exec.run();
  EXPECT_EQ(y[7], -1);

  std::vector<float> plain_in(kElements, 2), plain_out(kElements);
  in.address = plain_in.data();
  out.address = plain_out.data();
  exec.bind_memory(0, tensor(in));
  exec.bind_memory(BP_SLOT_OUTPUT, tensor(out));
  const double copied = milliseconds();
  EXPECT_EQ(plain_out[kElements - 1], 2);
  std::printf("64 MB there and back: %.2f ms in shared memory (%.1f GB/s), %.2f ms in other memory\n", shared,
              2 * 0.064 / shared * 1000, copied);
  for (void* address : {static_cast<void*>(x), static_cast<void*>(y)}) {
    bp_buffer_t buffer = address == x ? in : out;
    buffer.address = address;
    bp_release_t what{};
    what.size = sizeof what;
    what.buffer = &buffer;
    api().memory_release(env.get(), &what);
  }
}

// The number of blocks of shared memory for copies of tensors that this process has mapped.
size_t mapped_copies() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("backplane-tensors") != line.npos;
  return count;
}

TEST(Isolate, ATensorThatGrowsWithEveryRunNeedsFewCopies) {
  const Environment env = isolated({kCpu}, "cpu");
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1}, {"n"});
  Exec exec = env.compile(graph.finish({graph.node("Neg", "y", {x})})).exec();
  const size_t before = mapped_copies();
  for (size_t elements = 20'000; elements <= 500'000; elements += 20'000)
    EXPECT_EQ(run(exec, std::vector<float>(elements, 1)).back(), -1);
  EXPECT_LE(mapped_copies() - before, 12u);  // for 25 different sizes
}

TEST(Isolate, ATensorThatIsSharedEverySecondTimeReusesItsCopy) {
  constexpr int64_t kElements = 50'000;
  const Environment env = isolated({kFault}, "fault", {{"fault.ops", "Neg"}});
  Exec exec = env.compile(one_node("Neg", {kElements})).exec();
  bp_allocate_t what{};
  what.size = sizeof what;
  what.bytes = kElements * sizeof(float);
  bp_buffer_t shared{};
  detail::call(api().memory_allocate, env.get(), env.devices()[0].info.id, static_cast<const bp_allocate_t*>(&what),
               &shared);
  std::vector<float> plain(kElements, 2);
  std::ranges::fill_n(static_cast<float*>(shared.address), kElements, 1.0f);
  const size_t before = mapped_copies();
  for (int i = 0; i < 20; ++i) {
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = BP_DTYPE_FLOAT;
    tensor.rank = 1;
    tensor.extents = &kElements;
    tensor.buffer = shared;
    tensor.buffer.device = 0;
    if (i % 2) tensor.buffer.address = plain.data();
    exec.bind_memory(0, tensor);
    exec.run();
    EXPECT_EQ(exec.output(0u).values<float>().back(), i % 2 ? 2 : 1);
  }
  EXPECT_LE(mapped_copies() - before, 4u);
  bp_release_t release{};
  release.size = sizeof release;
  release.buffer = &shared;
  api().memory_release(env.get(), &release);
}

TEST(Isolate, LogLinesAreForwarded) {
  EnvironmentOptions how;
  how.backend_files = {kFault};
  how.only_given = true;
  how.options = {{"loader.isolate", "fault"}, {"fault.ops", "Neg"}, {"fault.what", "crash_in_run"}};
  how.log_level = BP_LOG_WARNING;
  std::atomic<int> lines{0};
  how.log = [&](uint32_t, std::string_view text) { lines += text.find("started again") != text.npos; };
  const Environment env(how);
  EXPECT_EQ(failure([&] {
              Exec exec = env.compile(one_node("Neg")).exec();
              run(exec, {1, 2, 3});
            }).status(),
            BP_DEVICE_LOST);
  env.compile(one_node("Neg"));
  EXPECT_EQ(lines, 1);
}

}  // namespace
}  // namespace backplane
