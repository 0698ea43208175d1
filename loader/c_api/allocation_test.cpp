// SPDX-License-Identifier: Apache-2.0
// Fails one allocation at a time while an environment, a model or a session is created, and during a run. Each call
// must succeed or return an error, and later calls must work. Only allocations of the calling thread fail: those of the
// client, the loader and the backends; in one test, those of a thread of the framework.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "backplane/client.hpp"
#include "backplane/sdk/fence.hpp"
#include "testing/allocation_failure.h"
#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kTries = 100;  // about how many allocations of a call are made to fail, spread over all of them

Environment make_environment() {
  EnvironmentOptions how;
  how.backend_files = {BACKPLANE_BUILD_DIR "/share/backplane/backends.d/cpu.json"};
  how.only_given = true;
  how.options = {{"loader.probe", "never"}};
  return Environment(how);
}

// y = Relu(x · w + b), in which the CPU backend folds constants, fuses nodes and packs weights.
Model make_model() {
  Builder builder(21);
  const uint32_t x = builder.input("x", BP_DTYPE_FLOAT, {-1, 2}, {"rows", ""});
  const uint32_t w = builder.weight("w", Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  NodeOptions constant;
  constant.attributes = {{"value", Tensor::of<float>({2}, {1, -100})}};
  const uint32_t b = builder.node("Neg", {builder.node("Constant", {}, constant)});
  builder.output(builder.node("Relu", {builder.node("Add", {builder.node("MatMul", {x, w}), b})}));
  return builder.finish();
}

std::vector<float> run(Exec& exec) {
  exec.bind("x", Tensor::of<float>({1, 2}, {1, 1}));
  exec.run();
  return exec.output(0u).values<float>();
}

// Repeats `call`, each time with one failing allocation. `check` must succeed after some of these calls and at the
// end.
void sweep(const std::function<void()>& call, const std::function<void()>& check) {
  call();  // the first call also makes allocations that happen only once
  const uint64_t before = allocations;
  call();
  const uint64_t all = allocations - before;
  const uint64_t step = std::max<uint64_t>(1, all / kTries);
  uint64_t failed = 0, survived = 0;
  for (uint64_t n = 0; n < all; n += step) {
    until_failure = static_cast<int64_t>(n);
    try {
      call();
      ++survived;
    } catch (const Error& error) {
      ++failed;
      EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED) << "allocation " << n << ": " << error.text();
    } catch (const std::bad_alloc&) {
      ++failed;  // an allocation of the client failed
    }
    until_failure = -1;
    if (n % 16 == 0) check();
  }
  check();
  std::printf("  %lu allocations: %lu made a call fail, %lu did not\n", static_cast<unsigned long>(all),
              static_cast<unsigned long>(failed), static_cast<unsigned long>(survived));
  EXPECT_GT(failed, 0u);
}

class Allocation : public ::testing::Test {
 protected:
  static void works() { EXPECT_THAT(computed(), ElementsAre(3, 106)); }

 private:
  static std::vector<float> computed() {
    const Environment env = make_environment();
    Exec exec = env.compile(make_model()).exec();
    return run(exec);
  }
};

TEST_F(Allocation, FailsWhileAnEnvironmentIsMade) {
  sweep(
      [] {  // a backend that cannot allocate is refused with a reason
        const Environment env = make_environment();
        const bp_candidate_t candidate = env.candidates().at(0);
        EXPECT_EQ(env.devices().empty(), candidate.refusal != BP_REFUSED_NONE) << view::text(candidate.text);
      },
      works);
}

TEST_F(Allocation, FailsWhileAModelIsBuilt) {
  sweep([] { make_model(); }, works);
}

TEST_F(Allocation, FailsWhileAModelIsRead) {
  const Environment env = make_environment();
  sweep([&] { env.open(BACKPLANE_BUILD_DIR "/samples/testing/add_relu.onnx"); }, works);
}

TEST_F(Allocation, FailsWhileASessionIsMade) {
  const Environment env = make_environment();
  const Model model = make_model();
  sweep([&] { env.compile(model); }, works);
}

// Islands are compiled in the framework's loop. No exception may reach it.
TEST_F(Allocation, FailsInTheFrameworksLoop) {
  static int64_t until_failure_in_loop = -1;
  const std::string file = kPartialFile;
  const bp_text_t files = view::text(file);
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.flags = BP_ENV_ONLY_GIVEN;
  desc.backend_files = &files;
  desc.backend_file_count = 1;
  desc.threads = 1;
  desc.parallel_for = [](void*, const bp_loop_t* loop) {
    std::thread([loop] {
      until_failure = until_failure_in_loop;
      loop->body(loop->context, 0, 0, loop->count);
      until_failure = -1;
    }).join();
  };
  bp_env_t* env = nullptr;
  detail::call(api().env_create, static_cast<const bp_env_desc_t*>(&desc), &env);
  const Model model = make_model();
  uint64_t failed = 0;
  for (int64_t n = 0; n < 2000; n += n < 20 ? 1 : 50) {
    until_failure_in_loop = n;
    bp_session_t* session = nullptr;
    const bp_status_t status = api().session_create(env, model.get(), nullptr, &session, nullptr);
    EXPECT_TRUE(status == BP_OK || status == BP_RESOURCE_EXHAUSTED) << "allocation " << n << ": " << status;
    failed += status != BP_OK;
    api().session_destroy(session);
  }
  EXPECT_GT(failed, 0u);
  api().env_destroy(env);
}

// A plugin that no exception may enter: the CPU backend's, with a coverage query that calls the loader's sink from
// noexcept functions.
const bp_plugin_t* BP_CALL query_strict_plugin(const bp_host_offer_t* offer) {
  static const auto kQuery = reinterpret_cast<bp_plugin_query_t>(
      ::dlsym(::dlopen(kCpuFile.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), BP_PLUGIN_SYMBOL));
  static bp_plugin_t strict;
  static bp_coverage_api_t coverage;
  static decltype(coverage.query) inner;
  strict = *kQuery(offer);
  coverage = *strict.coverage;
  inner = coverage.query;
  coverage.query = [](bp_device_t* device, const bp_coverage_query_t* what, const bp_coverage_sink_t* sink,
                      bp_error_t* error) {
    bp_coverage_sink_t own{};
    own.size = sizeof own;
    own.self = const_cast<bp_coverage_sink_t*>(sink);
    own.verdicts = [](void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) noexcept {
      const auto& host = *static_cast<const bp_coverage_sink_t*>(self);
      for (uint32_t i = 0; i < count; ++i) {
        bp_verdict_t verdict = sdk::element(verdicts, i, stride);
        verdict.detail = view::text(std::string_view("a text that the loader has to allocate memory for"));
        host.verdicts(host.self, &verdict, 1, sizeof verdict);
      }
    };
    own.groups = [](void* self, const bp_group_t* groups, uint32_t count, uint32_t stride) noexcept {
      const auto& host = *static_cast<const bp_coverage_sink_t*>(self);
      host.groups(host.self, groups, count, stride);
    };
    return inner(device, what, &own, error);
  };
  strict.coverage = &coverage;
  return &strict;
}

TEST_F(Allocation, FailsInCallbacksOfAPlugin) {
  EnvironmentOptions only;
  only.only_given = true;
  only.plugins = {query_strict_plugin};
  const Environment env(only);
  Builder builder(21);
  builder.output(builder.node("Relu", {builder.input("x", BP_DTYPE_FLOAT, {2})}));
  const Model model = builder.finish();
  bp_session_desc_t how{};
  how.size = sizeof how;
  how.flags = BP_SESSION_PLACE_ONLY;
  uint64_t failed = 0;
  bool is_over = false;
  for (int64_t n = 0; !is_over; ++n) {
    until_failure = n;
    bp_session_t* session = nullptr;
    const bp_status_t status = api().session_create(env.get(), model.get(), &how, &session, nullptr);
    is_over = until_failure >= 0;
    until_failure = -1;
    EXPECT_TRUE(status == BP_OK || status == BP_RESOURCE_EXHAUSTED) << "allocation " << n << ": " << status;
    failed += status != BP_OK;
    api().session_destroy(session);
  }
  EXPECT_GT(failed, 0u);
}

TEST_F(Allocation, FailsInARun) {
  const Environment env = make_environment();
  const Session session = env.compile(make_model());
  sweep(
      [&] {
        Exec exec = session.exec();
        run(exec);
      },
      [&] {
        Exec exec = session.exec();
        EXPECT_THAT(run(exec), ElementsAre(3, 106));
      });
}

// Tasks of three devices. One task is planned only during the run, and planning allocates memory.
TEST_F(Allocation, FailsInATaskWhileOthersRun) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {4});
  const uint32_t where = graph.node("NonZero", "where", {x});
  const Model model = graph.finish({graph.node("Neg", "y", {where}), graph.node("Abs", "z", {x})});
  const Environment env = partial_environment({{"partial.devices", "2"}});
  Exec exec = env.compile(model, pinned({{"where", "partial:0"}, {"y", "partial:1"}, {"z", "cpu"}})).exec();
  exec.bind("x", Tensor::of<float>({4}, {0, 5, 0, 6}));
  for (int64_t n = 0; n < 40; ++n) {  // more than the calling thread allocates
    until_failure = n;
    try {
      exec.run();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED) << "allocation " << n << ": " << error.text();
    } catch (const std::bad_alloc&) {  // an allocation of the client failed
    }
    until_failure = -1;
    exec.run();
    EXPECT_THAT(exec.output(0u).values<int64_t>(), ElementsAre(-1, -3));
  }
}

}  // namespace
}  // namespace backplane
