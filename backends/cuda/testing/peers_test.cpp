// SPDX-License-Identifier: Apache-2.0
// Models that are cut across two devices of the backend, which copy from each other's memory.
#include <cstdlib>

#include "testing/standin_fixture.h"

namespace backplane::cuda::testing {
namespace {

using ::testing::ElementsAre;

class Peers : public StandinTest {
 protected:
  static void SetUpTestSuite() {
    StandinTest::SetUpTestSuite();
    setenv("STANDIN_DEVICES", "2", 1);
  }
  static void TearDownTestSuite() {
    unsetenv("STANDIN_DEVICES");
    StandinTest::TearDownTestSuite();
  }

  // y = -|-x| over three floats: the first and the last node on one device, the second on the other.
  static Session across(const Environment& env) {
    Graph graph;
    const uint32_t a = graph.node("Neg", "a", {graph.input("x", BP_DTYPE_FLOAT, {3})});
    const Model model = graph.finish({graph.node("Neg", "y", {graph.node("Abs", "b", {a})})});
    SessionOptions how;
    how.pins = {{"a", "cuda:0"}, {"b", "cuda:1"}, {"y", "cuda:0"}};
    how.options["loader.costs"] = "reported";
    return env.compile(model, how);
  }
  static std::vector<float> run(Exec& exec, float scale) {
    exec.bind("x", Tensor::of<float>({3}, {scale, -2 * scale, 3 * scale}));
    exec.run();
    return exec.output(0u).values<float>();
  }
};

TEST_F(Peers, EachDeviceReportsTheOther) {
  const Environment env = Peers::env();
  uint32_t found = 0;
  for (const Device& device : env.devices()) {
    if (std::string(device.name).find("cuda") == std::string::npos) continue;
    ++found;
    ASSERT_EQ(device.info.peer_count, 1u) << device.name;
    EXPECT_NE(device.info.peers[0], device.index) << device.name;
  }
  EXPECT_EQ(found, 2u);
}

TEST_F(Peers, ValuesCrossInOneCopyAndWithoutAHostWait) {
  const Environment env = Peers::env();
  Exec exec = across(env).exec();
  EXPECT_THAT(run(exec, 1), ElementsAre(-1, -2, -3));
  const uint64_t copies = standin_calls("cuMemcpyPeerAsync"), writes = standin_calls("cuMemcpyHtoDAsync_v2"),
                 waits = standin_calls("cuStreamSynchronize"), gates = standin_calls("cuStreamWaitValue32_v2");
  for (int i = 2; i < 102; ++i) EXPECT_THAT(run(exec, static_cast<float>(i)), ElementsAre(-i, -2 * i, -3 * i));
  EXPECT_EQ(standin_calls("cuMemcpyPeerAsync") - copies, 200u);
  EXPECT_EQ(standin_calls("cuMemcpyHtoDAsync_v2") - writes, 100u);  // the input, and nothing that crosses
  EXPECT_EQ(standin_calls("cuStreamSynchronize"), waits);
  EXPECT_EQ(standin_calls("cuStreamWaitValue32_v2"), gates);  // streams wait for each other's events
}

TEST_F(Peers, ACopyThatFailsIsAnErrorAndLeaksNothing) {
  const Environment env = Peers::env();
  across(env);
  const std::map<std::string, int64_t> before = objects();
  for (const uint64_t good : {0u, 1u}) {
    standin_fail("cuMemcpyPeerAsync", CUDA_ERROR_OUT_OF_MEMORY, good);
    const Error error = failure([&] {
      Exec exec = across(env).exec();
      run(exec, 1);
    });
    standin_fail(nullptr, CUDA_SUCCESS, 0);
    EXPECT_EQ(error.status(), BP_RESOURCE_EXHAUSTED) << error.text();
    EXPECT_EQ(objects(), before);
  }
}

}  // namespace
}  // namespace backplane::cuda::testing
