// SPDX-License-Identifier: Apache-2.0
// A step of a decoder whose caches are updated in place, for the tests of several backends.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "testing/client_fixture.h"

namespace backplane::testing {

constexpr int64_t kSequences = 2, kCapacity = 9, kQueryHeads = 4, kCacheHeads = 2, kHeadSize = 8;
// Inputs and outputs of the step, by number: a cache has one number as an input and another as an output.
constexpr uint32_t kInputKeys = 3, kInputHistory = 5, kInputLengths = 6, kInputPlaces = 7;
constexpr uint32_t kOutputKeys = 1, kOutputHistory = 3;

inline const std::vector<int64_t> kCacheShape = {kSequences, kCacheHeads, kCapacity, kHeadSize};
inline const std::vector<int64_t> kHistoryShape = {kSequences, kCapacity, kQueryHeads* kHeadSize};

// y = GroupQueryAttention with rotated queries and keys. The caches of keys and values, and a history to which
// TensorScatter writes y, are inputs and outputs.
inline Model decoder() {
  Builder graph(std::map<std::string, uint32_t>{{"", 24}, {"com.microsoft", 1}});
  const std::vector<int64_t> token = {kSequences, 1, kQueryHeads * kHeadSize};
  const std::vector<int64_t> fresh = {kSequences, 1, kCacheHeads * kHeadSize};
  const uint32_t q = graph.input("q", BP_DTYPE_FLOAT, token), k = graph.input("k", BP_DTYPE_FLOAT, fresh);
  const uint32_t v = graph.input("v", BP_DTYPE_FLOAT, fresh), keys = graph.input("keys", BP_DTYPE_FLOAT, kCacheShape);
  const uint32_t values = graph.input("values", BP_DTYPE_FLOAT, kCacheShape);
  const uint32_t history = graph.input("history", BP_DTYPE_FLOAT, kHistoryShape);
  const uint32_t lengths = graph.input("lengths", BP_DTYPE_INT32, {kSequences});
  const uint32_t places = graph.input("places", BP_DTYPE_INT64, {kSequences});
  std::vector<float> cosines, sines;
  for (int64_t i = 0; i < kCapacity * kHeadSize / 2; ++i) {
    cosines.push_back(static_cast<float>(i % 7) / 7);
    sines.push_back(static_cast<float>(i % 5) / 5);
  }
  NodeOptions how;
  how.domain = "com.microsoft";
  how.outputs = 3;
  how.output_names = {"y", "new_keys", "new_values"};
  how.attributes = {{"num_heads", kQueryHeads}, {"kv_num_heads", kCacheHeads}, {"do_rotary", int64_t{1}}};
  const uint32_t y = graph.node("GroupQueryAttention",
                                {q, k, v, keys, values, lengths,
                                 graph.weight("total", Tensor::of<int32_t>({1}, {static_cast<int32_t>(kCapacity)})),
                                 graph.weight("cosines", Tensor::of<float>({kCapacity, kHeadSize / 2}, cosines)),
                                 graph.weight("sines", Tensor::of<float>({kCapacity, kHeadSize / 2}, sines))},
                                how);
  NodeOptions scatter;
  scatter.output_names = {"new_history"};
  const uint32_t new_history = graph.node("TensorScatter", {history, y, places}, scatter);
  for (const uint32_t output : {y, y + 1, y + 2, new_history}) graph.output(output);
  return graph.finish();
}

inline Tensor decoder_numbers(const std::vector<int64_t>& extents, int64_t seed) {
  Tensor tensor(BP_DTYPE_FLOAT, extents);
  auto* values = static_cast<float*>(tensor.data());
  for (uint64_t i = 0; i < tensor.count(); ++i)
    values[i] = static_cast<float>((i * 5 + static_cast<uint64_t>(seed) * 11) % 13) / 8 - 0.75f;
  return tensor;
}

// Runs `exec` for step `step`, with the inputs that are not caches bound to host memory.
inline void decode_step(Exec& exec, int64_t step) {
  const std::vector<int64_t> fresh = {kSequences, 1, kCacheHeads * kHeadSize};
  exec.bind(0u, decoder_numbers({kSequences, 1, kQueryHeads * kHeadSize}, step));
  exec.bind(1u, decoder_numbers(fresh, step + 1));
  exec.bind(2u, decoder_numbers(fresh, step + 2));
  // The second sequence begins with the third step; until then, it overwrites its first position.
  const auto last = static_cast<int32_t>(step), other = std::max(0, last - 2);
  exec.bind(kInputLengths, Tensor::of<int32_t>({kSequences}, {last, other}));
  exec.bind(kInputPlaces, Tensor::of<int64_t>({kSequences}, {last, other}));
  exec.run();
}

inline const std::vector<int64_t>& decoder_cache_shape(uint32_t cache) {
  return cache == 2 ? kHistoryShape : kCacheShape;
}
inline std::vector<float> decoder_floats(const Tensor& tensor) {
  const auto* values = static_cast<const float*>(tensor.data());
  return {values, values + tensor.count()};
}

// Decodes on `exec` with each cache bound as an input and an output, and on `other` with caches that are copied: all
// results and caches are the same. `read` returns the contents of cache 0 to 2 (keys, values, history).
template <class Read>
void expect_decodes_in_place(Exec& exec, Exec& other, const Read& read) {
  std::vector<Tensor> caches;
  for (uint32_t cache = 0; cache < 3; ++cache) caches.emplace_back(BP_DTYPE_FLOAT, decoder_cache_shape(cache));
  for (int64_t step = 0; step < kCapacity; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    decode_step(exec, step);
    for (uint32_t cache = 0; cache < 3; ++cache) other.bind(kInputKeys + cache, caches[cache]);
    decode_step(other, step);
    const auto near = [](const std::vector<float>& numbers) {
      return ::testing::Pointwise(::testing::FloatNear(1e-5f), numbers);
    };
    ASSERT_THAT(decoder_floats(exec.output(0)), near(decoder_floats(other.output(0))));
    for (uint32_t cache = 0; cache < 3; ++cache) {
      const std::vector<float> expected = decoder_floats(other.output(kOutputKeys + cache));
      ASSERT_THAT(read(cache), near(expected)) << "cache " << cache;
      std::copy(expected.begin(), expected.end(), static_cast<float*>(caches[cache].data()));
    }
  }
}

}  // namespace backplane::testing
