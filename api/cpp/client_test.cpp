// SPDX-License-Identifier: Apache-2.0
// The C++ client over the real loader and the null backend alone.
#include "backplane/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

namespace {

using backplane::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = Relu(a + b), all float[2, 3]
const char* const kModelFile = BACKPLANE_BUILD_DIR "/samples/testing/add_relu.onnx";

backplane::EnvironmentOptions null_alone() {
  backplane::EnvironmentOptions options;
  options.backend_files = {BACKPLANE_BUILD_DIR "/share/backplane/backends.d/null.json"};
  options.only_given = true;
  return options;
}

// The error that a call throws.
template <class Body>
backplane::Error error_of(Body body) {
  try {
    body();
  } catch (const backplane::Error& error) {
    return error;
  }
  return backplane::Error(BP_OK, "nothing was thrown");
}

class Client : public ::testing::Test {
 protected:
  backplane::Environment env{null_alone()};
};

TEST_F(Client, ListsCandidatesAndDevices) {
  ASSERT_EQ(env.candidates().size(), 1u);
  EXPECT_EQ(env.candidates()[0].refusal, BP_REFUSED_NONE);
  ASSERT_EQ(env.devices().size(), 1u);
  EXPECT_EQ(env.devices()[0].name, "null");
  EXPECT_EQ(env.devices()[0].info.kind, BP_DEVICE_OTHER);
  EXPECT_THAT(env.report(), HasSubstr("null"));
}

TEST_F(Client, RunsAModelByNameAndFollowsNewData) {
  const auto session = env.compile(env.open(kModelFile));
  auto exec = session.exec();
  Tensor a = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  exec.bind("a", a);
  exec.bind("b", Tensor::of<float>({2, 3}, {-4, -4, -4, -4, -4, -4}));  // kept alive by the exec
  exec.run();
  EXPECT_THAT(exec.output("y").values<float>(), ElementsAre(0, 0, 0, 0, 1, 2));
  a.data<float>()[0] = 10;
  exec.run();
  const Tensor y = exec.output(0);
  EXPECT_EQ(y.values<float>()[0], 6);
  EXPECT_THAT(y.extents(), ElementsAre(2, 3));
  EXPECT_EQ(env.device(session.node(0).device).index, 1u);
}

TEST_F(Client, HandlesMayGoInAnyOrder) {
  auto exec = env.compile(env.open(kModelFile)).exec();  // model and session are temporaries
  env = backplane::Environment(null_alone());
  for (const char* input : {"a", "b"}) exec.bind(input, Tensor(BP_DTYPE_FLOAT, {2, 3}));
  exec.run();
  EXPECT_EQ(exec.output(0).count(), 6u);
}

TEST_F(Client, KeepsTheBytesOfAParsedModel) {
  std::ostringstream bytes;
  bytes << std::ifstream(kModelFile, std::ios::binary).rdbuf();
  const auto model = env.parse(bytes.str());
  EXPECT_EQ(model.graph().node_count(), 2u);
  EXPECT_EQ(model.graph().input(1).name(), "b");
  EXPECT_EQ(model.graph().node(1).op_type(), "Relu");
  EXPECT_THAT(model.graph().output(0).extents(), ElementsAre(2, 3));
}

TEST_F(Client, ThrowsTheLoadersErrors) {
  const auto missing = error_of([&] { env.open("/no/such/model.onnx"); });
  EXPECT_EQ(missing.status(), BP_NOT_FOUND);
  EXPECT_THAT(missing.text(), HasSubstr("/no/such/model.onnx"));
  EXPECT_EQ(error_of([&] { env.parse("not a model"); }).status_class(), BP_CLASS_FIX_CALL);

  const auto model = env.open(kModelFile);
  backplane::SessionOptions elsewhere;
  elsewhere.devices = {"no_such_device"};
  EXPECT_EQ(error_of([&] { env.compile(model, elsewhere); }).status(), BP_NOT_FOUND);

  auto exec = env.compile(model).exec();
  EXPECT_THAT(error_of([&] { exec.bind("c", Tensor(BP_DTYPE_FLOAT, {2, 3})); }).text(), HasSubstr("'c'"));
  EXPECT_EQ(error_of([&] { exec.bind("a", Tensor(BP_DTYPE_INT32, {2, 3})); }).status(), BP_TYPE_MISMATCH);
  EXPECT_EQ(error_of([&] { exec.bind("a", Tensor(BP_DTYPE_FLOAT, {3, 3})); }).status(), BP_TYPE_MISMATCH);
  EXPECT_EQ(error_of([&] { exec.run(); }).status(), BP_BAD_STATE);
}

TEST_F(Client, OrdersRunsBySemaphores) {
  auto exec = env.compile(env.open(kModelFile)).exec();
  for (const char* input : {"a", "b"}) exec.bind(input, Tensor(BP_DTYPE_FLOAT, {2, 3}));
  backplane::Semaphore ready, done;
  std::thread producer([&] { ready.signal(1); });
  backplane::RunOptions options;
  options.waits = {ready.at(1)};
  options.signals = {done.at(3)};
  exec.run(options);
  producer.join();
  EXPECT_EQ(done.value(), 3u);

  options.waits = {ready.at(2)};
  options.timeout = std::chrono::milliseconds(5);
  options.signals = {done.at(4)};
  EXPECT_EQ(error_of([&] { exec.run(options); }).status(), BP_TIMED_OUT);
  EXPECT_EQ(done.value(), 3u);  // the call has failed: its signals are the caller's
  done.fail(4, BP_TIMED_OUT, "the run was late");
  EXPECT_EQ(error_of([&] { done.wait(4); }).text(),
            "the work that was to bring the semaphore to 4 failed: the run was late");
}

TEST(ClientTensor, ChecksShapesTypesAndStrings) {
  EXPECT_THROW(Tensor(BP_DTYPE_FLOAT, {-1}), std::invalid_argument);
  EXPECT_THROW(Tensor(BP_DTYPE_FLOAT, {INT64_MAX, 2}), std::invalid_argument);
  EXPECT_THROW(Tensor::of<float>({3}, {1, 2}), std::invalid_argument);
  EXPECT_THROW(Tensor(BP_DTYPE_FLOAT, {2}).data<int32_t>(), std::invalid_argument);
  EXPECT_EQ(Tensor(BP_DTYPE_INT4, {3}).bytes(), 2u);

  Tensor words = Tensor::of_strings({2}, {"back", "plane"});
  EXPECT_THAT(words.strings(), ElementsAre("back", "plane"));
  EXPECT_THAT(words.clone().strings(), ElementsAre("back", "plane"));
  static_cast<int64_t*>(words.data())[1] = 1 << 20;
  EXPECT_THROW(words.strings(), std::invalid_argument);
}

}  // namespace
