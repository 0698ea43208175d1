// SPDX-License-Identifier: Apache-2.0
// What a framework can supply: weights outside the model, linked plugins, a thread pool, an allocator, and
// contexts and memory of devices.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "backplane/client.hpp"
#include "backplane/sdk/onnx.hpp"
#include "session/testing.h"
#include "testing/client_fixture.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Model, WeightsMayBePassedSeparately) {
  const Environment env = environment({kCpu});
  const Model built = relu_of_sum();
  const std::string bytes = sdk::onnx(sdk::Graph(built.graph().raw()));
  const std::vector<float> values = {10, 20};
  const int64_t extents[] = {2}, wrong_extents[] = {1};
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = BP_DTYPE_FLOAT;
  tensor.rank = 1;
  tensor.extents = extents;
  tensor.buffer.address = const_cast<float*>(values.data());
  tensor.buffer.bytes = 8;
  bp_named_tensor_t weight{view::text("b"), &tensor};
  int released = 0;
  bp_model_source_t source{};
  source.size = sizeof source;
  source.descriptor = -1;
  source.bytes = {bytes.data(), bytes.size()};
  source.weights = &weight;
  source.weight_count = 1;
  source.weight_stride = sizeof weight;
  source.self = &released;
  source.release = [](void* self) { ++*static_cast<int*>(self); };
  const auto open = [&] {
    bp_model_t* model = nullptr;
    detail::call(api().model_open, env.get(), static_cast<const bp_model_source_t*>(&source), &model);
    return Model(model);
  };
  {
    Exec exec = env.compile(open()).exec();
    exec.bind("x", Tensor::of<float>({1, 2}, {1, 2}));
    exec.run();
    EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(11, 22));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  // A call that fails does not take the weights, so it does not call `release`.
  weight.name = view::text("unknown");
  EXPECT_EQ(failure(open).status(), BP_NOT_FOUND);
  weight.name = view::text("b");
  tensor.extents = wrong_extents;
  tensor.buffer.bytes = 4;
  const Error mismatch = failure(open);
  EXPECT_EQ(mismatch.status(), BP_TYPE_MISMATCH);
  EXPECT_THAT(mismatch.what(), HasSubstr("weight 'b' and what the model declares differ: extents 1 and 2 of axis 0"));
  tensor.buffer.bytes = 3;
  EXPECT_EQ(failure(open).status(), BP_INVALID_ARGUMENT);
  EXPECT_EQ(released, 1);
}

// Without the check, the file whose name is the part before the null character would be read.
TEST(Model, PathsWithANullCharacterAreRefused) {
  const Environment env = environment({kCpu});
  const std::string file("model.onnx\0.png", 15), folder("/tmp\0x", 6);
  bp_model_source_t source{};
  source.size = sizeof source;
  source.descriptor = -1;
  const auto open = [&] {
    bp_model_t* model = nullptr;
    detail::call(api().model_open, env.get(), static_cast<const bp_model_source_t*>(&source), &model);
    return Model(model);
  };
  source.path = view::text(file);
  const Error of_path = failure(open);
  EXPECT_EQ(of_path.status(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(of_path.what(), HasSubstr("source.path has a null character after \"model.onnx\""));
  source.path = {};
  source.bytes = {file.data(), file.size()};
  source.directory = view::text(folder);
  EXPECT_THAT(failure(open).what(), HasSubstr("source.directory has a null character after \"/tmp\""));
  EnvironmentOptions how;
  how.backend_files = {file};
  EXPECT_THAT(failure([&] { return Environment(how); }).what(), HasSubstr("backend_files has a null character"));
}

TEST(Environment, AcceptsLinkedPlugins) {
  void* library = dlopen(kCpu.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EnvironmentOptions how;
  how.plugins = {reinterpret_cast<bp_plugin_query_t>(dlsym(library, BP_PLUGIN_SYMBOL)), nullptr};
  how.backend_files = {kCpu};  // its id is that of the linked plugin
  how.only_given = true;
  how.log = [](uint32_t, std::string_view) {};
  {
    const Environment env(how);
    ASSERT_EQ(env.devices().size(), 1u);
    ASSERT_EQ(env.candidates().size(), 3u);
    EXPECT_EQ(view::text(env.candidates()[0].found_by), "plugins");
    EXPECT_EQ(env.candidates()[1].refusal, BP_REFUSED_SYMBOL);
    EXPECT_EQ(env.candidates()[2].refusal, BP_REFUSED_DUPLICATE);
    Exec exec = env.compile(relu_of_sum()).exec();
    exec.bind("x", Tensor::of<float>({1, 2}, {-3, 5}));
    exec.run();
    EXPECT_THAT(exec.output("y").values<float>(), ElementsAre(0, 4));
  }
  dlclose(library);
}

// The callbacks that a framework passes to an environment and to a session.
struct Framework {
  std::atomic<int> lines{0}, loops{0}, allocated{0}, released{0}, steps{0};
  std::atomic<bool> in_order{true};

  static Framework& of(void* self) { return *static_cast<Framework*>(self); }
  static void log(void* self, uint32_t, bp_text_t) { ++of(self).lines; }
  static void parallel_for(void* self, const bp_loop_t* loop) {
    ++of(self).loops;
    loop->body(loop->context, 0, 0, loop->count);
  }
  static bp_status_t submit(void*, const bp_task_t* task) {
    std::thread(task->run, task->self).detach();
    return BP_OK;
  }
  static void* allocate(void* self, uint64_t bytes, uint64_t alignment) {
    ++of(self).allocated;
    return std::aligned_alloc(std::max<uint64_t>(alignment, 8), (bytes / alignment + 1) * alignment);
  }
  static void release(void* self, void* memory, uint64_t, uint64_t) {
    ++of(self).released;
    std::free(memory);
  }
  static void progress(void* self, uint32_t done, uint32_t total) {
    ++of(self).steps;
    if (done > total) of(self).in_order = false;
  }
};

TEST(Environment, UsesTheFrameworksPoolAndAllocator) {
  Framework framework;
  const bp_text_t file = view::text(kCpu);
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.flags = BP_ENV_ONLY_GIVEN;
  desc.backend_files = &file;
  desc.backend_file_count = 1;
  desc.log_level = BP_LOG_DEBUG;
  desc.self = &framework;
  desc.log = Framework::log;
  desc.parallel_for = Framework::parallel_for;
  desc.submit = Framework::submit;
  desc.allocate = Framework::allocate;
  desc.release = Framework::release;
  bp_env_t* env = nullptr;
  desc.threads = 0;  // the plugins would not know how many values `worker` has
  EXPECT_EQ(api().env_create(&desc, &env, nullptr), BP_INVALID_ARGUMENT);
  desc.threads = 2;
  detail::call(api().env_create, static_cast<const bp_env_desc_t*>(&desc), &env);
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {512, 512});
  const Model model = graph.finish({graph.node("MatMul", "y", {graph.node("Abs", "a", {x}), x})});
  bp_session_desc_t how{};
  how.size = sizeof how;
  how.self = &framework;
  how.progress = Framework::progress;
  bp_session_t* session = nullptr;
  detail::call(api().session_create, env, model.get(), static_cast<const bp_session_desc_t*>(&how), &session);
  EXPECT_GT(framework.steps, 0);
  EXPECT_TRUE(framework.in_order);
  bp_exec_t* exec = nullptr;
  detail::call(api().exec_create, session, static_cast<const bp_exec_desc_t*>(nullptr), &exec);
  const Tensor ones = Tensor::of<float>({512, 512}, std::vector<float>(512 * 512, 1));
  const bp_tensor_t input = ones.abi();
  detail::call(api().exec_bind, exec, 0u, &input);
  detail::call(api().exec_run, exec, static_cast<const bp_run_t*>(nullptr));
  bp_tensor_t y{};
  y.size = sizeof y;
  detail::call(api().exec_output, exec, 0u, &y);
  EXPECT_EQ(static_cast<const float*>(y.buffer.address)[0], 512);
  EXPECT_GT(framework.lines, 0);
  EXPECT_GT(framework.loops, 0);
  EXPECT_GT(framework.allocated, 0);
  api().exec_destroy(exec);
  api().session_destroy(session);
  api().env_destroy(env);
  EXPECT_EQ(framework.allocated, framework.released);
}

TEST(Session, ProgressCountsCompiledIslands) {
  const Environment env = environment({kFake}, {{"fake.ops", "Neg,Abs"}, {"fake.fails", "Abs"}});
  Graph graph;
  uint32_t value = graph.input("x", BP_DTYPE_FLOAT, {2});
  value = graph.node("Neg", "y", {graph.node("Abs", "b", {graph.node("Neg", "a", {value})})});
  const Model model = graph.finish({value});
  const bp_option_t option{view::text(std::string_view("loader.max_island_nodes")), view::text(std::string_view("1"))};
  struct Seen {
    uint32_t done, total;
  } seen{};
  bp_session_desc_t how{};
  how.size = sizeof how;
  how.options = &option;
  how.option_count = 1;
  how.option_stride = sizeof option;
  how.self = &seen;
  how.progress = [](void* self, uint32_t done, uint32_t total) { *static_cast<Seen*>(self) = {done, total}; };
  bp_session_t* session = nullptr;
  EXPECT_NE(api().session_create(env.get(), model.get(), &how, &session, nullptr), BP_OK);
  EXPECT_EQ(seen.done, 2u);
  EXPECT_EQ(seen.total, 3u);
}

// "create" and "open" are called one at a time, although environments are made and devices opened on many threads.
TEST(Environment, CreatesBackendsAndOpensDevicesOneAtATime) {
  const std::map<std::string, std::string> options = {{"partial.devices", "4"}, {"partial.open_us", "20000"}};
  std::vector<std::thread> threads;
  std::vector<std::string> texts(4);
  for (std::string& text : texts)
    threads.emplace_back([&] {
      try {
        const Environment env = environment({kCpu, BACKPLANE_BUILD_DIR "/tests/plugins/partial.so"}, options);
        std::vector<std::thread> openers;
        std::atomic<int> opened{0};
        for (size_t i = 1; i < env.devices().size(); ++i)  // the first one is the CPU's
          openers.emplace_back([&, i] {
            const bp_device_open_t how{sizeof how,          0,       0,       nullptr, nullptr, 0,
                                       sizeof(bp_option_t), nullptr, nullptr, nullptr};
            opened += api().env_open_device(env.get(), env.devices()[i].info.id, &how, nullptr) == BP_OK;
          });
        for (std::thread& opener : openers) opener.join();
        text = std::to_string(opened) + " opened";
      } catch (const Error& error) {
        text = error.text();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(texts, ::testing::Each("4 opened"));
}

TEST(Environment, OpensADeviceOnceAsTheFrameworkWants) {
  const Environment env = environment({kCpu});
  const uint64_t device = env.devices()[0].info.id;
  EXPECT_NE(device, 0u);
  EXPECT_EQ(environment({kCpu}).devices()[0].info.id, device);  // the id is the same in every environment
  const bp_native_t native{sizeof native, BP_NATIVE_CL_CONTEXT, 1, nullptr};
  EXPECT_EQ(failure([&] { env.open_device(device, native); }).status(), BP_UNSUPPORTED);
  bp_device_open_t how{};
  how.size = sizeof how;
  const auto open = [&] {
    detail::call(api().env_open_device, env.get(), device, static_cast<const bp_device_open_t*>(&how));
  };
  open();
  EXPECT_EQ(failure(open).status(), BP_BAD_STATE);
  EXPECT_EQ(failure([&] { env.open_device(12345, native); }).status(), BP_NOT_FOUND);
}

TEST(Memory, IsMappedAndFilledIfTheDeviceSupportsIt) {
  const Environment env =
      environment({kCpu, BACKPLANE_BUILD_DIR "/tests/plugins/partial.so"}, {{"partial.memory", "own"}});
  float values[3] = {};
  bp_buffer_t host{};
  host.address = values;
  host.bytes = sizeof values;
  const auto fill = [&](const bp_buffer_t& buffer) {
    const bp_fill_t what{sizeof what, 4, 0x40000000u /* 2.0f */, &buffer, nullptr};
    detail::call(api().memory_fill, env.get(), &what);
  };
  fill(host);
  EXPECT_THAT(values, ElementsAre(2, 2, 2));
  values[0] = 0;
  const Buffer there = env.allocate(env.devices()[1].info.id, sizeof values);
  fill(there.abi());  // the device has no `fill`, so the loader copies the values to it
  env.copy(there.abi(), host, sizeof values);
  EXPECT_THAT(values, ElementsAre(2, 2, 2));
  void* mapped = nullptr;
  bp_map_t what{sizeof what, BP_MAP_READ, &host};
  detail::call(api().memory_map, env.get(), static_cast<const bp_map_t*>(&what), &mapped);
  EXPECT_EQ(mapped, values);
  detail::call(api().memory_unmap, env.get(), static_cast<const bp_map_t*>(&what), mapped);
  what.buffer = &there.abi();
  EXPECT_EQ(failure([&] {
              detail::call(api().memory_map, env.get(), static_cast<const bp_map_t*>(&what), &mapped);
            }).status(),
            BP_UNSUPPORTED);
}

}  // namespace
}  // namespace backplane
