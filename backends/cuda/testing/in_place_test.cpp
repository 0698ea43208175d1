// SPDX-License-Identifier: Apache-2.0
// Caches in device memory that are bound as an input and as an output: they are updated in place, and not copied.
#include "testing/captures_fixture.h"
#include "testing/decoder.h"

namespace backplane::cuda::testing {
namespace {

using namespace backplane::testing;

class InPlace : public CapturesTest {
 protected:
  // Binds caches of zeros in device memory as inputs, and either the same ones or others as outputs.
  void bind_caches(const Environment& env, Exec& exec, bool in_place) {
    for (uint32_t cache = 0; cache < 3; ++cache) {
      const std::vector<int64_t>& shape = decoder_cache_shape(cache);
      const auto zeros = [&] {
        const Tensor tensor(BP_DTYPE_FLOAT, shape);
        buffers_.push_back(env.allocate(device_id(env), tensor.abi().buffer.bytes));
        env.copy(tensor.abi().buffer, buffers_.back().abi(), tensor.abi().buffer.bytes);
        return buffers_.back().tensor(BP_DTYPE_FLOAT, shape);
      };
      exec.bind_memory(kInputKeys + cache, zeros());
      if (!in_place) zeros();
      exec.bind_memory(BP_SLOT_OUTPUT + kOutputKeys + cache, buffers_.back().tensor(BP_DTYPE_FLOAT, shape));
    }
  }
  std::vector<float> cache(const Environment& env, uint32_t cache) const {
    Tensor seen(BP_DTYPE_FLOAT, decoder_cache_shape(cache));
    env.copy(buffers_[cache].abi(), seen.abi().buffer, seen.abi().buffer.bytes);
    return decoder_floats(seen);
  }

  std::vector<Buffer> buffers_;
};

TEST_F(InPlace, DecodesAsWithCopies) {
  for (const char* graphs : {"on", "off"}) {
    SCOPED_TRACE(graphs);
    buffers_.clear();
    const Environment env = StandinTest::env({{"cuda.graphs", graphs}});
    Exec exec = env.compile(decoder(), only("cuda")).exec(), other = env.compile(decoder(), only("cpu")).exec();
    bind_caches(env, exec, true);
    expect_decodes_in_place(exec, other, [&](uint32_t index) { return cache(env, index); });
  }
}

TEST_F(InPlace, OneLaunchLessThanWithCopies) {
  const Environment env = StandinTest::env({{"cuda.graphs", "off"}});
  uint64_t launches[2];
  for (const bool in_place : {false, true}) {
    Exec exec = env.compile(decoder(), only("cuda")).exec();
    bind_caches(env, exec, in_place);
    decode_step(exec, 0);
    const Calls calls;
    decode_step(exec, 1);
    launches[in_place] = calls.launches();
    EXPECT_EQ(calls.of("cuMemcpyDtoDAsync_v2"), 0u);
  }
  // The launch that is saved is the copy of the history. The caches are not copied in either case.
  EXPECT_EQ(launches[true] + 1, launches[false]);
}

}  // namespace
}  // namespace backplane::cuda::testing
