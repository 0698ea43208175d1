// SPDX-License-Identifier: Apache-2.0
// Test code: a stand-in for cuDNN's graph API that computes convolutions by plain loops (convolution.h). It supports
// the chain convolution, + c, + bias, Relu, and like cuDNN fuses c and Relu only with a bias. It refuses calls that the
// real library could not execute correctly: with descriptors that are destroyed or not finalized, attributes of a wrong
// type, extents that do not fit, pointers that are not memory or not aligned, a workspace that overlaps an operand.
#include "driver/cudnn.h"

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "testing/standin/convolution.h"
#include "testing/standin/hooks.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace standin;
namespace dnn = backplane::cuda::dnn;

// ---- engines --------------------------------------------------------------------------------------------------------

constexpr uint64_t kWorkspace = 4096;
// The delay of all engines but the fastest: more than a busy machine delays every round of a measurement.
constexpr auto kSlowness = std::chrono::milliseconds(10);

// The heuristic lists the engines in this order. Number 3 is the fastest; the backend must never use numbers 0 and 1.
struct Engine {
  int number;
  std::optional<dnn::NumericalNote> note;
  uint64_t workspace;
};
constexpr Engine kEngines[] = {{0, dnn::kNondeterministic, 0},
                               {1, dnn::kReducesInLessPrecision, 0},
                               {2, std::nullopt, 0},
                               {3, dnn::kWinograd4x4, kWorkspace},
                               {4, dnn::kTensorCore, 0}};

// ---- descriptors ----------------------------------------------------------------------------------------------------

struct Value {
  dnn::AttributeType type;
  int64_t count;
  std::string bytes;
};
struct Descriptor {
  dnn::DescriptorType type;
  bool finalized = false;
  std::map<dnn::Attribute, Value> values;
  std::shared_ptr<const Convolution> convolution;  // of graphs, and of all descriptors made from them
  const Engine* engine = nullptr;                  // of engines, configurations and plans

  template <class T>
  bool read(dnn::Attribute attribute, dnn::AttributeType type, std::vector<T>& out) const {
    const auto at = values.find(attribute);
    if (at == values.end() || at->second.type != type) return false;
    out.resize(static_cast<size_t>(at->second.count));
    if (at->second.bytes.size() != out.size() * sizeof(T)) return false;
    std::memcpy(out.data(), at->second.bytes.data(), at->second.bytes.size());
    return true;
  }
  template <class T>
  bool read(dnn::Attribute attribute, dnn::AttributeType type, T& out) const {
    const auto at = values.find(attribute);
    if (at == values.end() || at->second.type != type || at->second.bytes.size() != sizeof out) return false;
    std::memcpy(&out, at->second.bytes.data(), sizeof out);
    return true;
  }
};

std::recursive_mutex& mutex = *new std::recursive_mutex;
std::set<const void*>& objects = *new std::set<const void*>;

Descriptor* known(const void* raw, std::optional<dnn::DescriptorType> type = {}) {
  const std::lock_guard lock(mutex);
  if (objects.count(raw) == 0) return nullptr;
  auto* found = static_cast<Descriptor*>(const_cast<void*>(raw));
  return type && (found->type != *type || !found->finalized) ? nullptr : found;
}

// The finalized descriptor that is the value of an attribute of `from`, or NULL.
const Descriptor* named(const Descriptor& from, dnn::Attribute attribute, dnn::DescriptorType type) {
  dnn::RawDescriptor raw = nullptr;
  return from.read(attribute, dnn::kTypeDescriptor, raw) ? known(raw, type) : nullptr;
}

size_t bytes_of(dnn::AttributeType type) {
  switch (type) {
    case dnn::kTypeBoolean:
    case dnn::kTypeChar:
      return 1;
    case dnn::kTypeHandle:
    case dnn::kTypeInt64:
    case dnn::kTypePointer:
    case dnn::kTypeDescriptor:
      return 8;
    default:
      return 4;
  }
}

bool read_tensor(const Descriptor* from, DenseTensor& out, bool& is_virtual) {
  Extents strides;
  dnn::DataType type{};
  if (from == nullptr || !from->read(dnn::kTensorExtents, dnn::kTypeInt64, out.extents) ||
      !from->read(dnn::kTensorStrides, dnn::kTypeInt64, strides) ||
      !from->read(dnn::kTensorType, dnn::kTypeDataType, type) || !from->read(dnn::kTensorId, dnn::kTypeInt64, out.id) ||
      !from->read(dnn::kTensorAlignment, dnn::kTypeInt64, out.alignment) ||
      !from->read(dnn::kTensorIsVirtual, dnn::kTypeBoolean, is_virtual) || strides.size() != out.extents.size())
    return false;
  int64_t step = 1;
  for (size_t d = strides.size(); d-- > 0; step *= out.extents[d])
    if (strides[d] != step || out.extents[d] < 1) return false;
  out.type = type == dnn::kF16 ? lt::kF16 : type == dnn::kBf16 ? lt::kBf16 : lt::kF32;
  return true;
}

// Adds one operation of a graph to `out`. `sum` is the result tensor of the operation before, or NULL; it is set to the
// result tensor of this operation. Returns false if the stand-in does not support the operation at this point.
bool read_operation(const void* raw, Convolution& out, const Descriptor*& sum) {
  bool is_virtual = false;
  if (const Descriptor* forward = known(raw, dnn::kConvolutionForward); forward != nullptr) {
    const Descriptor* window = named(*forward, dnn::kForwardConvolution, dnn::kConvolution);
    float alpha = 0, beta = 1;
    if (window == nullptr || sum != nullptr || !forward->read(dnn::kForwardAlpha, dnn::kTypeFloat, alpha) ||
        !forward->read(dnn::kForwardBeta, dnn::kTypeFloat, beta) || alpha != 1 || beta != 0)
      return false;
    sum = named(*forward, dnn::kForwardY, dnn::kTensor);
    return read_tensor(named(*forward, dnn::kForwardX, dnn::kTensor), out.x, is_virtual) && !is_virtual &&
           read_tensor(named(*forward, dnn::kForwardW, dnn::kTensor), out.w, is_virtual) && !is_virtual &&
           window->read(dnn::kConvolutionStrides, dnn::kTypeInt64, out.stride) &&
           window->read(dnn::kConvolutionDilations, dnn::kTypeInt64, out.dilation) &&
           window->read(dnn::kConvolutionPaddingBefore, dnn::kTypeInt64, out.before) &&
           window->read(dnn::kConvolutionPaddingAfter, dnn::kTypeInt64, out.after);
  }
  const Descriptor* step = known(raw, dnn::kPointwiseOperation);
  if (step == nullptr || sum == nullptr || out.relu || named(*step, dnn::kOperationX, dnn::kTensor) != sum)
    return false;
  const Descriptor* how = named(*step, dnn::kOperationPointwise, dnn::kPointwise);
  dnn::PointwiseMode mode{};
  if (how == nullptr || !how->read(dnn::kPointwiseMode, dnn::kTypePointwiseMode, mode)) return false;
  sum = named(*step, dnn::kOperationY, dnn::kTensor);
  if (mode == dnn::kReluForward) return out.relu = true;
  DenseTensor operand;
  if (!read_tensor(named(*step, dnn::kOperationB, dnn::kTensor), operand, is_virtual) || is_virtual) return false;
  const bool is_bias = operand.count() == static_cast<uint64_t>(operand.extents.at(1));
  DenseTensor& place = is_bias && out.bias.count() == 0 ? out.bias : out.c;
  if (place.count() != 0 || (!is_bias && out.bias.count() != 0)) return false;
  place = std::move(operand);
  return true;
}

dnn::Status finalize_graph(Descriptor& graph) {
  std::vector<dnn::RawDescriptor> operations;
  if (!graph.read(dnn::kGraphOperations, dnn::kTypeDescriptor, operations)) return dnn::kBadParameter;
  Convolution all;
  const Descriptor* sum = nullptr;
  for (const dnn::RawDescriptor each : operations)
    if (!read_operation(each, all, sum)) return dnn::kBadParameter;
  bool is_virtual = true;
  if (!read_tensor(sum, all.y, is_virtual) || is_virtual || !all.is_consistent()) return dnn::kBadParameter;
  graph.convolution = std::make_shared<const Convolution>(std::move(all));
  return dnn::kSuccess;
}

// Whether the library can fuse the chain.
bool is_fused(const Convolution& what) {
  return what.bias.count() != 0 || (what.c.count() == 0 && !what.relu);
}

dnn::Status finalize(Descriptor& own) {
  switch (own.type) {
    case dnn::kTensor: {
      DenseTensor tensor;
      bool is_virtual = false;
      return read_tensor(&own, tensor, is_virtual) ? dnn::kSuccess : dnn::kBadParameter;
    }
    case dnn::kGraph:
      return finalize_graph(own);
    case dnn::kEngineHeuristic: {
      const Descriptor* graph = named(own, dnn::kHeuristicGraph, dnn::kGraph);
      if (graph == nullptr) return dnn::kBadParameter;
      own.convolution = graph->convolution;
      return dnn::kSuccess;
    }
    case dnn::kPlan: {
      dnn::Handle handle = nullptr;
      const Descriptor* config = named(own, dnn::kPlanConfig, dnn::kEngineConfig);
      if (config == nullptr || !own.read(dnn::kPlanHandle, dnn::kTypeHandle, handle) || known(handle) == nullptr)
        return dnn::kBadParameter;
      own.convolution = config->convolution;
      own.engine = config->engine;
      return dnn::kSuccess;
    }
    default:
      return dnn::kSuccess;
  }
}

// ---- execution ------------------------------------------------------------------------------------------------------

struct Range {
  uint64_t begin, bytes;
  bool overlaps(const Range& other) const {
    return bytes != 0 && other.bytes != 0 && begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

// Reads the addresses of x, w, y, c and bias, and of the workspace. Returns false if one is missing or cannot be used
// as the plan uses it.
bool read_pointers(const Descriptor& plan, const Descriptor& pack, std::array<void*, 5>& out, void*& workspace) {
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  if (!pack.read(dnn::kPackIds, dnn::kTypeInt64, ids) || !pack.read(dnn::kPackPointers, dnn::kTypePointer, pointers) ||
      !pack.read(dnn::kPackWorkspace, dnn::kTypePointer, workspace) || ids.size() != pointers.size())
    return false;
  const Convolution& what = *plan.convolution;
  const DenseTensor* tensors[] = {&what.x, &what.w, &what.y, &what.c, &what.bias};
  const Range work{reinterpret_cast<uint64_t>(workspace), plan.engine->workspace};
  std::array<Range, 5> ranges{};
  for (size_t i = 0; i < 5; ++i) {
    if (tensors[i]->count() == 0) continue;
    for (size_t j = 0; j < ids.size(); ++j)
      if (ids[j] == tensors[i]->id) out[i] = pointers[j];
    ranges[i] = {reinterpret_cast<uint64_t>(out[i]), tensors[i]->bytes()};
    if (!is_memory(ranges[i].begin, ranges[i].bytes) || ranges[i].overlaps(work)) return false;
    if (ranges[i].begin % static_cast<uint64_t>(tensors[i]->alignment) != 0) return false;
  }
  for (const size_t i : {0u, 1u, 4u})
    if (ranges[2].overlaps(ranges[i])) return false;
  return work.bytes == 0 || is_memory(work.begin, work.bytes);
}

CUstream& stream_of(Descriptor& handle) {
  static auto& streams = *new std::map<const void*, CUstream>;
  return streams[&handle];
}

constexpr auto kHandleType = static_cast<dnn::DescriptorType>(-1);

dnn::Status create(void** out, dnn::DescriptorType type, const char* kind) {
  const std::lock_guard lock(mutex);
  auto* made = new Descriptor{type, type == kHandleType, {}, {}, nullptr};
  objects.insert(made);
  count(kind, 1);
  *out = made;
  return dnn::kSuccess;
}

dnn::Status destroy(void* raw, const char* kind) {
  const std::lock_guard lock(mutex);
  if (objects.erase(raw) == 0) return dnn::kBadParameter;
  delete static_cast<Descriptor*>(raw);
  count(kind, -1);
  return dnn::kSuccess;
}

#define CALLED() \
  if (const int refused = called(__func__); refused != 0) return refused

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the library's own names
EXPORT size_t cudnnGetVersion() {
  return 91900;
}

EXPORT const char* cudnnGetErrorString(dnn::Status status) {
  return status == dnn::kHostAllocationFailed ? "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
         : status == dnn::kBadParameter       ? "CUDNN_STATUS_BAD_PARAM"
                                              : "an error of the stand-in for cuDNN";
}

EXPORT void cudnnGetLastErrorString(char* text, size_t bytes) {
  if (bytes != 0) *text = 0;
}

EXPORT dnn::Status cudnnCreate(dnn::Handle* out) {
  CALLED();
  return has_context() ? create(out, kHandleType, "cudnn") : dnn::Status{dnn::kNotInitialized};
}

EXPORT dnn::Status cudnnDestroy(dnn::Handle handle) {
  return destroy(handle, "cudnn");
}

EXPORT dnn::Status cudnnSetStream(dnn::Handle handle, CUstream stream) {
  CALLED();
  const std::lock_guard lock(mutex);
  Descriptor* own = known(handle, kHandleType);
  if (own == nullptr) return dnn::kBadParameter;
  stream_of(*own) = stream;
  return dnn::kSuccess;
}

EXPORT dnn::Status cudnnBackendCreateDescriptor(dnn::DescriptorType type, dnn::RawDescriptor* out) {
  CALLED();
  return create(out, type, "descriptors");
}

EXPORT dnn::Status cudnnBackendDestroyDescriptor(dnn::RawDescriptor raw) {
  return destroy(raw, "descriptors");
}

EXPORT dnn::Status cudnnBackendSetAttribute(dnn::RawDescriptor raw, dnn::Attribute attribute, dnn::AttributeType type,
                                            int64_t count, const void* values) {
  CALLED();
  const std::lock_guard lock(mutex);
  Descriptor* own = known(raw);
  if (own == nullptr || own->finalized || count < 0 || values == nullptr) return dnn::kBadParameter;
  own->values[attribute] = {
      type, count, {static_cast<const char*>(values), static_cast<size_t>(count) * bytes_of(type)}};
  return dnn::kSuccess;
}

EXPORT dnn::Status cudnnBackendFinalize(dnn::RawDescriptor raw) {
  CALLED();
  const std::lock_guard lock(mutex);
  Descriptor* own = known(raw);
  if (own == nullptr || own->finalized) return dnn::kBadParameter;
  const dnn::Status status = finalize(*own);
  own->finalized = status == dnn::kSuccess;
  return status;
}

EXPORT dnn::Status cudnnBackendGetAttribute(dnn::RawDescriptor raw, dnn::Attribute attribute, dnn::AttributeType,
                                            int64_t capacity, int64_t* found, void* values) {
  CALLED();
  const std::lock_guard lock(mutex);
  Descriptor* own = known(raw);
  if (own == nullptr || !own->finalized || found == nullptr) return dnn::kBadParameter;
  *found = 0;
  const auto fill = [&](dnn::RawDescriptor out, const Engine* engine) {
    Descriptor* target = known(out);
    if (target == nullptr) return dnn::Status{dnn::kBadParameter};
    target->convolution = own->convolution;
    target->engine = engine;
    target->finalized = true;
    ++*found;
    return dnn::Status{dnn::kSuccess};
  };
  auto* const descriptors = static_cast<dnn::RawDescriptor*>(values);
  switch (attribute) {
    case dnn::kHeuristicResults:
      if (!is_fused(*own->convolution)) return dnn::kSuccess;
      for (const Engine& each : kEngines)
        if (*found < capacity && fill(descriptors[*found], &each) != dnn::kSuccess) return dnn::kBadParameter;
      return dnn::kSuccess;
    case dnn::kConfigEngine:
      return fill(descriptors[0], own->engine);
    case dnn::kEngineNumericalNotes:
      if (!own->engine->note) return dnn::kSuccess;
      std::memcpy(values, &*own->engine->note, sizeof *own->engine->note);
      *found = 1;
      return dnn::kSuccess;
    case dnn::kPlanWorkspace:
      std::memcpy(values, &own->engine->workspace, sizeof own->engine->workspace);
      *found = 1;
      return dnn::kSuccess;
    default:
      return dnn::kBadParameter;
  }
}

EXPORT dnn::Status cudnnBackendExecute(dnn::Handle handle, dnn::RawDescriptor raw_plan, dnn::RawDescriptor raw_pack) {
  CALLED();
  const std::lock_guard lock(mutex);
  Descriptor* own = known(handle, kHandleType);
  const Descriptor *plan = known(raw_plan, dnn::kPlan), *pack = known(raw_pack, dnn::kVariantPack);
  std::array<void*, 5> pointers{};
  void* workspace = nullptr;
  if (!has_context() || own == nullptr || plan == nullptr || pack == nullptr ||
      !read_pointers(*plan, *pack, pointers, workspace))
    return dnn::kBadParameter;
  const Engine engine = *plan->engine;
  static_cast<void>(called(("engine " + std::to_string(engine.number)).c_str()));
  const bool enqueued = enqueue(stream_of(*own), [=, what = plan->convolution] {
    if (engine.workspace != 0) std::memset(workspace, 0xff, engine.workspace);
    what->compute_all(engine.note == dnn::kTensorCore && what->x.type == lt::kF32, pointers);
    if (engine.number != 3) std::this_thread::sleep_for(kSlowness);
  });
  return enqueued ? dnn::kSuccess : dnn::kBadParameter;
}
// NOLINTEND(readability-identifier-naming)
