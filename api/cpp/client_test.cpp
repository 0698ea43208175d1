// SPDX-License-Identifier: Apache-2.0
// The C++ client with the real loader. The backends are the null backend and variants of it.
#include "backplane/client.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
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

// Returns the error that `body` throws, or an error with status BP_OK.
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

// Returns the member of Tensor that owns its bytes.
std::shared_ptr<char> Tensor::*owner_of_bytes();
template <auto kMember>
struct Expose {
  friend std::shared_ptr<char> Tensor::*owner_of_bytes() { return kMember; }
};
template struct Expose<&Tensor::data_>;  // an explicit instantiation may name a private member

TEST_F(Client, AnExecKeepsATensorAsLongAsItIsBound) {
  auto exec = env.compile(env.open(kModelFile)).exec();
  const Tensor tensor(BP_DTYPE_FLOAT, {2, 3}), other(BP_DTYPE_FLOAT, {2, 3});
  const auto users = [&] { return (tensor.*owner_of_bytes()).use_count(); };
  exec.bind("a", tensor);
  exec.bind_output("y", tensor);
  EXPECT_EQ(users(), 3);
  exec.unbind(0);
  EXPECT_EQ(users(), 2);
  exec.bind_memory(BP_SLOT_OUTPUT, other.abi());
  EXPECT_EQ(users(), 1);
}

TEST_F(Client, HandlesMayGoInAnyOrder) {
  auto exec = env.compile(env.open(kModelFile)).exec();  // the model and the session are temporaries
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
  EXPECT_EQ(done.value(), 3u);  // the run failed, so the caller must advance its signals
  done.fail(4, BP_TIMED_OUT, "the run was late");
  EXPECT_EQ(error_of([&] { done.wait(4); }).text(),
            "the work that should have brought the semaphore to 4 failed: the run was late");
}

TEST_F(Client, BuildsGraphs) {
  {
    backplane::Builder builder(21);
    const uint32_t x = builder.input("x", BP_DTYPE_FLOAT, {1, 2});
    const Tensor b = Tensor::of<float>({1, 2}, {1, -1});
    const uint32_t sum = builder.node("Add", {x, builder.weight("b", b)});
    backplane::NodeOptions named;
    named.name = "last";
    named.output_names = {"y"};
    builder.output(builder.node("Relu", {sum}, named));
    auto exec = env.compile(builder.finish()).exec();
    exec.bind("x", Tensor::of<float>({1, 2}, {-3, 5}));
    exec.run();
    EXPECT_THAT(exec.output("y").values<float>(), ElementsAre(0, 4));
    EXPECT_EQ(error_of([&] { builder.output(sum); }).status(), BP_BAD_STATE);
  }
}

TEST_F(Client, BuildsAttributesOfEachTypeAndBodies) {
  backplane::Builder builder(std::map<std::string, uint32_t>{{"", 21}, {"org.example", 1}});
  const uint32_t condition = builder.input("condition", BP_DTYPE_BOOL, {});
  const uint32_t x = builder.input("x", BP_DTYPE_FLOAT, {2});
  backplane::Builder then_body = builder.body(), else_body = builder.body();
  then_body.output(then_body.node("Relu", {then_body.input("x", BP_DTYPE_FLOAT, {2})}));
  backplane::NodeOptions constant;
  constant.attributes = {{"value", Tensor::of<float>({2}, {7, 8})}};
  else_body.output(else_body.node("Constant", {}, constant));
  backplane::NodeOptions branches;
  branches.attributes = {{"then_branch", &then_body}, {"else_branch", &else_body}};
  builder.output(builder.node("If", {condition}, branches));
  backplane::NodeOptions own;
  own.domain = "org.example";
  own.attributes = {{"integer", int64_t{3}},
                    {"real", 0.5f},
                    {"text", std::string("words")},
                    {"integers", std::vector<int64_t>{1, 2}},
                    {"reals", std::vector<float>{1, 2}},
                    {"texts", std::vector<std::string>{"a", "bc"}}};
  own.outputs = 2;
  builder.output(builder.node("Own", {x}, own) + 1);
  const backplane::Model model = builder.finish();
  const auto graph = model.graph();
  ASSERT_EQ(graph.node_count(), 2u);
  const auto node = graph.node(1);
  EXPECT_EQ(node.op_type(), "Own");
  EXPECT_EQ(node.int_attribute("integer", 0), 3);
  EXPECT_EQ(node.float_attribute("real", 0), 0.5f);
  EXPECT_THAT(node.ints_attribute("integers"), ElementsAre(1, 2));
}

TEST_F(Client, ABodyIsRefusedOnceTheModelIsFinished) {
  backplane::Builder builder(21);
  const uint32_t x = builder.input("x", BP_DTYPE_FLOAT, {2});
  backplane::Builder body = builder.body();
  EXPECT_EQ(error_of([&] { body.finish(); }).status(), BP_BAD_STATE);
  builder.output(builder.node("Relu", {x}));  // a body that refuses to finish leaves the other builders as they are
  const backplane::Model model = builder.finish();
  EXPECT_EQ(error_of([&] { builder.body(); }).status(), BP_BAD_STATE);
  EXPECT_EQ(error_of([&] { body.body(); }).status(), BP_BAD_STATE);
  EXPECT_EQ(error_of([&] { body.input("y", BP_DTYPE_FLOAT, {-1}, {"n"}); }).status(), BP_BAD_STATE);
  EXPECT_EQ(error_of([&] { body.weight("w", Tensor::of<float>({1}, {1})); }).status(), BP_BAD_STATE);
  EXPECT_EQ(error_of([&] { body.node("Constant", {}); }).status(), BP_BAD_STATE);
  EXPECT_EQ(model.graph().input_count(), 1u);
}

// `release` is called once, as soon as no model or session uses the weights.
TEST_F(Client, ABuildersWeightsAreReleased) {
  static int released;
  released = 0;
  const bp_opset_t opset{{"", 0}, 21, 0};
  bp_builder_desc_t desc{};
  desc.size = sizeof desc;
  desc.opset_count = 1;
  desc.opsets = &opset;
  desc.opset_stride = sizeof opset;
  desc.release = [](void*) { ++released; };
  const auto& api = backplane::api();
  bp_builder_t* builder = nullptr;
  ASSERT_EQ(api.builder_create(nullptr, &desc, &builder, nullptr), BP_OK);
  api.builder_destroy(builder);
  EXPECT_EQ(released, 1);
  desc.flags = 1;
  EXPECT_EQ(api.builder_create(nullptr, &desc, &builder, nullptr), BP_UNSUPPORTED);
  EXPECT_EQ(released, 1);
  desc.flags = 0;
  ASSERT_EQ(api.builder_create(nullptr, &desc, &builder, nullptr), BP_OK);
  const Tensor w = Tensor::of<float>({2}, {1, 2});
  const bp_tensor_t raw = w.abi();
  uint32_t value = 0;
  ASSERT_EQ(api.builder_weight(builder, backplane::view::text("w"), &raw, &value, nullptr), BP_OK);
  ASSERT_EQ(api.builder_output(builder, value, nullptr), BP_OK);
  bp_model_t* model = nullptr;
  ASSERT_EQ(api.builder_finish(builder, &model, nullptr), BP_OK);
  api.builder_destroy(builder);
  EXPECT_EQ(released, 1);
  api.model_destroy(model);
  EXPECT_EQ(released, 2);
}

// The null backend under the id `stubborn`, with a refit that always fails.
const bp_plugin_t* BP_CALL query_stubborn(const bp_host_offer_t* offer) {
  static bp_plugin_t plugin;
  static bp_weights_api_t weights;
  void* const library = dlopen(BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_null.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::abort();
  plugin = *reinterpret_cast<bp_plugin_query_t>(dlsym(library, BP_PLUGIN_SYMBOL))(offer);
  weights = *plugin.weights;
  weights.refit = [](bp_program_t*, const bp_refit_t*, bp_error_t*) -> bp_status_t { return BP_RESOURCE_EXHAUSTED; };
  plugin.id = backplane::view::text(std::string_view("stubborn"));
  plugin.weights = &weights;
  return &plugin;
}

TEST(ClientRefit, IsUndoneWhereALaterDeviceFails) {
  backplane::EnvironmentOptions options = null_alone();
  options.plugins = {query_stubborn};
  const backplane::Environment env(options);
  ASSERT_EQ(env.devices().size(), 2u);
  backplane::Builder builder(21);
  const auto add = [&](uint32_t x, const char* weight) {
    backplane::NodeOptions named;
    named.name = weight;
    return builder.node("Add", {x, builder.weight(weight, Tensor::of<float>({2}, {1, 1}))}, named);
  };
  builder.output(add(add(add(builder.input("x", BP_DTYPE_FLOAT, {2}), "a"), "b"), "c"));
  backplane::SessionOptions how;
  how.pins = {{"name=a", "null"}, {"name=b", "stubborn"}, {"name=c", "null"}};
  how.flags = BP_SESSION_REFIT;
  const auto session = env.compile(builder.finish(), how);
  auto exec = session.exec();
  const auto y = [&] {
    exec.bind("x", Tensor::of<float>({2}, {1, 2}));
    exec.run();
    return exec.output(0u).values<float>();
  };
  const Tensor ten = Tensor::of<float>({2}, {10, 10});
  EXPECT_THAT(y(), ElementsAre(4, 5));
  EXPECT_EQ(error_of([&] { session.refit({{"a", ten}, {"b", ten}, {"c", ten}}); }).status(), BP_RESOURCE_EXHAUSTED);
  EXPECT_THAT(y(), ElementsAre(4, 5));
  session.refit({{"a", ten}, {"c", ten}});
  EXPECT_THAT(y(), ElementsAre(22, 23));
}

std::atomic<int> live_programs = 0;

// The null backend under the id `fixed`, which replaces no weights, and counts its programs.
const bp_plugin_t* BP_CALL query_fixed(const bp_host_offer_t* offer) {
  static bp_plugin_t plugin;
  static bp_program_api_t programs;
  static const bp_program_api_t* own;
  void* const library = dlopen(BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_null.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::abort();
  plugin = *reinterpret_cast<bp_plugin_query_t>(dlsym(library, BP_PLUGIN_SYMBOL))(offer);
  own = plugin.program;
  programs = *own;
  programs.compile = [](bp_device_t* device, const bp_compile_t* what, bp_program_t** out,
                        bp_error_t* error) -> bp_status_t {
    const bp_status_t status = own->compile(device, what, out, error);
    if (status == BP_OK) ++live_programs;
    return status;
  };
  programs.destroy = [](bp_program_t* program) {
    if (program != nullptr) --live_programs;
    own->destroy(program);
  };
  plugin.id = backplane::view::text(std::string_view("fixed"));
  plugin.program = &programs;
  plugin.weights = nullptr;
  return &plugin;
}

TEST(ClientRefit, KeepsNoProgramsThatWereReplaced) {
  backplane::EnvironmentOptions options = null_alone();
  options.plugins = {query_fixed};
  const backplane::Environment env(options);
  backplane::Builder builder(21);
  builder.output(builder.node(
      "Add", {builder.input("x", BP_DTYPE_FLOAT, {2}), builder.weight("w", Tensor::of<float>({2}, {1, 1}))}));
  backplane::SessionOptions how;
  how.devices = {"fixed"};
  how.flags = BP_SESSION_REFIT;
  live_programs = 0;
  {
    const auto session = env.compile(builder.finish(), how);
    auto exec = session.exec(), idle = session.exec();
    exec.bind("x", Tensor::of<float>({2}, {1, 2}));
    for (float w = 10; w < 20; ++w) {
      session.refit({{"w", Tensor::of<float>({2}, {w, w})}});
      exec.run();
      EXPECT_THAT(exec.output(0u).values<float>(), ElementsAre(w + 1, w + 2));
      EXPECT_LE(live_programs, 2);  // the newest program, and the one that the idle exec still holds
    }
  }
  EXPECT_EQ(live_programs, 0);
}

TEST(ClientTensor, ChecksShapesTypesAndStrings) {
  EXPECT_THROW(Tensor(BP_DTYPE_FLOAT, {-1}), std::invalid_argument);
  EXPECT_THROW(Tensor(BP_DTYPE_FLOAT, {0, -1}), std::invalid_argument);
  const int64_t negative[] = {0, -1};
  bp_tensor_t raw = Tensor(BP_DTYPE_FLOAT, {0, 1}).abi();
  raw.extents = negative;
  EXPECT_THROW(Tensor::copy(raw), std::invalid_argument);
  EXPECT_THROW(Tensor(BP_DTYPE_FLOAT, {INT64_MAX, 2}), std::invalid_argument);
  EXPECT_THROW(Tensor::of<float>({3}, {1, 2}), std::invalid_argument);
  EXPECT_THROW(Tensor(BP_DTYPE_FLOAT, {2}).data<int32_t>(), std::invalid_argument);
  EXPECT_EQ(Tensor(BP_DTYPE_INT4, {3}).bytes(), 2u);

  const auto strings = [](std::vector<int64_t> extents) { return Tensor::of_strings(std::move(extents), {"a"}); };
  EXPECT_THROW(strings({2}), std::invalid_argument);
  EXPECT_THROW(strings({-1, -1}), std::invalid_argument);
  EXPECT_THROW(strings({INT64_MAX, INT64_MAX}), std::invalid_argument);  // the product wraps to 1
  EXPECT_THROW(strings(std::vector<int64_t>(40, 1)), std::invalid_argument);
  EXPECT_EQ(strings({1, 1}).strings().size(), 1u);
  EXPECT_TRUE(Tensor::of_strings({0, 2}, {}).strings().empty());

  Tensor words = Tensor::of_strings({2}, {"back", "plane"});
  EXPECT_THAT(words.strings(), ElementsAre("back", "plane"));
  EXPECT_THAT(words.clone().strings(), ElementsAre("back", "plane"));
  static_cast<int64_t*>(words.data())[1] = 1 << 20;
  EXPECT_THROW(words.strings(), std::invalid_argument);
}

}  // namespace
