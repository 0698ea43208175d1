// SPDX-License-Identifier: Apache-2.0
// What a framework binds to an exec, and changes between runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A vector of floats in memory of the framework that has `bytes` bytes. Borrows `extent`.
bp_tensor_t floats_at(float* values, const int64_t& extent, uint64_t bytes) {
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = BP_DTYPE_FLOAT;
  tensor.rank = 1;
  tensor.extents = &extent;
  tensor.buffer.address = values;
  tensor.buffer.bytes = bytes;
  return tensor;
}

TEST(Exec, UnboundMemoryIsNotUsed) {
  const Environment env = partial_environment({});
  Exec exec = env.compile(chain(2)).exec();
  const Tensor x = Tensor::of<float>({3}, {1, -2, 3}), y = Tensor::of<float>({3}, {0, 0, 0});
  exec.bind("x", x);
  exec.bind_output(0u, y);
  exec.run();
  exec.unbind(BP_SLOT_OUTPUT);
  exec.bind("x", Tensor::of<float>({3}, {7, 8, 9}));
  exec.run();
  EXPECT_THAT(y.values<float>(), ElementsAre(1, -2, 3));
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(7, 8, 9));
  exec.unbind(0);
  EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_BAD_STATE);
  EXPECT_EQ(failure([&] { exec.unbind(1); }).status(), BP_NOT_FOUND);
}

// The framework may free memory as soon as other memory is bound, so the device must not keep it imported until the
// next run.
TEST(Exec, AnImportEndsWhenTheSlotIsBoundAgain) {
  const Environment env = streaming({{"partial.memory", "shared"}});
  Exec exec = env.compile(chain(2), pinned({{"*", "partial"}})).exec();
  alignas(64) float a[16] = {1, -2, 3}, b[16] = {4, 5, 6}, y[16] = {};
  const auto bind = [&](uint32_t slot, float* values) { exec.bind_memory(slot, floats_at(values, 3, sizeof a)); };
  bind(0, a);
  bind(BP_SLOT_OUTPUT, y);
  exec.run();
  const uint64_t imports = counters(env).imports, releases = counters(env).releases;
  ASSERT_EQ(imports, 2u);
  bind(0, b);
  EXPECT_EQ(counters(env).releases, releases + 1);
  exec.run();
  EXPECT_EQ(counters(env).imports, imports + 1);
  EXPECT_EQ(y[0], 4);
}

TEST(Exec, RefusesReadOnlyMemoryAsAnOutput) {
  const Environment env = partial_environment({});
  Exec exec = env.compile(chain(1)).exec();
  const Tensor y = Tensor::of<float>({3}, {0, 0, 0});
  bp_tensor_t tensor = y.abi();
  tensor.buffer.flags = BP_BUFFER_READ_ONLY;
  EXPECT_EQ(failure([&] { exec.bind_memory(BP_SLOT_OUTPUT, tensor); }).status(), BP_INVALID_ARGUMENT);
}

TEST(Exec, ScratchMemoryIsBound) {
  for (const char* memory : {"host", "own"}) {
    const Environment env = streaming({{"partial.scratch", "1000"}, {"partial.memory", memory}});
    const Session session = env.compile(chain(4), pinned({{"*", "partial"}}));
    Exec exec = session.exec();
    for (int i = 0; i < 3; ++i) {
      exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
      exec.run();
      EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(1, -2, 3));
    }
  }
}

// A device may refuse unaligned memory of the framework. The loader aligns its own memory as the device requires:
// outputs, values between islands, copies.
TEST(Exec, OnlyTheFrameworksMemoryMayBeUnaligned) {
  for (const char* memory : {"host", "own", "shared", "flushed"}) {
    for (const char* async : {"0", "1"}) {
      SCOPED_TRACE(std::string(memory) + ", async " + async);
      const Environment env =
          streaming({{"partial.memory", memory}, {"partial.async", async}, {"partial.align", "4096"}});
      Exec exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
      alignas(4096) float x[1024] = {0, 1, -2, 3};
      alignas(4096) float y[1024] = {};
      const auto bind = [&](uint32_t slot, float* values) { exec.bind_memory(slot, floats_at(values, 3, 12)); };
      // Devices with memory of their own get copies.
      const bp_status_t unaligned = memory == std::string("host") ? BP_UNSUPPORTED : BP_OK;
      bind(0, x + 1);
      const Error refused = failure([&] { exec.run(); });
      EXPECT_EQ(refused.status(), unaligned);
      if (unaligned != BP_OK) {
        EXPECT_THAT(refused.text(), HasSubstr("slot 0 does not start at a multiple of 4096"));
      }
      std::copy_n(x + 1, 3, x);
      bind(0, x);
      exec.run();
      EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-1, 2, -3));
      bind(BP_SLOT_OUTPUT, y + 1);
      EXPECT_EQ(failure([&] { exec.run(); }).status(), unaligned);
      bind(BP_SLOT_OUTPUT, y);
      exec.run();
      EXPECT_THAT(std::vector<float>(y, y + 3), ElementsAre(-1, 2, -3));
    }
  }
}

TEST(Exec, IsolatedDevicesGetAlignedMemory) {
  const Environment env = partial_environment({{"loader.isolate", "partial"},
                                               {"loader.isolate_sandbox", "off"},
                                               {"partial.align", "4096"},
                                               {"partial.max_nodes", "1"}});
  Exec exec = env.compile(chain(3), pinned({{"*", "partial"}})).exec();
  alignas(64) float x[] = {0, 1, -2, 3};
  const int64_t extents[] = {3};
  bp_tensor_t tensor{};
  tensor.size = sizeof tensor;
  tensor.dtype = BP_DTYPE_FLOAT;
  tensor.rank = 1;
  tensor.extents = extents;
  tensor.buffer.address = x + 1;
  tensor.buffer.bytes = 12;
  exec.bind_memory(0, tensor);
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-1, 2, -3));
}

// Other extents are refused until the run has ended.
TEST(Exec, DimensionsAreNotSetDuringARun) {
  const Environment env = streaming({});
  Exec exec = env.compile(chain(1), pinned({{"*", "partial"}})).exec();
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
  const Semaphore go, ended;
  const bp_point_t begin = go.at(1), end = ended.at(1);
  bp_run_t run{};
  run.size = sizeof run;
  run.waits = &begin;
  run.wait_count = 1;
  run.signals = &end;
  run.signal_count = 1;
  detail::call(api().exec_submit, exec.get(), static_cast<const bp_run_t*>(&run));
  EXPECT_EQ(api().exec_symbol(exec.get(), 9, 1, nullptr), BP_BUSY);
  go.signal(1);
  ended.wait(1);
  EXPECT_EQ(api().exec_symbol(exec.get(), 9, 1, nullptr), BP_NOT_FOUND);
}

// Setting the two extents one at a time could exceed the buffer.
TEST(Exec, ManyDimensionsAreSetAtOnce) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1, -1}, {"n", "m"});
  Exec exec = partial_environment({}).compile(graph.finish({graph.node("Neg", "y", {x})})).exec();
  exec.bind("x", Tensor(BP_DTYPE_FLOAT, {4, 8}));
  EXPECT_EQ(failure([&] { exec.symbol("n", 8); }).status(), BP_BUFFER_TOO_SMALL);
  exec.symbols({{"n", 8}, {"m", 4}});
  exec.run();
  EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(failure([&] { exec.symbols({{"n", 8}, {"m", 5}}); }).status(), BP_BUFFER_TOO_SMALL);
  const Error unknown = failure([&] { exec.symbols({{"n", 1}, {"k", 1}}); });
  EXPECT_EQ(unknown.status(), BP_NOT_FOUND);
  EXPECT_THAT(unknown.text(), HasSubstr("no dimension named 'k'"));
  const bp_symbol_extent_t twice[] = {{0, 0, 1}, {0, 0, 2}}, beyond[] = {{9, 0, 1}};
  EXPECT_EQ(api().exec_symbols(exec.get(), twice, 2, sizeof *twice, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api().exec_symbols(exec.get(), beyond, 1, sizeof *beyond, nullptr), BP_NOT_FOUND);
  EXPECT_EQ(api().exec_symbols(exec.get(), twice, 1, 0, nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api().exec_symbols(exec.get(), nullptr, 1, sizeof *twice, nullptr), BP_INVALID_ARGUMENT);
  exec.run();
  EXPECT_EQ(exec.output(0u).extents(), (std::vector<int64_t>{8, 4}));
}

TEST(Exec, ADimensionIsSetInEveryInput) {
  Graph graph;
  const uint32_t a = graph.input("a", BP_DTYPE_FLOAT, {-1}, {"n"}), b = graph.input("b", BP_DTYPE_FLOAT, {-1}, {"n"});
  const Model model = graph.finish({graph.node("Add", "y", {a, b})});
  const Environment env = partial_environment({});
  SessionOptions how;
  how.symbols = {{"n", {1, 4}}};
  Exec exec = env.compile(model, how).exec();
  exec.bind("a", Tensor::of<float>({4}, {1, 2, 3, 4}));
  exec.bind("b", Tensor::of<float>({4}, {1, 1, 1, 1}));
  exec.symbol("n", 2);
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(2, 3));
  EXPECT_EQ(failure([&] { exec.symbol("n", 5); }).status(), BP_BUFFER_TOO_SMALL);
  EXPECT_EQ(failure([&] { exec.symbol("m", 1); }).status(), BP_NOT_FOUND);
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(2, 3));
  // An extent outside the range for which the session was created.
  exec.bind("a", Tensor::of<float>({5}, {1, 2, 3, 4, 5}));
  exec.bind("b", Tensor::of<float>({5}, {1, 1, 1, 1, 1}));
  const Error refused = failure([&] { exec.run(); });
  EXPECT_EQ(refused.status(), BP_TYPE_MISMATCH);
  EXPECT_THAT(refused.text(), HasSubstr("created for 1 to 4"));
  how.symbols = {{"m", {1, 4}}};
  EXPECT_EQ(failure([&] { env.compile(model, how); }).status(), BP_NOT_FOUND);
}

// The program requests memory in the run only for outputs whose extents it cannot compute before.
TEST(Exec, OutputsWithKnownExtentsAreBoundBeforeTheRun) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1}, {"n"});
  const Model model = graph.finish({graph.node("NonZero", "where", {x}), graph.node("Neg", "y", {x})});
  const Environment env = partial_environment({});
  Exec exec = env.compile(model, pinned({{"*", "partial"}})).exec();
  exec.bind("x", Tensor::of<float>({4}, {0, 5, 0, 6}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<int64_t>(), ElementsAre(1, 3));
  EXPECT_THAT(exec.output(1u).values<float>(), ElementsAre(0, -5, 0, -6));
  exec.bind("x", Tensor::of<float>({2}, {7, 0}));
  exec.run();
  EXPECT_THAT(exec.output(0u).values<int64_t>(), ElementsAre(0));
  EXPECT_THAT(exec.output(1u).values<float>(), ElementsAre(-7, 0));
  EXPECT_EQ(counters(env).outputs_asked, 2u);
}

// An instance keeps its bindings, so the loader needs a new instance when an output is no longer to be bound.
TEST(Exec, AnOutputWhoseExtentsAreNoLongerKnownIsUnbound) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {-1}, {"n"});
  const Environment env = partial_environment({{"partial.forgets", "2"}});
  Exec exec = env.compile(graph.finish({graph.node("Neg", "y", {x})}), pinned({{"*", "partial"}})).exec();
  exec.bind("x", Tensor::of<float>({2}, {1, 2}));
  exec.run();
  EXPECT_EQ(counters(env).outputs_asked, 0u);
  for (const uint64_t asked : {1, 2}) {
    exec.bind("x", Tensor::of<float>({int64_t(asked) + 2}, std::vector<float>(asked + 2, 3)));
    exec.run();
    EXPECT_EQ(exec.output(0u).values<float>(), std::vector<float>(asked + 2, -3));
    EXPECT_EQ(counters(env).outputs_asked, asked);
    EXPECT_EQ(counters(env).instances, 1u);
  }
}

// An output is the copy of an input, and the framework bound that input's memory to another output.
TEST(Exec, InputsThatOutputsCopyAreNotOverwritten) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2}), z = graph.input("z", BP_DTYPE_FLOAT, {2});
  const Environment env = partial_environment({});
  Exec exec = env.compile(graph.finish({graph.node("Neg", "y", {z}), x, z})).exec();
  const Tensor a = Tensor::of<float>({2}, {1, 2}), b = Tensor::of<float>({2}, {3, 4});
  const Tensor y = Tensor::of<float>({2}, {0, 0});
  exec.bind("x", a);
  exec.bind("z", b);
  exec.bind_output(0u, a);
  Error error = failure([&] { exec.run(); });
  EXPECT_EQ(error.status(), BP_UNSUPPORTED);
  EXPECT_THAT(error.text(), HasSubstr("input 'x' and output 'y' share memory, but another output is a copy"));
  exec.bind_output(0u, y);
  exec.bind_output(1u, b);
  exec.bind_output(2u, a);
  EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_UNSUPPORTED);
  exec.bind_output(1u, a);
  exec.bind_output(2u, b);
  exec.run();
  EXPECT_THAT(y.values<float>(), ElementsAre(-3, -4));
  EXPECT_THAT(a.values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(b.values<float>(), ElementsAre(3, 4));
}

// The memory of an output may overlap that of any input, even of one that begins long before it with others in between.
TEST(Exec, InputsThatShareMemoryWithAnOutputAreFound) {
  Graph graph;
  const uint32_t a = graph.input("a", BP_DTYPE_FLOAT, {8}), b = graph.input("b", BP_DTYPE_FLOAT, {1});
  const uint32_t c = graph.input("c", BP_DTYPE_FLOAT, {2});
  const Environment env = partial_environment({});
  Exec exec = env.compile(graph.finish({graph.node("Neg", "y", {c}), a, b})).exec();
  std::vector<float> memory(16);
  memory[12] = 3;
  memory[13] = -4;
  const auto bind = [&](uint32_t slot, int64_t extent, size_t at) {
    exec.bind_memory(slot, floats_at(&memory[at], extent, static_cast<uint64_t>(extent) * sizeof(float)));
  };
  bind(0, 8, 0);
  bind(1, 1, 1);
  bind(2, 2, 12);
  for (const size_t at : {0, 1, 3, 7, 8, 10, 11, 13, 14}) {
    bind(BP_SLOT_OUTPUT, 2, at);
    const std::string input = at < 8 ? "a" : at == 11 || at == 13 ? "c" : "";
    if (input.empty()) {
      exec.run();
      EXPECT_EQ(memory[at], -3) << at;
      EXPECT_EQ(memory[at + 1], 4) << at;
    } else {
      const Error error = failure([&] { exec.run(); });
      EXPECT_EQ(error.status(), BP_UNSUPPORTED) << at;
      EXPECT_THAT(error.text(), HasSubstr("input '" + input + "' and output 'y' share memory")) << at;
    }
  }
}

// The memory in which the loader kept the last result is released.
TEST(Exec, AnOutputHasNoResultAfterItIsBound) {
  const Environment env = partial_environment({});
  Exec exec = env.compile(chain(1)).exec();
  exec.bind("x", Tensor::of<float>({3}, {1, -2, 3}));
  exec.run();
  const Tensor y = Tensor::of<float>({3}, {0, 0, 0});
  exec.bind_output(0u, y);
  EXPECT_EQ(failure([&] { exec.output(0u); }).status(), BP_BAD_STATE);
  exec.run();
  EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(-1, 2, -3));
}

}  // namespace
}  // namespace backplane
