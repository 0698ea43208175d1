// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>
#include <utility>

#include "downgrade.h"
#include "program.h"
#include "status.h"

namespace onnxifi_backend {
namespace {

using namespace backplane::sdk;

// The first query of a model includes weights of up to this size: a library may need the values of shapes and axes.
constexpr uint64_t kSmallBytes = 64 * 1024;
constexpr size_t kMaxStatuses = 100'000, kMaxCached = size_t{1} << 20;

// Returns 128 bits: two hashes like FNV-1a, with different initial values and factors.
std::string hash_of(std::string_view bytes) {
  std::array<uint64_t, 2> hash = {0xcbf29ce484222325, 0x84222325cbf29ce4};
  for (const char c : bytes) {
    hash[0] = (hash[0] ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash[1] = (hash[1] ^ static_cast<unsigned char>(c)) * 0x10000000233;
  }
  return {reinterpret_cast<const char*>(hash.data()), sizeof hash};
}

}  // namespace

bool is_expressible(bp_dtype_t dtype) {
  return dtype >= BP_DTYPE_FLOAT && dtype <= BP_DTYPE_BFLOAT16 && dtype != BP_DTYPE_STRING && dtype != BP_DTYPE_BOOL;
}

Device::Device(const Backend& backend, const Library& library, onnxBackendID id, const BackendInfo& reported,
               Weights weights)
    : backplane::sdk::Device(backend), library_(library), id_(id), weights_(weights) {
  versions_.ir_version = reported.ir_version;
  versions_.opsets = reported.opsets;
  uint32_t& own = versions_.opsets[""];
  own = std::min(own, kNewestOpset);
  for (const auto& [domain, version] : versions_.opsets)
    opsets_.push_back(
        {text(domain), domain.empty() ? kNewestOpset : version, 0});  // newer forms are rewritten: downgrade.h
  const std::unique_lock<std::mutex> lock = library.guard();
  const onnxStatus status = library.functions().init_backend(id, nullptr, &backend_);
  if (!accepted(status)) throw error_of(status, "onnxInitBackend");
}

Device::~Device() {
  const std::unique_lock<std::mutex> lock = library_.guard();
  if (backend_ != nullptr) library_.functions().release_backend(backend_);
}

bp_opsets_t Device::opsets() {
  bp_opsets_t known{};
  known.ir_version = versions_.ir_version;
  known.opsets = opsets_.data();
  known.opset_count = static_cast<uint32_t>(opsets_.size());
  known.opset_stride = sizeof(bp_opset_t);
  return known;
}

void Device::health() {
  if (is_lost_) throw Error::device_lost("the ONNXIFI library reported its backend as unavailable");
}

void Device::check(onnxStatus status, std::string_view call) const {
  if (status == ONNXIFI_STATUS_SUCCESS) return;
  if (status == ONNXIFI_STATUS_BACKEND_UNAVAILABLE) is_lost_ = true;
  throw error_of(status, call);
}

// ---- coverage ------------------------------------------------------------------------------------------------------

// Why ONNXIFI cannot express the node or one of its values; empty if it can.
Device::Refusal Device::refusal_of(const Node& node) const {
  for (uint32_t i = 0; i < node.raw().attribute_count; ++i) {
    const bp_attribute_t& attribute = *bp_graph_attribute(node.graph(), node.raw().first_attribute + i);
    switch (attribute.type) {
      case BP_ATTR_GRAPH:
      case BP_ATTR_GRAPHS:
        return {BP_REASON_SUBGRAPH, "nodes with subgraphs are not passed to ONNXIFI libraries"};
      case BP_ATTR_TYPE:
      case BP_ATTR_TYPES:
      case BP_ATTR_SPARSE_TENSOR:
      case BP_ATTR_SPARSE_TENSORS:
        return {BP_REASON_ATTRIBUTE, "types and sparse tensors are not passed to ONNXIFI libraries"};
      default:
        break;
    }
  }
  const std::string domain(node.domain());
  if (!domain.empty() && versions_.opsets.count(domain) == 0)
    return {BP_REASON_OPERATOR, "the library reports no operator set of domain " + domain};
  const auto why_not = [](const Value& value) -> Refusal {
    if (!value) return {};
    const std::string name = "'" + std::string(value.name()) + "'";
    if (!value.is_tensor()) return {BP_REASON_DTYPE, name + " is not a tensor, and ONNXIFI has nothing else"};
    if (!value.has_static_shape()) return {BP_REASON_SHAPE, "the shape of " + name + " is not known before the run"};
    if (value.weight() != nullptr) {
      if (value.dtype() == BP_DTYPE_STRING)
        return {BP_REASON_DTYPE, name + " is a tensor of strings, which ONNXIFI does not have"};
      return {};
    }
    if (!is_expressible(value.dtype()))
      return {BP_REASON_DTYPE, name + " is " + std::string(backplane::view::dtype_name(value.dtype())) +
                                   ", which ONNXIFI does not have"};
    if (elements(value) == 0) return {BP_REASON_SHAPE, name + " has no elements, which ONNXIFI does not allow"};
    return {};
  };
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    if (Refusal refusal = why_not(node.input(i))) return refusal;
  }
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    if (Refusal refusal = why_not(node.output(i))) return refusal;
  }
  return {};
}

onnxStatus Device::query(const std::string& model) {
  const bool is_cached = model.size() <= kMaxCached;
  const std::string key = is_cached ? hash_of(model) : std::string();
  if (is_cached) {
    const std::lock_guard lock(mutex_);
    if (const auto known = statuses_.find(key); known != statuses_.end()) return known->second;
  }
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  {
    const std::unique_lock<std::mutex> lock = library_.guard();
    status = library_.functions().get_backend_compatibility(id_, model.size(), model.data());
  }
  if (status == ONNXIFI_STATUS_BACKEND_UNAVAILABLE) check(status, "onnxGetBackendCompatibility");
  if (is_cached && reason_of(status) != BP_REASON_MEMORY) {
    const std::lock_guard lock(mutex_);
    if (statuses_.size() < kMaxStatuses) statuses_.emplace(key, status);
  }
  return status;
}

// Queries with the small weights inside the model, then with all weights inside, then with all outside, until the
// library accepts one of these forms: only its response shows which forms it supports. The option `weights` excludes
// some forms. If the library accepts none, returns why it refused the first.
Device::Refusal Device::query(OnnxModel& onnx_model) {
  if (backend_ == nullptr) return {BP_REASON_OTHER, "the library's onnxInitBackend succeeded but returned no backend"};
  const uint32_t opset = versions_.opsets.at("");
  if (opset < kOldestOpset)
    return {BP_REASON_OPSET, "the library reads operator set " + std::to_string(opset) +
                                 "; this backend writes models in " + std::to_string(kOldestOpset) + " or newer"};
  if (std::string why = downgrade(onnx_model, opset); !why.empty()) return {BP_REASON_OPSET, std::move(why)};
  std::vector<uint64_t> forms;
  uint64_t largest = 0;
  for (const Value& weight : onnx_model.weights()) largest = std::max(largest, weight.weight()->bytes);
  const bool any = !onnx_model.weights().empty() || !onnx_model.constants().empty();
  if (weights_ != Weights::kDescriptors) forms.push_back(kSmallBytes);
  if (weights_ != Weights::kDescriptors && largest > kSmallBytes) forms.push_back(OnnxModel::kAll);
  if (weights_ == Weights::kDescriptors || (weights_ == Weights::kAuto && any)) forms.push_back(OnnxModel::kNone);
  std::optional<onnxStatus> first;
  for (const uint64_t inside : forms) {
    const onnxStatus status = query(onnx_model.bytes(versions_, inside));
    if (accepted(status)) return {};
    if (!first) first = status;
  }
  return {reason_of(*first), "onnxGetBackendCompatibility returned " + status_name(*first)};
}

void Device::cover(Coverage& coverage) {
  coverage.options().allow({});
  for (uint32_t i = 0; i < coverage.node_count(); ++i) {
    coverage.check_cancelled();
    const Node node = coverage.node(i);
    Refusal refusal = refusal_of(node);
    if (!refusal) {
      OnnxModel onnx_model(node);
      refusal = query(onnx_model);
    }
    coverage.answer(node, refusal ? no(refusal.reason, std::move(refusal.text)) : yes());
  }
}

void Device::review(const Compile& what, bp_review_t& out, std::string& why) {
  what.options().allow({});
  out.answer = BP_REVIEW_ACCEPT;
  OnnxModel onnx_model(what.graph());
  Refusal refusal = query(onnx_model);
  if (!refusal) return;
  out.answer = BP_REVIEW_REJECT;
  out.reason = refusal.reason;
  why = std::move(refusal.text);
}

std::unique_ptr<Program> Device::compile(const Compile& what) {
  what.options().allow({});
  for (const Node& node : what.graph().nodes()) {
    if (const Refusal refusal = refusal_of(node)) throw Error(BP_UNSUPPORTED, refusal.text, node.id());
  }
  return std::make_unique<IslandProgram>(*this, what);
}

}  // namespace onnxifi_backend
