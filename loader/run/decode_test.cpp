// SPDX-License-Identifier: Apache-2.0
// A GPT-2 with random weights decodes with key-value caches of a fixed capacity that are updated in place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "backplane/client.hpp"
#include "testing/allocation_count.h"
#include "testing/client_fixture.h"
#include "testing/decoder.h"
#include "testing/partial.h"

namespace backplane {
namespace {

constexpr int64_t kLayers = 3, kWidth = 64, kHeads = 4, kWords = 300, kCapacity = 256;

Tensor random_weight(const std::vector<int64_t>& extents, uint64_t seed) {
  Tensor tensor(BP_DTYPE_FLOAT, extents);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.1f);
  auto* values = static_cast<float*>(tensor.data());
  for (uint64_t i = 0; i < tensor.count(); ++i) values[i] = normal(random);
  return tensor;
}

// If `cached`, the inputs are one token, its position, the length of the sequence, and the caches of earlier tokens.
// Otherwise they are all tokens and their positions. The weights are the same in both models.
Model gpt2(bool cached) {
  Graph graph;
  uint64_t seed = 1;
  int names = 0;
  const auto weight = [&](std::vector<int64_t> extents) {
    const uint64_t number = seed++;
    return graph.weight("w" + std::to_string(number), random_weight(extents, number));
  };
  const auto node = [&](const std::string& op, const std::vector<uint32_t>& inputs,
                        std::map<std::string, int64_t> numbers = {}) {
    return graph.node(op, "n" + std::to_string(names++), inputs, numbers);
  };
  const auto norm = [&](uint32_t x) { return node("LayerNormalization", {x, weight({kWidth}), weight({kWidth})}); };
  const auto linear = [&](uint32_t x, int64_t from, int64_t to) {
    return node("Add", {node("MatMul", {x, weight({from, to})}), weight({to})});
  };

  const int64_t time = cached ? 1 : -1;
  const uint32_t tokens = graph.input("tokens", BP_DTYPE_INT64, {1, time}, {"", "time"});
  const uint32_t places = graph.input("places", BP_DTYPE_INT64, {time}, {"time"});
  const uint32_t length = cached ? graph.input("length", BP_DTYPE_INT64, {1}) : BP_NONE;
  const uint32_t embedding = weight({kWords, kWidth});
  uint32_t x =
      node("Add", {node("Gather", {embedding, tokens}), node("Gather", {weight({kCapacity, kWidth}), places})});
  std::vector<uint32_t> outputs;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const uint32_t h = norm(x);
    const uint32_t query = linear(h, kWidth, kWidth);
    uint32_t key = linear(h, kWidth, kWidth), value = linear(h, kWidth, kWidth);
    std::vector<uint32_t> inputs = {query, key, value};
    std::map<std::string, int64_t> numbers = {{"q_num_heads", kHeads}, {"kv_num_heads", kHeads}};
    if (cached) {
      const std::string number = std::to_string(layer);
      for (uint32_t* which : {&key, &value}) {
        const uint32_t past =
            graph.input((which == &key ? "past_key." : "past_value.") + number, BP_DTYPE_FLOAT, {1, kCapacity, kWidth});
        *which = node("TensorScatter", {past, *which, places});
        outputs.push_back(*which);
      }
      inputs = {query, key, value, BP_NONE, BP_NONE, BP_NONE, length};
    } else {
      numbers["is_causal"] = 1;
    }
    x = node("Add", {x, linear(node("Attention", inputs, numbers), kWidth, kWidth)});
    x = node("Add", {x, linear(node("Gelu", {linear(norm(x), kWidth, 4 * kWidth)}), 4 * kWidth, kWidth)});
  }
  outputs.insert(outputs.begin(), node("MatMul", {norm(x), weight({kWidth, kWords})}));
  return graph.finish(outputs);
}

// Decodes with caches that are allocated on device `cache_device` (an id). With `counters`, checks that no cache is
// copied.
void decode(const Environment& env, uint64_t cache_device, const partial::Counters* counters) {
  const Model model = gpt2(true);
  Exec exec = env.compile(model).exec();
  Tensor token = Tensor::of<int64_t>({1, 1}, {7}), place = Tensor::of<int64_t>({1}, {0});
  Tensor length = Tensor::of<int64_t>({1}, {1}), logits(BP_DTYPE_FLOAT, {1, 1, kWords});
  exec.bind("tokens", token);
  exec.bind("places", place);
  exec.bind("length", length);
  exec.bind_output(0u, logits);
  std::vector<Buffer> caches;
  const std::vector<int64_t> extents = {1, kCapacity, kWidth};
  for (uint32_t i = 0; i < 2 * kLayers; ++i) {
    caches.push_back(env.allocate(cache_device, kCapacity * kWidth * 4));
    const Tensor zero(BP_DTYPE_FLOAT, {1, kCapacity, kWidth});
    env.copy(zero.abi().buffer, caches[i].abi(), caches[i].abi().bytes);
    exec.bind_memory(3 + i, caches[i].tensor(BP_DTYPE_FLOAT, extents));
    exec.bind_memory(BP_SLOT_OUTPUT + 1 + i, caches[i].tensor(BP_DTYPE_FLOAT, extents));
  }

  std::vector<int64_t> tokens = {7};
  std::vector<std::vector<float>> scores;
  struct {
    uint64_t news, binds, shapes, allocations, copied;
  } before{};
  const auto* values = static_cast<const float*>(logits.data());
  scores.reserve(kCapacity);
  tokens.reserve(kCapacity + 1);
  uint64_t allocations_in_runs = 0;
  for (int64_t step = 0; step < kCapacity; ++step) {
    if (step == 1 && counters)
      before = {0, counters->binds, counters->shape_queries, counters->allocations, counters->copied_bytes};
    static_cast<int64_t*>(token.data())[0] = tokens.back();
    static_cast<int64_t*>(place.data())[0] = step;
    static_cast<int64_t*>(length.data())[0] = step + 1;
    const uint64_t start = allocation_count();
    ASSERT_EQ(api().exec_run(exec.get(), nullptr, nullptr), BP_OK) << "step " << step;
    if (step) allocations_in_runs += allocation_count() - start;
    scores.emplace_back(values, values + kWords);
    tokens.push_back(std::max_element(values, values + kWords) - values);
  }
#if defined(__x86_64__)
  EXPECT_EQ(allocations_in_runs, 0u);
#else  // on other processors oneDNN computes matrix products, and it allocates in every call
  std::printf("%llu allocations in %lld steps\n", static_cast<unsigned long long>(allocations_in_runs),
              static_cast<long long>(kCapacity));
#endif
  if (counters) {
    EXPECT_EQ(counters->binds, before.binds);
    EXPECT_EQ(counters->shape_queries, before.shapes);
    EXPECT_EQ(counters->allocations, before.allocations);
    // A step copies the token, its position, the length and the scores, but no cache.
    EXPECT_EQ(counters->copied_bytes - before.copied, (kCapacity - 1) * (3 * 8 + kWords * 4));
  }

  // The model without caches must compute the same scores for the same tokens.
  Exec whole = env.compile(gpt2(false)).exec();
  std::vector<int64_t> places(kCapacity);
  for (int64_t i = 0; i < kCapacity; ++i) places[static_cast<size_t>(i)] = i;
  tokens.resize(kCapacity);
  whole.bind("tokens", Tensor::of<int64_t>({1, kCapacity}, tokens));
  whole.bind("places", Tensor::of<int64_t>({kCapacity}, places));
  whole.run();
  const std::vector<float> expected = whole.output(0u).values<float>();
  float worst = 0;
  for (size_t step = 0; step < scores.size(); ++step)
    for (size_t word = 0; word < kWords; ++word)
      worst = std::max(worst, std::abs(scores[step][word] - expected[step * kWords + word]));
  EXPECT_LT(worst, 1e-4f);
}

TEST(Decode, CachesInHostMemoryAreUpdatedInPlace) {
  const Environment env = environment({BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so"});
  decode(env, env.devices().front().info.id, nullptr);
}

TEST(Decode, CachesInDeviceMemoryAreUpdatedInPlace) {
  const Environment env = environment({BACKPLANE_BUILD_DIR "/tests/plugins/partial.so"}, {{"partial.memory", "own"}});
  decode(env, env.devices().front().info.id, &counters(env));
}

TEST(Decode, CachesOfGroupQueryAttentionAreUpdatedInPlace) {
  const Environment env = environment({BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so"});
  Exec exec = env.compile(testing::decoder()).exec(), other = env.compile(testing::decoder()).exec();
  std::vector<Tensor> caches;
  for (uint32_t cache = 0; cache < 3; ++cache) {
    caches.emplace_back(BP_DTYPE_FLOAT, testing::decoder_cache_shape(cache));
    exec.bind(testing::kInputKeys + cache, caches.back());
    exec.bind_output(testing::kOutputKeys + cache, caches.back());
  }
  testing::expect_decodes_in_place(exec, other, [&](uint32_t cache) { return testing::decoder_floats(caches[cache]); });
}

TEST(Decode, SharedMemoryWithoutAnInPlaceUpdateIsRefused) {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2});
  const Model model = graph.finish({graph.node("Neg", "y", {x})});
  const std::string cpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
  const std::string partial = BACKPLANE_BUILD_DIR "/tests/plugins/partial.so";
  const Environment environments[] = {environment({cpu}), environment({partial}, {{"partial.memory", "host"}}),
                                      environment({partial}, {{"partial.memory", "shared"}}),
                                      environment({partial}, {{"partial.memory", "flushed"}})};
  for (const Environment& env : environments) {  // the last two import the host's memory
    Exec exec = env.compile(model).exec();
    const Tensor both = Tensor::of<float>({2}, {1, 2});
    exec.bind(0u, both);
    exec.bind_output(0u, both);
    const Error error = failure([&] { exec.run(); });
    EXPECT_EQ(error.status(), BP_UNSUPPORTED) << &env - environments;
    EXPECT_THAT(error.text(), ::testing::HasSubstr("input 'x' and output 'y' share memory"));
  }
}

}  // namespace
}  // namespace backplane
