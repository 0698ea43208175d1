// SPDX-License-Identifier: Apache-2.0
// How often a frame of samples/05_streams waits for the device.
#include <gtest/gtest.h>

#include <string>

#include "testing/cl_layer.h"

extern "C" int streams_main(int argc, char** argv);

namespace {

uint64_t waits(std::string frames) {
  std::string name = "streams", model = SAMPLE_MODEL;
  char* arguments[] = {name.data(), model.data(), frames.data(), nullptr};
  const uint64_t before = backplane::opencl::testing::cl_layer().waits;
  EXPECT_EQ(streams_main(3, arguments), 0);
  return backplane::opencl::testing::cl_layer().waits - before;
}

TEST(StreamsSample, AFrameWaitsOnce) {
  waits("0");  // warm-up: per-device measurements and builds
  const uint64_t none = waits("0"), one = waits("1");
  EXPECT_EQ(one, none + 2);  // one wait for the frame; one when the instance that it creates is destroyed
  EXPECT_EQ(waits("2"), one + 1);
  EXPECT_EQ(waits("6"), one + 5);
}

}  // namespace
