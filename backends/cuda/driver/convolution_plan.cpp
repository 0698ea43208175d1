// SPDX-License-Identifier: Apache-2.0
#include "driver/convolution_plan.h"

#include <deque>
#include <optional>

#include "backplane/sdk/fence.hpp"

namespace backplane::cuda {
namespace {

using dnn::Descriptor;
using gpu::ConvolutionProblem;
using Extents = std::vector<int64_t>;

constexpr size_t kMostConfigs = 64;  // read from one heuristic; cuDNN 9.19 lists up to 40

std::optional<dnn::DataType> data_type(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_FLOAT:
      return dnn::kF32;
    case BP_DTYPE_FLOAT16:
      return dnn::kF16;
    case BP_DTYPE_BFLOAT16:
      return dnn::kBf16;
    default:
      return std::nullopt;
  }
}

// The spatial extents for cuDNN, which requires two or three: a one-dimensional problem gets a first extent of 1.
Extents spatial(const ConvolutionProblem& problem, const sdk::Spatial& extents) {
  return {extents.end() - (problem.window.dims == 3 ? 3 : 2), extents.end()};
}

Extents with_channels(int64_t first, int64_t second, const Extents& rest) {
  Extents all{first, second};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

// Creates dense tensors of the problem's type, and virtual tensors: fp32 results that are not stored, because only the
// next operation reads them.
struct Tensors {
  dnn::DataType type;
  int64_t alignment;

  Descriptor operator()(int64_t id, const Extents& extents, bool is_virtual = false) const {
    Descriptor tensor(dnn::kTensor, "tensor of a convolution");
    Extents strides(extents.size(), 1);
    for (size_t d = extents.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * extents[d];
    tensor.set(dnn::kTensorType, dnn::kTypeDataType, is_virtual ? dnn::kF32 : type);
    tensor.set(dnn::kTensorExtents, dnn::kTypeInt64, extents);
    tensor.set(dnn::kTensorStrides, dnn::kTypeInt64, strides);
    tensor.set(dnn::kTensorId, dnn::kTypeInt64, id);
    tensor.set(dnn::kTensorAlignment, dnn::kTypeInt64, alignment);
    tensor.set(dnn::kTensorIsVirtual, dnn::kTypeBoolean, is_virtual);
    tensor.finalize();
    return tensor;
  }
};

Descriptor window_of(const ConvolutionProblem& problem) {
  const sdk::Window& w = problem.window;
  Descriptor window(dnn::kConvolution, "window of a convolution");
  window.set(dnn::kConvolutionPrecision, dnn::kTypeDataType, dnn::kF32);
  window.set(dnn::kConvolutionMode, dnn::kTypeConvolutionMode, dnn::kCrossCorrelation);
  const Extents strides = spatial(problem, w.stride);
  window.set(dnn::kConvolutionSpatialDims, dnn::kTypeInt64, static_cast<int64_t>(strides.size()));
  window.set(dnn::kConvolutionStrides, dnn::kTypeInt64, strides);
  window.set(dnn::kConvolutionDilations, dnn::kTypeInt64, spatial(problem, w.dilation));
  window.set(dnn::kConvolutionPaddingBefore, dnn::kTypeInt64, spatial(problem, w.begin));
  window.set(dnn::kConvolutionPaddingAfter, dnn::kTypeInt64, spatial(problem, w.end));
  window.finalize();
  return window;
}

Descriptor forward(const Descriptor& window, const Descriptor& x, const Descriptor& w, const Descriptor& y) {
  Descriptor operation(dnn::kConvolutionForward, "convolution");
  operation.set(dnn::kForwardConvolution, window);
  operation.set(dnn::kForwardX, x);
  operation.set(dnn::kForwardW, w);
  operation.set(dnn::kForwardY, y);
  operation.set(dnn::kForwardAlpha, dnn::kTypeFloat, 1.0f);
  operation.set(dnn::kForwardBeta, dnn::kTypeFloat, 0.0f);
  operation.finalize();
  return operation;
}

Descriptor pointwise_mode(dnn::PointwiseMode mode) {
  Descriptor what(dnn::kPointwise, "step after a convolution");
  what.set(dnn::kPointwiseMode, dnn::kTypePointwiseMode, mode);
  what.set(dnn::kPointwisePrecision, dnn::kTypeDataType, dnn::kF32);
  what.finalize();
  return what;
}

// `b` is NULL for a step of one operand.
Descriptor pointwise(const Descriptor& mode, const Descriptor& x, const Descriptor* b, const Descriptor& y) {
  Descriptor operation(dnn::kPointwiseOperation, "step after a convolution");
  operation.set(dnn::kOperationPointwise, mode);
  operation.set(dnn::kOperationX, x);
  if (b != nullptr) operation.set(dnn::kOperationB, *b);
  operation.set(dnn::kOperationY, y);
  operation.finalize();
  return operation;
}

// Convolution, sum with c, sum with the bias, Relu: those that the problem has, in the order in which cuDNN fuses them.
class Graph {
 public:
  Graph(const PlanTarget& target, const ConvolutionProblem& problem, const Tensors& tensors)
      : graph_(dnn::kGraph, "graph of a convolution") {
    const Extents out = with_channels(problem.batch, problem.maps, spatial(problem, problem.window.out));
    int left = int{problem.has_c} + int{problem.has_bias} + int{problem.relu};
    const auto result = [&]() -> const Descriptor& {
      constexpr int64_t kFirstVirtual = 100;
      return left == 0 ? keep(tensors(gpu::kLibraryY, out)) : keep(tensors(kFirstVirtual + left, out, true));
    };
    const Descriptor& x = keep(
        tensors(gpu::kLibraryA, with_channels(problem.batch, problem.channels, spatial(problem, problem.window.in))));
    const Descriptor& w = keep(tensors(gpu::kLibraryB, with_channels(problem.maps, problem.channels / problem.groups,
                                                                     spatial(problem, problem.window.kernel))));
    const Descriptor* y = &result();
    operations_.push_back(keep(forward(keep(window_of(problem)), x, w, *y)).get());
    const auto step = [&](dnn::PointwiseMode mode, const Descriptor* operand) {
      --left;
      const Descriptor& next = result();
      operations_.push_back(keep(pointwise(keep(pointwise_mode(mode)), *y, operand, next)).get());
      y = &next;
    };
    if (problem.has_c) step(dnn::kAdd, &keep(tensors(gpu::kLibraryC, out)));
    if (problem.has_bias) {
      Extents extents(out.size(), 1);
      extents[1] = problem.maps;
      step(dnn::kAdd, &keep(tensors(gpu::kLibraryBias, extents)));
    }
    if (problem.relu) step(dnn::kReluForward, nullptr);
    // cuDNN before 9.8 needs the handle, which later versions ignore.
    if (target.handle != nullptr) graph_.set(dnn::kGraphHandle, dnn::kTypeHandle, target.handle);
    graph_.set(dnn::kGraphOperations, dnn::kTypeDescriptor, operations_);
    graph_.finalize();
  }
  const Descriptor& get() const { return graph_; }

 private:
  const Descriptor& keep(Descriptor descriptor) { return parts_.emplace_back(std::move(descriptor)); }

  std::deque<Descriptor> parts_;  // a deque, so that references to its elements stay valid
  std::vector<dnn::RawDescriptor> operations_;
  Descriptor graph_;
};

// Whether the results of a configuration's engine are as exact as the problem requires, and the same in each run.
bool is_allowed(const Descriptor& config, const ConvolutionProblem& problem) {
  std::vector<Descriptor> engine;
  engine.emplace_back(dnn::kEngine, "engine of a convolution");
  std::vector<dnn::RawDescriptor> raw{engine.front().get()};
  if (config.fill(dnn::kConfigEngine, dnn::kTypeDescriptor, raw) != 1) return false;
  for (const auto note :
       engine.front().values<dnn::NumericalNote>(dnn::kEngineNumericalNotes, dnn::kTypeNumericalNote, 16)) {
    switch (note) {
      case dnn::kTensorCore:
        if (problem.dtype == BP_DTYPE_FLOAT && (problem.compute_types & BP_COMPUTE_TF32) == 0) return false;
        break;
      case dnn::kConvertsInputsDown:
      case dnn::kReducesInLessPrecision:
      case dnn::kNondeterministic:
      case dnn::kFft:
      case dnn::kWinograd6x6:
      case dnn::kWinograd13x13:
        return false;
      default:
        break;
    }
  }
  return true;
}

// The configurations that a heuristic lists, best first.
std::vector<Descriptor> configs_of(const PlanTarget& target, const Graph& graph, dnn::HeuristicMode mode) {
  Descriptor heuristic(dnn::kEngineHeuristic, "heuristic for a convolution");
  heuristic.set(dnn::kHeuristicGraph, graph.get());
  heuristic.set(dnn::kHeuristicMode, dnn::kTypeHeuristicMode, mode);
  if (target.handle == nullptr) heuristic.set(dnn::kHeuristicDevice, *target.device);
  heuristic.finalize();
  std::vector<Descriptor> all;
  std::vector<dnn::RawDescriptor> raw;
  for (size_t i = 0; i < kMostConfigs; ++i)
    raw.push_back(all.emplace_back(dnn::kEngineConfig, "configuration of a convolution").get());
  const size_t count = heuristic.fill(dnn::kHeuristicResults, dnn::kTypeDescriptor, raw);
  while (all.size() > count) all.pop_back();
  return all;
}

ConvolutionPlan plan_of(const PlanTarget& target, const Descriptor& config) {
  Descriptor plan(dnn::kPlan, "plan of a convolution");
  plan.set(dnn::kPlanConfig, config);
  if (target.handle != nullptr)
    plan.set(dnn::kPlanHandle, dnn::kTypeHandle, target.handle);
  else
    plan.set(dnn::kPlanDevice, *target.device);
  plan.finalize();
  const std::vector<int64_t> workspace = plan.values<int64_t>(dnn::kPlanWorkspace, dnn::kTypeInt64, 1);
  return {std::move(plan), static_cast<uint64_t>(workspace.at(0))};
}

}  // namespace

Descriptor described_device(const std::string& json) {
  Descriptor device(dnn::kDeviceProperties, "properties of a GPU");
  device.set(dnn::kDeviceJson, json);
  device.finalize();
  return device;
}

bool has_convolutions_of(bp_dtype_t dtype) {
  return data_type(dtype).has_value();
}

std::vector<ConvolutionPlan> convolution_plans(const PlanTarget& target, const ConvolutionProblem& problem, size_t most,
                                               uint64_t workspace, int64_t alignment) {
  const std::optional<dnn::DataType> type = data_type(problem.dtype);
  if (!type) throw sdk::Error(BP_UNSUPPORTED, "cuDNN does not compute " + problem.text());
  const Graph graph(target, problem, {*type, alignment});
  std::vector<ConvolutionPlan> all;
  std::optional<sdk::Error> refused;
  const auto note = [&](std::optional<sdk::Error> failure) {
    if (failure) refused = std::move(failure);
  };
  for (const dnn::HeuristicMode mode : {dnn::kModel, dnn::kFallback}) {
    if (!all.empty()) break;
    std::vector<Descriptor> configs;
    note(sdk::caught([&] { configs = configs_of(target, graph, mode); }));
    for (const Descriptor& config : configs) {
      if (all.size() == most) break;
      // A heuristic may list configurations from which no plan can be made for the device.
      note(sdk::caught([&] {
        if (!is_allowed(config, problem)) return;
        ConvolutionPlan plan = plan_of(target, config);
        if (plan.workspace_bytes <= workspace) all.push_back(std::move(plan));
      }));
    }
  }
  if (all.empty() && refused) throw sdk::Error(*refused);
  if (all.empty()) throw sdk::Error(BP_UNSUPPORTED, "cuDNN has no suitable plan for " + problem.text());
  return all;
}

}  // namespace backplane::cuda
