// SPDX-License-Identifier: Apache-2.0
// The host's services, mostly through the table that backends use.
#include "host/host.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "backplane/ext/draft/shared_memory.h"
#include "base/abi.h"
#include "host/cancel.h"
#include "host/semaphore.h"
#include "host/shared_memory.h"
#include "host/threads.h"
#include "host/topology.h"
#include "testing/emulated.h"
#include "testing/forks.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;

struct Lines {
  std::vector<std::string> text;
  static void add(void* self, uint32_t level, bp_text_t text) {
    static_cast<Lines*>(self)->text.push_back(std::to_string(level) + " " + abi::string(text));
  }
};

class HostTest : public ::testing::Test {
 protected:
  explicit HostTest(uint32_t threads = 4) {
    bp_env_desc_t desc{};
    desc.size = sizeof desc;
    desc.threads = threads;
    desc.log_level = BP_LOG_INFO;
    desc.log = Lines::add;
    desc.self = &lines;
    services = std::make_shared<Services>(desc);
    backend = std::make_unique<Host>(services, "cpu", Host::Options{{"threads", "2"}}, BP_ABI_VERSION);
    host = backend->table();
  }
  Lines lines;
  std::shared_ptr<Services> services;
  std::unique_ptr<Host> backend;
  const bp_host_t* host;
};

TEST_F(HostTest, LogNamesTheBackendDropsLowLevelsAndDisarmsControlCharacters) {
  host->log(host, BP_LOG_WARNING, abi::text("two\nlines \x1b[31m"));
  host->log(host, BP_LOG_DEBUG, abi::text("too fine"));
  host->log(host, 99, abi::text("no such level"));
  host->log(host, BP_LOG_ERROR, {nullptr, 0});
  EXPECT_THAT(lines.text, ElementsAre("2 cpu: two lines  [31m", "1 cpu: "));
}

TEST(Logging, LevelsAreOfAllCategoriesOrOfOne) {
  EXPECT_THAT(parse_log_levels(""), ElementsAre(2, 2, 2)) << "warnings and errors";
  EXPECT_THAT(parse_log_levels("none"), ElementsAre(0, 0, 0));
  EXPECT_THAT(parse_log_levels("info,discover=debug,backend=error"), ElementsAre(3, 4, 1));
  EXPECT_THAT(parse_log_levels("discover=debug,warning"), ElementsAre(2, 2, 2)) << "later ones win";
  EXPECT_THAT(parse_log_levels("loud,run=debug,=,loader=,,loader=info"), ElementsAre(3, 2, 2));
}

TEST(Logging, FileThatCannotBeUsedIsReportedOnce) {
  std::string name = ::testing::TempDir() + "log-XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::string pipe = name + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ::setenv("BACKPLANE_LOG_FILE", pipe.c_str(), 1);
  ::testing::internal::CaptureStderr();
  Log(BP_LOG_ERROR, nullptr, nullptr).error("first");
  Log(0, nullptr, nullptr).error("second");
  ::close(reader);  // without a reader, opening a pipe to write to it would wait
  Log(0, nullptr, nullptr).error("third");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "backplane: error: first\nbackplane: warning: BACKPLANE_LOG_FILE is \"" + pipe +
                "\" and is ignored: it is a pipe or socket, not a file; lines go to standard error\n"
                "backplane: error: second\nbackplane: error: third\n");
  ::unsetenv("BACKPLANE_LOG_FILE");
  std::filesystem::remove_all(name);
}

TEST(Logging, GoesToAFileAsLinesOrAsJson) {
  std::string name = ::testing::TempDir() + "log-XXXXXX";
  ::close(::mkstemp(name.data()));
  ::setenv("BACKPLANE_LOG_FILE", name.c_str(), 1);
  ::setenv("BACKPLANE_LOG", "error,discover=info", 1);
  {
    const Log log(0, nullptr, nullptr);
    log.error("bad \x1b[2J");
    log.info("not wanted");
    log.about(LogCategory::kDiscover).info("wanted");
    log.about(LogCategory::kDiscover).write(BP_LOG_INFO, "cpu", "of a backend: not wanted");
    ::setenv("BACKPLANE_LOG_FORMAT", "json", 1);
    Log(0, nullptr, nullptr).write(BP_LOG_ERROR, "cpu", "say \"\\\n\"");
  }
  for (const char* variable : {"BACKPLANE_LOG_FILE", "BACKPLANE_LOG", "BACKPLANE_LOG_FORMAT"}) ::unsetenv(variable);
  std::ifstream file(name);
  std::string first, second, third, fourth;
  std::getline(file, first), std::getline(file, second), std::getline(file, third);
  EXPECT_EQ(first, "backplane: error: bad  [2J");
  EXPECT_EQ(second, "backplane: info: wanted");
  const auto json = nlohmann::json::parse(third, nullptr, false);
  ASSERT_TRUE(json.is_object()) << third;
  EXPECT_EQ(json.at("level"), "error");
  EXPECT_EQ(json.at("category"), "backend");
  EXPECT_EQ(json.at("backend"), "cpu");
  EXPECT_EQ(json.at("text"), "say \"\\ \"");
  EXPECT_FALSE(std::getline(file, fourth)) << fourth;
  ::unlink(name.c_str());
}

TEST_F(HostTest, OptionsAreFoundByName) {
  bp_text_t value{};
  EXPECT_EQ(host->option(host, abi::text("threads"), &value), BP_OK);
  EXPECT_EQ(abi::view(value), "2");
  EXPECT_EQ(host->option(host, abi::text("color"), &value), BP_NOT_FOUND);
  bp_option_t option{};
  EXPECT_EQ(host->option_at(host, 0, &option), BP_OK);
  EXPECT_EQ(abi::view(option.name), "threads");
  EXPECT_EQ(abi::view(option.value), "2");
  EXPECT_EQ(host->option_at(host, 1, &option), BP_NOT_FOUND);
}

TEST_F(HostTest, MemoryIsAlignedAndBadRequestsGiveNull) {
  for (uint64_t alignment : {1, 16, 64, 4096}) {
    void* memory = host->allocate(host, 100, alignment);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0u);
    host->release(host, memory, 100, alignment);
  }
  for (uint64_t alignment : {0, 3, 8192}) EXPECT_EQ(host->allocate(host, 100, alignment), nullptr) << alignment;
}

TEST_F(HostTest, ParallelForVisitsEachIndexOnceInPiecesOfTheGrain) {
  struct Visit {
    std::vector<std::atomic<int>> seen = std::vector<std::atomic<int>>(10'000);
    std::atomic<uint64_t> smallest{UINT64_MAX};
    std::array<std::atomic<bool>, 4> busy{};
    std::atomic<bool> shared{false};
  } visit;
  const bp_loop_t loop{
      sizeof loop, 0, visit.seen.size(), 300, &visit, [](void* context, uint32_t worker, uint64_t begin, uint64_t end) {
        auto& v = *static_cast<Visit*>(context);
        v.shared = v.shared || worker >= 4 || v.busy[worker].exchange(true);
        for (uint64_t i = begin; i < end; ++i) ++v.seen[i];
        uint64_t smallest = v.smallest;
        while (end - begin < smallest && !v.smallest.compare_exchange_weak(smallest, end - begin)) {
        }
        v.busy[worker] = false;
      }};
  host->parallel_for(host, &loop);
  EXPECT_FALSE(visit.shared) << "two pieces at one time with one worker";
  for (const auto& count : visit.seen) ASSERT_EQ(count, 1);
  EXPECT_GE(visit.smallest, 300u);
  EXPECT_EQ(host->thread_count(host), 4u);
}

TEST_F(HostTest, ParallelForMayBeNested) {
  struct Sum {
    const bp_host_t* host;
    std::atomic<uint64_t> value{0};
    std::array<std::atomic<bool>, 4> busy{};
    std::atomic<bool> shared{false};
  } sum{host, {}, {}, {}};
  const bp_loop_t outer{sizeof outer, 0, 8, 1, &sum, [](void* self, uint32_t worker, uint64_t begin, uint64_t end) {
                          auto& sum = *static_cast<Sum*>(self);
                          if (sum.busy[worker].exchange(true)) sum.shared = true;
                          for (uint64_t i = begin; i < end; ++i) {
                            const bp_loop_t inner{sizeof inner,
                                                  0,
                                                  100,
                                                  1,
                                                  self,
                                                  [](void* self, uint32_t, uint64_t from, uint64_t to) {
                                                    static_cast<Sum*>(self)->value += to - from; }};
                            sum.host->parallel_for(sum.host, &inner);
                          }
                          sum.busy[worker] = false;
                        }};
  for (int i = 0; i < 100; ++i) host->parallel_for(host, &outer);
  EXPECT_EQ(sum.value, 80'000u);
  EXPECT_FALSE(sum.shared) << "a piece that waits for a loop within it shares its worker with another piece";
}

// Runs in a process of its own, in which oneTBB has not started a thread yet.
TEST_F(HostTest, ParallelForVisitsEachIndexOnceIfNoThreadCanBeStarted) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [&] {
    using oneapi::tbb::global_control;
    const global_control stack(global_control::thread_stack_size, size_t{1} << 46);  // more memory than there is
    const global_control threads(global_control::max_allowed_parallelism, 4);
    static std::array<std::atomic<int>, 1000> seen;
    const bp_loop_t loop{
        sizeof loop, 0, seen.size(), 1, nullptr, [](void*, uint32_t worker, uint64_t begin, uint64_t end) {
          for (uint64_t i = begin; i < end; ++i) seen[i] += worker < 4 ? 1 : 100;
        }};
    for (int times = 1; times <= 3; ++times) {
      host->parallel_for(host, &loop);
      for (const auto& count : seen)
        if (count != times) std::exit(1);
    }
    std::exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

TEST(ThreadsTest, WorkIsAcceptedIfNoThreadCanBeStarted) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulated program cannot start itself";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    using oneapi::tbb::global_control;
    const global_control stack(global_control::thread_stack_size, size_t{1} << 46);
    enqueue([](void*) {}, nullptr);
    std::exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

TEST(TopologyTest, CountsCoresNotTheirThreads) {
  setenv("HWLOC_SYNTHETIC", "package:2 numa:1 core:3 pu:2", 1);
  const Result<Topology> topology = Topology::read();
  unsetenv("HWLOC_SYNTHETIC");
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology->table().core_count, 12u);
  EXPECT_EQ(topology->allowed_cores(), 6u);
  EXPECT_EQ(topology->table().numa_count, 2u);
}

TEST_F(HostTest, TopologyDescribesThisMachine) {
  bp_topology_t topology{};
  topology.size = sizeof topology;
  ASSERT_EQ(host->topology(host, &topology), BP_OK);
  ASSERT_GT(topology.core_count, 0u);
  uint32_t allowed = 0;
  for (uint32_t i = 0; i < topology.core_count; ++i) {
    const bp_core_t core = abi::element(topology.cores, i, topology.core_stride);
    allowed += (core.flags & BP_CORE_ALLOWED) != 0;
  }
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
  EXPECT_EQ(allowed, static_cast<uint32_t>(CPU_COUNT(&mine)));
  EXPECT_GE(topology.numa_count, 1u);
  EXPECT_GT(topology.memory_bytes, uint64_t{1} << 20);
  EXPECT_GE(topology.cache_line_bytes, 16u);
}

TEST_F(HostTest, TraceIsPerfettoJson) {
  bp_span_t span{};
  span.size = sizeof span;
  span.kind = BP_SPAN_COMPUTE;
  span.begin = 1'234'567;
  span.end = 2'000'000;
  const uint64_t node = 7;
  span.nodes = &node;
  span.node_count = 1;
  span.device = 1;
  span.name = abi::text("Conv \"a\"\n\\\xff");  // 0xff is not UTF-8
  std::string out;
  auto sink = [](void* context, bp_text_t piece) { *static_cast<std::string*>(context) += abi::view(piece); };

  EXPECT_EQ(services->trace().stop(sink, &out).code(), BP_BAD_STATE);
  EXPECT_EQ(host->tracing(host), 0u);
  host->trace(host, &span);  // ignored, because the trace has not been started
  services->trace().name_device(1, "cpu");
  services->trace().start();
  EXPECT_EQ(host->tracing(host), 1u);
  host->trace(host, &span);
  ASSERT_TRUE(services->trace().stop(sink, &out).ok());

  const auto json = nlohmann::json::parse(out);
  std::vector<nlohmann::json> complete;
  bool named = false;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "X") complete.push_back(event);
    if (event["name"] == "process_name" && event["pid"] == 1) named = event["args"]["name"] == "cpu";
  }
  EXPECT_TRUE(named);
  ASSERT_EQ(complete.size(), 1u);
  EXPECT_EQ(complete[0]["name"], "Conv \"a\" \\\xEF\xBF\xBD");
  EXPECT_DOUBLE_EQ(complete[0]["ts"].get<double>(), 1234.567);
  EXPECT_DOUBLE_EQ(complete[0]["dur"].get<double>(), 765.433);
  EXPECT_EQ(complete[0]["args"]["node"], 7);
}

TEST(TraceTest, IsBoundedInBytes) {
  Trace trace(10'000);
  const std::vector<uint64_t> nodes(1000);
  bp_span_t span{};
  span.size = sizeof span;
  span.nodes = nodes.data();
  span.node_count = 1000;
  trace.start();
  for (int i = 0; i < 3; ++i) trace.add(span);  // 8,000 bytes of nodes each
  std::string text;
  const auto sink = [](void* self, bp_text_t piece) {
    static_cast<std::string*>(self)->append(piece.data, piece.size);
  };
  ASSERT_TRUE(trace.stop(sink, &text).ok());
  EXPECT_NE(text.find("\"dropped\":2"), std::string::npos) << text.substr(0, 200);
}

TEST_F(HostTest, TasksThatWaitForEachOtherEnd) {
  bp_semaphore_t semaphore;
  struct Step {
    const bp_host_t* host;
    bp_semaphore_t* semaphore;
    uint64_t value;
  };
  constexpr uint64_t kSteps = 20;  // every task except the last waits in its thread for the task submitted after it
  std::vector<Step> steps;
  for (uint64_t i = 0; i < kSteps; ++i) steps.push_back({host, &semaphore, kSteps - i});
  for (Step& step : steps) {
    const bp_task_t task{sizeof task, 0, &step, [](void* self) {
                           const Step& step = *static_cast<Step*>(self);
                           step.host->semaphore_wait(step.host, step.semaphore, step.value - 1, BP_FOREVER, nullptr,
                                                     nullptr);
                           step.host->semaphore_signal(step.host, step.semaphore, step.value, nullptr);
                         }};
    ASSERT_EQ(host->submit(host, &task), BP_OK);
  }
  EXPECT_TRUE(semaphore.wait(kSteps).ok());
  backend->finish();
  EXPECT_EQ(host->submit(host, nullptr), BP_INVALID_ARGUMENT);
}

TEST(Submit, ATaskThatCannotBeQueuedIsNotWaitedFor) {
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.submit = [](void*, const bp_task_t*) -> bp_status_t { throw std::bad_alloc(); };
  Host backend(std::make_shared<Services>(desc), "cpu", {}, BP_ABI_VERSION);
  bp_task_t task{};
  task.size = sizeof task;
  task.run = [](void*) {};
  EXPECT_EQ(backend.table()->submit(backend.table(), &task), BP_RESOURCE_EXHAUSTED);
  ::alarm(20);  // ends this program if `finish` hangs
  backend.finish();
  ::alarm(0);
}

TEST_F(HostTest, ACancelTokenCallsOnceAndNotAfterItsLinkIsGone) {
  struct Called {
    std::atomic<int> times{0};
    bp_semaphore_t semaphore;
  } called, late;
  const auto count = [](void* self) {
    auto& called = *static_cast<Called*>(self);
    ++called.times;
    called.semaphore.signal(1);
  };
  bp_cancel_t token, other;
  bp_cancel_link_t *link = nullptr, *gone = nullptr;
  const bp_on_cancel_t what{sizeof what, 0, &called, count}, never{sizeof never, 0, &late, count};
  ASSERT_EQ(host->on_cancel(host, &token, &what, &link), BP_OK);
  ASSERT_EQ(host->on_cancel(host, &token, &never, &gone), BP_OK);
  host->off_cancel(host, gone);
  other.set();
  token.set();
  token.set();
  EXPECT_TRUE(called.semaphore.wait(1).ok());
  host->off_cancel(host, link);
  EXPECT_EQ(called.times, 1);
  EXPECT_EQ(late.times, 0);
  // A token that is already set when it is linked.
  ASSERT_EQ(host->on_cancel(host, &token, &never, &gone), BP_OK);
  EXPECT_TRUE(late.semaphore.wait(1).ok());
  host->off_cancel(host, gone);
  // A token that follows another token, which a signal handler sets.
  bp_cancel_t follower, followed;
  follower.follow(&followed);
  static bp_cancel_t* to_set = &followed;
  ASSERT_EQ(host->on_cancel(host, &follower, &what, &link), BP_OK);
  std::signal(SIGUSR1, [](int) { to_set->set(); });
  std::raise(SIGUSR1);
  std::signal(SIGUSR1, SIG_DFL);
  called.semaphore.reset(0);
  while (called.times != 2) std::this_thread::yield();
  host->off_cancel(host, link);
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support forks of programs with several threads
TEST(CancelLink, ForkedChildrenCreateThemWhileThreadsOfTheirParentDo) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulator cannot fork a program with several threads";
  EXPECT_TRUE(testing::works_in_children([] {
    const bp_cancel_t token;
    const CancelLink made(
        token, [](void*) {}, nullptr);
    return true;
  }));
}
#endif

TEST_F(HostTest, ACancelTokenEndsAWait) {
  bp_semaphore_t semaphore;
  bp_cancel_t token;
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    token.set();
  });
  EXPECT_EQ(semaphore.wait(1, BP_FOREVER, &token).code(), BP_CANCELLED);
  setter.join();
}

#if !defined(__SANITIZE_THREAD__)
TEST(SharedMemory, ForkedChildrenAllocateItWhileThreadsOfTheirParentDo) {
  if (testing::is_emulated()) GTEST_SKIP() << "the emulator cannot fork a program with several threads";
  EXPECT_TRUE(testing::works_in_children([] {
    const auto block = allocate_shared(1);
    return block && release_shared(block->address);
  }));
}
#endif

TEST(SharedMemory, KnowsWhichBytesAreShared) {
  const auto block = allocate_shared(8192);
  ASSERT_TRUE(block);
  char* const first = static_cast<char*>(block->address);
  EXPECT_TRUE(overlaps_shared(first, 1));
  EXPECT_TRUE(overlaps_shared(first + 8191, 1));
  EXPECT_TRUE(overlaps_shared(first - 1, 2));
  EXPECT_TRUE(overlaps_shared(first + 8000, UINT64_MAX));
  EXPECT_FALSE(overlaps_shared(first, 0));
  EXPECT_FALSE(overlaps_shared(first - 1, 1));
  EXPECT_FALSE(overlaps_shared(first + 8192, 1));
  release_shared(block->address);
  EXPECT_FALSE(overlaps_shared(first, 1));
}

TEST_F(HostTest, OffersSharedMemoryAsADraft) {
  const std::string_view name = BP_DRAFT_SHARED_MEMORY;
  EXPECT_EQ(host->get_extension(host, {name.data(), name.size()}, 99), nullptr);
  EXPECT_EQ(host->get_extension(host, {"nothing", 7}, 1), nullptr);
  const auto* api = static_cast<const bp_draft_shared_memory_api_t*>(
      host->get_extension(host, {name.data(), name.size()}, BP_DRAFT_SHARED_MEMORY_VERSION));
  ASSERT_NE(api, nullptr);
  bp_draft_shared_t shared{};
  shared.size = sizeof shared;
  ASSERT_EQ(api->allocate(host, 10'000, &shared), BP_OK);
  EXPECT_GE(shared.bytes, 10'000u);
  static_cast<char*>(shared.address)[9'999] = 'x';
  // Maps the descriptor, as another process would.
  auto* const other = static_cast<char*>(
      mmap(nullptr, shared.bytes, PROT_READ, MAP_SHARED, shared.descriptor, static_cast<off_t>(shared.offset)));
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_EQ(other[9'999], 'x');
  EXPECT_EQ(other[0], '\0');
  EXPECT_NE(ftruncate(shared.descriptor, 0), 0);
  munmap(other, shared.bytes);
  api->release(host, &shared);
  api->release(host, nullptr);
  EXPECT_EQ(api->allocate(host, UINT64_MAX, &shared), BP_RESOURCE_EXHAUSTED);
  EXPECT_EQ(api->allocate(host, 1, nullptr), BP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace backplane
