// SPDX-License-Identifier: Apache-2.0
// Generated calls with faults. Each function has a table of faults and their statuses in the order in which they are
// checked; a call with one, two or three of them must return the status of the first.
#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "backplane/types.h"
#include "onnxifi/onnxifi.h"
#include "onnxifi/testing/structs.h"
#include "testing/onnx_writer.h"

namespace {

using namespace backplane::testing::onnx;  // NOLINT(google-build-using-namespace)
using backplane::onnxifi::descriptor;
using backplane::onnxifi::fence;
using Descriptors = std::vector<onnxTensorDescriptorV1>;

std::string binary_model(std::string_view op, int64_t opset) {
  return model_bytes({{"", opset}},
                     graph({node(op, {"a", "b"}, {"c"})},
                           {tensor_value("a", BP_DTYPE_FLOAT, {Dim(3)}), tensor_value("b", BP_DTYPE_FLOAT, {Dim(3)})},
                           {tensor_value("c", BP_DTYPE_FLOAT, {Dim(3)})}));
}

// The parts of a call that a fault changes. A call has at most one fault of each part.
enum Part : uint32_t {
  kHandle = 1,
  kInputs = 1 << 1,   // the pointer to the list of inputs
  kOutputs = 1 << 2,  // the pointer to the list of outputs, or to a result
  kWeights = 1 << 3,  // the pointer to the list of weights
  kModel = 1 << 4,
  kProperties = 1 << 5,
  kBefore = 1 << 6,  // the pointer to the input fence
  kAfter = 1 << 7,
  kTag = 1 << 8,  // from here to kAddress: a field of the descriptor of the first input or of the weight
  kName = 1 << 9,
  kDtype = 1 << 10,
  kMemory = 1 << 11,
  kShape = 1 << 12,
  kAddress = 1 << 13,
  kSecond = 1 << 14,  // the second input
  kOutput = 1 << 15,  // the descriptor of the output
  kBeforeTag = 1 << 16,
  kBeforeType = 1 << 17,
  kBeforeEvent = 1 << 18,
  kAfterTag = 1 << 19,
  kAfterType = 1 << 20,
  kSize = 1 << 21,
};

// The arguments of any call. They are right until a fault changes them.
struct Arguments {
  void* handle;
  const uint64_t* properties = nullptr;
  std::string_view model;
  bool has_model = true, has_inputs = true, has_outputs = true, has_weights = true, has_before = true, has_after = true;
  bool has_result = true;
  Descriptors weights, inputs, outputs;
  onnxMemoryFenceV1 before = fence(), after = fence();
  bool is_io_set = true;
  onnxBackendInfo info = ONNXIFI_BACKEND_NAME;
  size_t room = 100;
};

struct Fault {
  std::string what;
  uint32_t parts;
  onnxStatus status;
  std::function<void(Arguments&)> apply;
};
using Faults = std::vector<Fault>;

class OnnxifiFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    size_t count = 0;
    ASSERT_EQ(onnxGetBackendIDs(nullptr, &count), ONNXIFI_STATUS_FALLBACK);
    ids_.resize(count);
    ASSERT_EQ(onnxGetBackendIDs(ids_.data(), &count), ONNXIFI_STATUS_SUCCESS);
    for (onnxBackendID id : ids_) {
      char name[100] = {};
      size_t size = sizeof name;
      ASSERT_EQ(onnxGetBackendInfo(id, ONNXIFI_BACKEND_NAME, name, &size), ONNXIFI_STATUS_SUCCESS);
      if (std::string_view(name, size) == "Backplane null") id_ = id;
    }
    ASSERT_NE(id_, nullptr);
    ASSERT_EQ(onnxInitBackend(id_, nullptr, &backend_), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxInitBackend(id_, nullptr, &stale_backend_), ONNXIFI_STATUS_SUCCESS);
    for (onnxGraph* graph : {&graph_, &stale_graph_}) {
      ASSERT_EQ(onnxInitGraph(backend_, nullptr, good_.size(), good_.data(), 0, nullptr, graph),
                ONNXIFI_STATUS_SUCCESS);
    }
    for (onnxEvent* event : {&ready_, &waiting_, &stale_event_})
      ASSERT_EQ(onnxInitEvent(backend_, event), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxSignalEvent(ready_), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxReleaseEvent(stale_event_), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxReleaseGraph(stale_graph_), ONNXIFI_STATUS_SUCCESS);
    ASSERT_EQ(onnxReleaseBackend(stale_backend_), ONNXIFI_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(onnxReleaseEvent(ready_), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(waiting_), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseGraph(graph_), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseBackend(backend_), ONNXIFI_STATUS_SUCCESS);
    for (onnxBackendID id : ids_) EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
  }

  // Handles that are not valid for an object of this kind: NULL, released, foreign, and those of other kinds.
  std::vector<std::pair<std::string, void*>> wrong_handles(void* valid, void* stale) {
    std::vector<std::pair<std::string, void*>> result = {
        {"NULL", nullptr}, {"a foreign handle", this}, {"a handle plus one", static_cast<char*>(valid) + 1}};
    if (stale != nullptr) result.emplace_back("a released handle", stale);
    const std::pair<std::string, void*> others[] = {
        {"an id", id_}, {"a backend", backend_}, {"a graph", graph_}, {"an event", ready_}};
    for (const auto& other : others)
      if (other.second != valid && !(valid == waiting_ && other.second == ready_)) result.push_back(other);
    return result;
  }
  // Returns `first`, then the faults of a handle, then `others`.
  Faults with_handles(void* valid, void* stale, onnxStatus status, Faults others, Faults first = {}) {
    for (const auto& [what, handle] : wrong_handles(valid, stale))
      first.push_back({what, kHandle, status, [handle = handle](Arguments& call) { call.handle = handle; }});
    first.insert(first.end(), others.begin(), others.end());
    return first;
  }

  // Makes the call with every set of at most three faults of different parts, and without a fault.
  void expect_first(const Faults& faults, const Arguments& right, const std::function<onnxStatus(Arguments&)>& call) {
    const auto make = [&](const std::vector<const Fault*>& some) {
      Arguments arguments = right;
      std::string what;
      for (const Fault* one : some) {
        one->apply(arguments);
        what += (what.empty() ? "" : "; ") + one->what;
      }
      EXPECT_EQ(call(arguments), some.empty() ? ONNXIFI_STATUS_SUCCESS : some[0]->status) << what;
      ++calls_;
    };
    make({});
    for (size_t i = 0; i < faults.size(); ++i) {
      make({&faults[i]});
      for (size_t j = i + 1; j < faults.size(); ++j) {
        if ((faults[i].parts & faults[j].parts) != 0) continue;
        make({&faults[i], &faults[j]});
        for (size_t k = j + 1; k < faults.size(); ++k) {
          if ((faults[k].parts & (faults[i].parts | faults[j].parts)) == 0) make({&faults[i], &faults[j], &faults[k]});
        }
      }
    }
  }
  void expect_calls(int least) const { EXPECT_GE(calls_, least); }

  // The faults that a descriptor can have by itself, in the order in which they are checked. With `shared`, all of them
  // change that part, so a call has at most one of them.
  static Faults of_descriptor(const std::string& whose, Descriptors Arguments::*list, size_t at, uint32_t shared) {
    static const uint64_t kZero[] = {0};
    using Change = std::function<void(onnxTensorDescriptorV1&)>;
    const auto fault = [&](const char* what, uint32_t part, onnxStatus status, const Change& change) {
      return Fault{whose + what, shared != 0 ? shared : part, status,
                   [=](Arguments& call) { change((call.*list)[at]); }};
    };
    return {
        fault("tag", kTag, ONNXIFI_STATUS_UNSUPPORTED_TAG, [](auto& one) { one.tag = 7; }),
        fault("no shape", kShape, ONNXIFI_STATUS_INVALID_SHAPE, [](auto& one) { one.shape = nullptr; }),
        fault("extent 0", kShape, ONNXIFI_STATUS_INVALID_SHAPE, [](auto& one) { one.shape = kZero; }),
        fault("rank", kShape, ONNXIFI_STATUS_INVALID_SHAPE, [](auto& one) { one.dimensions = 1u << 30; }),
        fault("data type 0", kDtype, ONNXIFI_STATUS_INVALID_DATATYPE, [](auto& one) { one.dataType = 0; }),
        fault("data type 9", kDtype, ONNXIFI_STATUS_INVALID_DATATYPE, [](auto& one) { one.dataType = 9; }),
        fault("memory type", kMemory, ONNXIFI_STATUS_INVALID_MEMORY_TYPE, [](auto& one) { one.memoryType = 3; }),
        fault("NULL memory", kAddress, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION, [](auto& one) { one.buffer = 0; }),
    };
  }
  // The faults of the lists of onnxSetGraphIO, which are checked after its pointers.
  static Faults of_locations() {
    static const uint64_t kFour[] = {4};
    Faults result;
    const auto add = [&](const Faults& more) { result.insert(result.end(), more.begin(), more.end()); };
    add(of_descriptor("first input: ", &Arguments::inputs, 0, 0));
    add(of_descriptor("second input: ", &Arguments::inputs, 1, kSecond));
    add(of_descriptor("output: ", &Arguments::outputs, 0, kOutput));
    add({
        {"unknown name", kName, ONNXIFI_STATUS_INVALID_NAME, [](auto& call) { call.inputs[0].name = "z"; }},
        {"name twice", kName | kSecond, ONNXIFI_STATUS_INVALID_NAME, [](auto& call) { call.inputs[1].name = "a"; }},
        {"missing input", kName | kSecond, ONNXIFI_STATUS_UNIDENTIFIED_NAME,
         [](auto& call) { call.inputs.pop_back(); }},
        {"unknown output", kOutput, ONNXIFI_STATUS_INVALID_NAME, [](auto& call) { call.outputs[0].name = "z"; }},
        {"no output", kOutput, ONNXIFI_STATUS_UNIDENTIFIED_NAME, [](auto& call) { call.outputs.clear(); }},
        {"other extent", kShape, ONNXIFI_STATUS_MISMATCHING_SHAPE, [](auto& call) { call.inputs[0].shape = kFour; }},
        {"other rank", kShape, ONNXIFI_STATUS_MISMATCHING_SHAPE, [](auto& call) { call.inputs[0].dimensions = 0; }},
        {"other data type", kDtype, ONNXIFI_STATUS_MISMATCHING_DATATYPE,
         [](auto& call) { call.inputs[0].dataType = ONNXIFI_DATATYPE_INT32; }},
        {"second input: other data type", kSecond, ONNXIFI_STATUS_MISMATCHING_DATATYPE,
         [](auto& call) { call.inputs[1].dataType = ONNXIFI_DATATYPE_INT32; }},
        {"output: other rank", kOutput, ONNXIFI_STATUS_MISMATCHING_SHAPE,
         [](auto& call) { call.outputs[0].dimensions = 0; }},
        {"other memory type", kMemory, ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE,
         [](auto& call) { call.inputs[0].memoryType = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER; }},
        {"output: other memory type", kOutput, ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE,
         [](auto& call) { call.outputs[0].memoryType = ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D; }},
    });
    return result;
  }
  Faults of_model() {
    return {
        {"size 0", kModel, ONNXIFI_STATUS_INVALID_SIZE, [](auto& call) { call.model = call.model.substr(0, 0); }},
        {"garbage", kModel, ONNXIFI_STATUS_INVALID_PROTOBUF, [](auto& call) { call.model = "garbage"; }},
        {"cut model", kModel, ONNXIFI_STATUS_INVALID_PROTOBUF, [](auto& call) { call.model.remove_suffix(1); }},
        {"wrong model", kModel, ONNXIFI_STATUS_INVALID_MODEL, [this](auto& call) { call.model = wrong_; }},
    };
  }
  Arguments locations() {
    Arguments right{graph_};
    right.inputs = {descriptor("a", a_), descriptor("b", b_)};
    right.outputs = {descriptor("c", c_)};
    right.before = fence(ready_);
    return right;
  }
  static const onnxTensorDescriptorV1* data(bool has, const Descriptors& list) {
    static const onnxTensorDescriptorV1 kNone{};
    return !has ? nullptr : list.empty() ? &kNone : list.data();
  }
  static uint32_t count(const Descriptors& list) { return static_cast<uint32_t>(list.size()); }
  static onnxStatus finish(const onnxMemoryFenceV1& after) {
    const onnxStatus status = onnxWaitEvent(after.event);
    EXPECT_EQ(onnxReleaseEvent(after.event), ONNXIFI_STATUS_SUCCESS);
    return status;
  }

  const std::string good_ = binary_model("Add", 13), newer_ = binary_model("Add", 99),
                    unknown_ = binary_model("Pow", 13),  // the null backend does not support Pow
      wrong_ = model_bytes({{"", 13}},
                           graph({node("Relu", {"x"}, {"y"})}, {}, {tensor_value("y", BP_DTYPE_FLOAT, {Dim(3)})}));
  std::vector<onnxBackendID> ids_;
  onnxBackendID id_ = nullptr;
  onnxBackend backend_ = nullptr, stale_backend_ = nullptr;
  onnxGraph graph_ = nullptr, stale_graph_ = nullptr;
  onnxEvent ready_ = nullptr, waiting_ = nullptr, stale_event_ = nullptr;
  float a_[3] = {1, 2, 3}, b_[3] = {10, 20, 30}, c_[3] = {};
  int calls_ = 0;
};

TEST_F(OnnxifiFaults, OfIds) {
  expect_first({{"no count", kSize, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_result = false; }},
                {"no list", kOutputs, ONNXIFI_STATUS_FALLBACK, [](auto& call) { call.has_outputs = false; }},
                {"a short list", kModel, ONNXIFI_STATUS_FALLBACK, [this](auto& call) { call.room = ids_.size() - 1; }}},
               Arguments{nullptr}, [&](Arguments& call) {
                 std::vector<onnxBackendID> list(call.room);
                 const onnxStatus status = onnxGetBackendIDs(call.has_outputs ? list.data() : nullptr,
                                                             call.has_result ? &call.room : nullptr);
                 if (call.has_result) {
                   EXPECT_EQ(call.room, ids_.size());
                 }
                 for (size_t i = 0; status == ONNXIFI_STATUS_SUCCESS && i < call.room; ++i)
                   EXPECT_EQ(onnxReleaseBackendID(list[i]), ONNXIFI_STATUS_SUCCESS);
                 return status;
               });
  expect_first(
      with_handles(id_, nullptr, ONNXIFI_STATUS_INVALID_ID,
                   {{"no size", kSize, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_result = false; }},
                    {"type -1", kDtype, ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE, [](auto& call) { call.info = -1; }},
                    {"type 9", kDtype, ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE, [](auto& call) { call.info = 9; }},
                    {"type 99", kDtype, ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE, [](auto& call) { call.info = 99; }},
                    {"no value", kOutputs, ONNXIFI_STATUS_FALLBACK, [](auto& call) { call.has_outputs = false; }},
                    {"a short value", kModel, ONNXIFI_STATUS_FALLBACK, [](auto& call) { call.room = 3; }}}),
      Arguments{id_}, [](Arguments& call) {
        std::vector<char> value(call.room);
        return onnxGetBackendInfo(call.handle, call.info, call.has_outputs ? value.data() : nullptr,
                                  call.has_result ? &call.room : nullptr);
      });
  Arguments right{id_};
  right.model = good_;
  Faults faults = {{"no model", kSize, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_model = false; }}};
  for (const Fault& one : of_model()) faults.push_back(one);
  faults.push_back(
      {"version", kModel, ONNXIFI_STATUS_UNSUPPORTED_VERSION, [this](auto& call) { call.model = newer_; }});
  faults.push_back(
      {"operator", kModel, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR, [this](auto& call) { call.model = unknown_; }});
  expect_first(with_handles(id_, nullptr, ONNXIFI_STATUS_INVALID_ID, faults), right, [](Arguments& call) {
    return onnxGetBackendCompatibility(call.handle, call.model.size(), call.has_model ? call.model.data() : nullptr);
  });
  expect_calls(120);
}

TEST_F(OnnxifiFaults, OfBackendsAndEvents) {
  static const uint64_t kInvalid[] = {ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION, 17, 0},
                        kLevel[] = {ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL, 0, 0},
                        kBoth[] = {99, 1, ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION, 17, 0}, kUnknown[] = {99, 1, 0};
  const Fault no_result = {"no result", kOutputs, ONNXIFI_STATUS_INVALID_POINTER,
                           [](auto& call) { call.has_result = false; }};
  const auto property = [](const char* what, onnxStatus status, const uint64_t* list) {
    return Fault{what, kProperties, status, [list](Arguments& call) { call.properties = list; }};
  };
  expect_first(with_handles(id_, nullptr, ONNXIFI_STATUS_INVALID_ID,
                            {no_result, property("value", ONNXIFI_STATUS_INVALID_PROPERTY, kInvalid),
                             property("level", ONNXIFI_STATUS_INVALID_PROPERTY, kLevel),
                             property("unknown, then a value", ONNXIFI_STATUS_INVALID_PROPERTY, kBoth),
                             property("unknown", ONNXIFI_STATUS_UNSUPPORTED_PROPERTY, kUnknown)}),
               Arguments{id_}, [&](Arguments& call) {
                 onnxBackend made = this;
                 const onnxStatus status =
                     onnxInitBackend(call.handle, call.properties, call.has_result ? &made : nullptr);
                 if (status == ONNXIFI_STATUS_SUCCESS) {
                   EXPECT_EQ(onnxReleaseBackend(made), ONNXIFI_STATUS_SUCCESS);
                 } else if (call.has_result) {
                   EXPECT_EQ(made, nullptr);
                 }
                 return status;
               });
  expect_first(with_handles(backend_, stale_backend_, ONNXIFI_STATUS_INVALID_BACKEND, {no_result}), Arguments{backend_},
               [&](Arguments& call) {
                 onnxEvent made = this;
                 const onnxStatus status = onnxInitEvent(call.handle, call.has_result ? &made : nullptr);
                 if (status == ONNXIFI_STATUS_SUCCESS) {
                   EXPECT_EQ(onnxReleaseEvent(made), ONNXIFI_STATUS_SUCCESS);
                 } else if (call.has_result) {
                   EXPECT_EQ(made, nullptr);
                 }
                 return status;
               });
  expect_first(with_handles(waiting_, stale_event_, ONNXIFI_STATUS_INVALID_EVENT, {no_result}), Arguments{waiting_},
               [](Arguments& call) {
                 onnxEventState state = ONNXIFI_EVENT_STATE_SIGNALLED;
                 const onnxStatus status = onnxGetEventState(call.handle, call.has_result ? &state : nullptr);
                 if (call.has_result) {
                   EXPECT_EQ(state, status == ONNXIFI_STATUS_SUCCESS ? ONNXIFI_EVENT_STATE_NONSIGNALLED
                                                                     : ONNXIFI_EVENT_STATE_INVALID);
                 }
                 return status;
               });
  for (const auto& [what, handle] : wrong_handles(ready_, stale_event_)) {
    EXPECT_EQ(onnxSignalEvent(handle), ONNXIFI_STATUS_INVALID_EVENT) << what;
    EXPECT_EQ(onnxWaitEvent(handle), ONNXIFI_STATUS_INVALID_EVENT) << what;
    EXPECT_EQ(onnxReleaseEvent(handle), ONNXIFI_STATUS_INVALID_EVENT) << what;
    calls_ += 3;
  }
  EXPECT_EQ(onnxSignalEvent(ready_), ONNXIFI_STATUS_INVALID_STATE);
  for (const auto& [what, handle] : wrong_handles(backend_, stale_backend_))
    EXPECT_EQ(onnxReleaseBackend(handle), ONNXIFI_STATUS_INVALID_BACKEND) << what;
  for (const auto& [what, handle] : wrong_handles(graph_, stale_graph_))
    EXPECT_EQ(onnxReleaseGraph(handle), ONNXIFI_STATUS_INVALID_GRAPH) << what;
  for (const auto& [what, handle] : wrong_handles(id_, nullptr))
    EXPECT_EQ(onnxReleaseBackendID(handle), ONNXIFI_STATUS_INVALID_ID) << what;
  expect_calls(80);
}

TEST_F(OnnxifiFaults, OfGraphs) {
  static const uint64_t kUnknown[] = {5, 1, 0}, kFour[] = {4};
  Faults faults = {
      {"no model", kModel, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_model = false; }},
      {"no result", kOutputs, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_result = false; }},
      {"no weights", kWeights, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_weights = false; }},
  };
  const auto add = [&](const Faults& more) { faults.insert(faults.end(), more.begin(), more.end()); };
  add(of_model());
  add(of_descriptor("weight: ", &Arguments::weights, 0, 0));
  add({{"memory type of another device", kMemory, ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE,
        [](auto& call) { call.weights[0].memoryType = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER; }},
       {"no name", kName, ONNXIFI_STATUS_INVALID_NAME, [](auto& call) { call.weights[0].name = nullptr; }},
       {"property", kProperties, ONNXIFI_STATUS_UNSUPPORTED_PROPERTY, [](auto& call) { call.properties = kUnknown; }},
       {"version", kModel, ONNXIFI_STATUS_UNSUPPORTED_VERSION, [this](auto& call) { call.model = newer_; }},
       {"unknown name", kName, ONNXIFI_STATUS_INVALID_NAME, [](auto& call) { call.weights[0].name = "z"; }},
       {"other extent", kShape, ONNXIFI_STATUS_MISMATCHING_SHAPE, [](auto& call) { call.weights[0].shape = kFour; }},
       {"other data type", kDtype, ONNXIFI_STATUS_MISMATCHING_DATATYPE,
        [](auto& call) { call.weights[0].dataType = ONNXIFI_DATATYPE_INT32; }},
       {"operator", kModel, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR, [this](auto& call) { call.model = unknown_; }}});
  const float four[4] = {};
  Arguments right{backend_};
  right.model = good_;
  right.weights = {descriptor("b", four)};
  expect_first(
      with_handles(backend_, stale_backend_, ONNXIFI_STATUS_INVALID_BACKEND, faults), right, [&](Arguments& call) {
        onnxGraph made = this;
        const onnxStatus status =
            onnxInitGraph(call.handle, call.properties, call.model.size(), call.has_model ? call.model.data() : nullptr,
                          count(call.weights), data(call.has_weights, call.weights), call.has_result ? &made : nullptr);
        if (status == ONNXIFI_STATUS_SUCCESS) {
          EXPECT_EQ(onnxReleaseGraph(made), ONNXIFI_STATUS_SUCCESS);
        } else if (call.has_result) {
          EXPECT_EQ(made, nullptr);
        }
        return status;
      });
  expect_calls(600);
}

TEST_F(OnnxifiFaults, OfLocations) {
  Faults faults = {
      {"no inputs", kInputs, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_inputs = false; }},
      {"no outputs", kOutputs, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_outputs = false; }}};
  for (const Fault& one : of_locations()) faults.push_back(one);
  expect_first(with_handles(graph_, stale_graph_, ONNXIFI_STATUS_INVALID_GRAPH, faults), locations(),
               [](Arguments& call) {
                 return onnxSetGraphIO(call.handle, count(call.inputs), data(call.has_inputs, call.inputs),
                                       count(call.outputs), data(call.has_outputs, call.outputs));
               });
  expect_calls(600);
}

Fault fence_fault(const char* what, uint32_t part, onnxStatus status, onnxMemoryFenceV1 Arguments::*which,
                  const std::function<void(onnxMemoryFenceV1&)>& change) {
  return {what, part, status, [=](Arguments& call) { change(call.*which); }};
}

Faults of_fence(onnxMemoryFenceV1 Arguments::*which, uint32_t tag, uint32_t type) {
  return {
      fence_fault("tag of a fence", tag, ONNXIFI_STATUS_UNSUPPORTED_TAG, which, [](auto& one) { one.tag = 7; }),
      fence_fault("implicit fence", type, ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE, which,
                  [](auto& one) { one.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT; }),
      fence_fault("type of a fence", type, ONNXIFI_STATUS_INVALID_FENCE_TYPE, which, [](auto& one) { one.type = 77; })};
}

TEST_F(OnnxifiFaults, OfRuns) {
  Faults faults;
  for (const Fault& one : of_fence(&Arguments::before, kBeforeTag, kBeforeType)) faults.push_back(one);
  for (const Fault& one : of_fence(&Arguments::after, kAfterTag, kAfterType)) faults.push_back(one);
  for (const auto& [what, handle] : wrong_handles(ready_, stale_event_))
    faults.push_back(fence_fault(what.c_str(), kBeforeEvent, ONNXIFI_STATUS_INVALID_EVENT, &Arguments::before,
                                 [handle = handle](auto& one) { one.event = handle; }));
  faults.push_back(
      {"no locations", kInputs, ONNXIFI_STATUS_UNIDENTIFIED_NAME, [](auto& call) { call.is_io_set = false; }});
  const Faults pointers = {
      {"no input fence", kBefore, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_before = false; }},
      {"no output fence", kAfter, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_after = false; }}};
  expect_first(with_handles(graph_, stale_graph_, ONNXIFI_STATUS_INVALID_GRAPH, faults, pointers), locations(),
               [&](Arguments& call) {
                 EXPECT_EQ(onnxSetGraphIO(graph_, 2, call.inputs.data(), call.is_io_set ? 1 : 0, call.outputs.data()),
                           call.is_io_set ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_UNIDENTIFIED_NAME);
                 const onnxStatus status = onnxRunGraph(call.handle, call.has_before ? &call.before : nullptr,
                                                        call.has_after ? &call.after : nullptr);
                 return status == ONNXIFI_STATUS_SUCCESS ? finish(call.after) : status;
               });
  expect_calls(600);
}

TEST_F(OnnxifiFaults, OfRunsWithLocations) {
  Faults faults = {
      {"no inputs", kInputs, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_inputs = false; }},
      {"no outputs", kOutputs, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_outputs = false; }},
      {"no output fence", kAfter, ONNXIFI_STATUS_INVALID_POINTER, [](auto& call) { call.has_after = false; }}};
  for (const Fault& one : of_fence(&Arguments::after, kAfterTag, kAfterType)) faults.push_back(one);
  for (const Fault& one : of_locations()) faults.push_back(one);
  expect_first(with_handles(graph_, stale_graph_, ONNXIFI_STATUS_INVALID_GRAPH, faults), locations(),
               [](Arguments& call) {
                 const onnxStatus status = onnxSetIOAndRunGraph(
                     call.handle, count(call.inputs), data(call.has_inputs, call.inputs), count(call.outputs),
                     data(call.has_outputs, call.outputs), call.has_after ? &call.after : nullptr);
                 return status == ONNXIFI_STATUS_SUCCESS ? finish(call.after) : status;
               });
  expect_calls(600);
}

}  // namespace
