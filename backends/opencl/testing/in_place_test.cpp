// SPDX-License-Identifier: Apache-2.0
// Caches that are bound as an input and as an output are updated in place.
#include "testing/decoder.h"
#include "testing/session.h"

namespace backplane::opencl::testing {
namespace {

using namespace backplane::testing;
using InPlace = OpenCl;

TEST_F(InPlace, HostMemory) {
  for (const char* memory : {"shared", "own"}) {
    SCOPED_TRACE(memory);
    Exec exec = opencl({{"opencl.memory", memory}}).compile(decoder(), only_opencl()).exec();
    Exec other = environment({kCpuPlugin}).compile(decoder()).exec();
    std::vector<Tensor> caches;
    for (uint32_t cache = 0; cache < 3; ++cache) {
      caches.emplace_back(BP_DTYPE_FLOAT, decoder_cache_shape(cache));
      exec.bind(kInputKeys + cache, caches.back());
      exec.bind_output(kOutputKeys + cache, caches.back());
    }
    expect_decodes_in_place(exec, other, [&](uint32_t cache) { return decoder_floats(caches[cache]); });
  }
}

// A cache in the second half of a buffer, which is a part of the device's memory.
TEST_F(InPlace, DeviceMemory) {
  const Environment env = opencl();
  uint64_t device = 0;
  for (const Device& each : env.devices())
    if (each.name.starts_with("opencl")) device = each.info.id;
  Exec exec = env.compile(decoder(), only_opencl()).exec();
  Exec other = environment({kCpuPlugin}).compile(decoder()).exec();
  std::vector<Buffer> buffers;
  std::vector<bp_buffer_t> caches;
  for (uint32_t cache = 0; cache < 3; ++cache) {
    const std::vector<int64_t>& shape = decoder_cache_shape(cache);
    const Tensor zeros(BP_DTYPE_FLOAT, shape);
    constexpr uint64_t kHalf = 4096;  // a multiple of every device's alignment
    ASSERT_LE(zeros.abi().buffer.bytes, kHalf);
    buffers.push_back(env.allocate(device, 2 * kHalf));
    bp_tensor_t tensor = buffers.back().tensor(BP_DTYPE_FLOAT, shape);
    tensor.buffer.offset += kHalf;
    tensor.buffer.bytes = zeros.abi().buffer.bytes;
    caches.push_back(tensor.buffer);
    env.copy(zeros.abi().buffer, tensor.buffer, tensor.buffer.bytes);
    exec.bind_memory(kInputKeys + cache, tensor);
    exec.bind_memory(BP_SLOT_OUTPUT + kOutputKeys + cache, tensor);
  }
  expect_decodes_in_place(exec, other, [&](uint32_t cache) {
    Tensor seen(BP_DTYPE_FLOAT, decoder_cache_shape(cache));
    env.copy(caches[cache], seen.abi().buffer, caches[cache].bytes);
    return decoder_floats(seen);
  });
}

// The same exec may be bound again, in place or not.
TEST_F(InPlace, BoundAgain) {
  Exec exec = opencl().compile(decoder(), only_opencl()).exec();
  const auto zeros = [](uint32_t cache) { return Tensor(BP_DTYPE_FLOAT, decoder_cache_shape(cache)); };
  std::vector<float> first;
  for (const bool in_place : {true, false, true}) {
    std::vector<Tensor> inputs, outputs;
    for (uint32_t cache = 0; cache < 3; ++cache) {
      inputs.push_back(zeros(cache));
      outputs.push_back(in_place ? inputs.back() : zeros(cache));
      exec.bind(kInputKeys + cache, inputs.back());
      exec.bind_output(kOutputKeys + cache, outputs.back());
    }
    decode_step(exec, 0);
    if (first.empty()) first = decoder_floats(outputs[0]);
    EXPECT_EQ(decoder_floats(outputs[0]), first);
    EXPECT_NE(first, decoder_floats(zeros(0)));
    EXPECT_EQ(decoder_floats(inputs[0]), in_place ? first : decoder_floats(zeros(0)));
  }
}

// A position that a cache does not have ends the run with an error that names the node, and no cache is changed.
TEST_F(InPlace, PositionsBeyondTheCache) {
  Exec exec = opencl().compile(decoder(), only_opencl()).exec();
  std::vector<Tensor> caches;
  for (uint32_t cache = 0; cache < 3; ++cache) {
    caches.push_back(decoder_numbers(decoder_cache_shape(cache), cache));
    exec.bind(kInputKeys + cache, caches.back());
    exec.bind_output(kOutputKeys + cache, caches.back());
  }
  decode_step(exec, 0);
  const std::vector<float> keys = decoder_floats(caches[0]), values = decoder_floats(caches[1]);
  for (const int32_t last : {static_cast<int32_t>(kCapacity), INT32_MAX, -2, INT32_MIN}) {
    exec.bind(kInputLengths, Tensor::of<int32_t>({kSequences}, {3, last}));
    const Error error = failure([&] { exec.run(); });
    EXPECT_EQ(error.status(), BP_INVALID_ARGUMENT);
    EXPECT_THAT(error.text(), ::testing::HasSubstr("GroupQueryAttention"));
    EXPECT_THAT(error.text(), ::testing::HasSubstr("seqlens_k"));
    EXPECT_EQ(decoder_floats(caches[0]), keys);
    EXPECT_EQ(decoder_floats(caches[1]), values);
  }
}

}  // namespace
}  // namespace backplane::opencl::testing
