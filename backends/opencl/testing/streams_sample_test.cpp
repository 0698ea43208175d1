// SPDX-License-Identifier: Apache-2.0
// Tests how often a frame of samples/05_streams waits for the device.
#include <gtest/gtest.h>

#include <string>

#include "testing/cl_layer.h"

extern "C" int streams_main(int argc, char** argv);

namespace {

struct Trips {
  uint64_t waits, callbacks;
};

Trips trips(std::string frames) {
  std::string name = "streams", model = SAMPLE_MODEL;
  char* arguments[] = {name.data(), model.data(), frames.data(), nullptr};
  const backplane::opencl::testing::ClLayer& layer = backplane::opencl::testing::cl_layer();
  const Trips before{layer.waits, layer.callbacks};
  EXPECT_EQ(streams_main(3, arguments), 0);
  return {layer.waits - before.waits, layer.callbacks - before.callbacks};
}

TEST(StreamsSample, AFrameWaitsOnce) {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
    GTEST_SKIP() << "there is no OpenCL device";
  trips("0");  // warm-up: per-device measurements and builds
  const Trips none = trips("0"), one = trips("1"), two = trips("2"), six = trips("6");
  EXPECT_EQ(one.waits, none.waits + 2);  // one wait for the frame; one when the instance is destroyed
  EXPECT_EQ(two.waits, one.waits + 1);
  EXPECT_EQ(six.waits, one.waits + 5);
  // No frame after the first registers a callback, through which a thread could wait without being counted in `waits`.
  EXPECT_EQ(two.callbacks, one.callbacks);
  EXPECT_EQ(six.callbacks, one.callbacks);
}

}  // namespace
