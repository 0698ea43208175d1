// SPDX-License-Identifier: Apache-2.0
// Replaces and reads the weights of a session.
#include <algorithm>
#include <cstring>

#include "base/abi.h"
#include "base/dtype.h"
#include "ir/tensor.h"
#include "run/device_status.h"
#include "run/memory.h"
#include "session/session.h"

namespace backplane {

namespace {

// Returns an id for a replacement weight. Bit 63 distinguishes it from ids in models. A counter in the 31 bits below
// distinguishes it from the last 2^31 replacements. The low 32 bits are the weight's number, by which `holders` finds
// programs compiled with it.
uint64_t new_id(model::WeightId weight) {
  static std::atomic<uint32_t> last{0};
  return uint64_t{1} << 63 | uint64_t{++last & 0x7fff'ffffu} << 32 | weight;
}

bool is_replacement_of(uint64_t id, model::WeightId weight) {
  return id >> 63 && static_cast<uint32_t>(id) == weight;
}

}  // namespace

std::shared_ptr<const model::Weight> Session::weight_of(model::ValueId value) const {
  const model::WeightId weight = model_->graph.values[value].weight;
  if (weight == BP_NONE) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto replaced = refit_.replaced.find(weight);
  if (replaced != refit_.replaced.end()) return replaced->second;
  return {model_, &model_->graph.weights[weight]};
}

namespace {

bool native(const Program& program) {
  return program.plugin->weights && program.plugin->weights->refit;
}

Status refit_program(const Program& program, const std::vector<bp_refit_weight_t>& weights) {
  if (program.device->given_up()) return program.device->lost();
  bp_refit_t what{};
  what.size = sizeof what;
  what.count = static_cast<uint32_t>(weights.size());
  what.weights = weights.data();
  what.stride = sizeof(bp_refit_weight_t);
  PluginError error;
  return device_status(*program.device, error, program.plugin->weights->refit(program.handle, &what, error.get()));
}

// Tensors that describe the present elements of weights, and a request with them.
struct Restoration {
  std::vector<bp_tensor_t> tensors;
  std::vector<bp_refit_weight_t> weights;
};

// Calls refit_program. std::bad_alloc, which may be thrown for the text of an error, becomes an error without a text.
Status try_refit(const Program& program, const std::vector<bp_refit_weight_t>& weights, Status& no_memory) noexcept {
  try {
    return refit_program(program, weights);
  } catch (...) {
    return std::move(no_memory);
  }
}

}  // namespace

// If a program refuses its new weights, restores the previous weights of the programs before it. The memory that
// restoring needs is allocated before the first program changes.
Status Session::refit_programs(const Replacements& wanted) const {
  std::vector<std::pair<const Program*, Restoration>> natives;
  for (const auto& program : programs_) {
    const auto one = wanted.find(program.get());
    if (one == wanted.end() || !native(*program)) continue;
    const auto& [slots, present] = one->second;
    Restoration& before = natives.emplace_back(program.get(), Restoration()).second;
    before.tensors.reserve(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      const model::Weight& weight = *present[i];
      bp_tensor_t& tensor = before.tensors.emplace_back(*slots[i].tensor);
      tensor.buffer =
          bp_buffer_t{0, 0, 0, nullptr, const_cast<void*>(static_cast<const void*>(weight.data)), 0, weight.bytes};
      before.weights.push_back({slots[i].weight, 0, &tensor});
    }
  }
  Status no_memory(BP_RESOURCE_EXHAUSTED, {}), not_restored(BP_RESOURCE_EXHAUSTED, {});
  for (size_t k = 0; k < natives.size(); ++k) {
    const Program& program = *natives[k].first;
    Status status = try_refit(program, wanted.find(&program)->second.slots, no_memory);
    if (status.ok()) continue;
    Status undone;
    const Program* changed = nullptr;  // a program whose weights cannot be restored
    for (size_t j = 0; j < k; ++j) {
      Status restored = try_refit(*natives[j].first, natives[j].second.weights, not_restored);
      if (restored.ok() || changed) continue;
      undone = std::move(restored);
      changed = natives[j].first;
    }
    if (!changed) return status;
    return std::move(status).context("the weights of device '" + changed->device->name() +
                                     "' were replaced and cannot be restored (" + std::string(undone.text()) + ")");
  }
  return {};
}

namespace {

std::string type_text(bp_dtype_t dtype, const int64_t* extents, size_t rank) {
  std::string text(dtype_name(dtype));
  text += '[';
  for (size_t i = 0; i < rank; ++i) text += (i == 0 ? "" : ",") + std::to_string(extents[i]);
  return text + ']';
}

}  // namespace

Result<model::WeightId> Session::find_weight(std::string_view name, const bp_tensor_t& tensor) const {
  if (!refit_.possible)
    return Status(BP_BAD_STATE,
                  "the session was created without BP_SESSION_REFIT: its weights can be neither read nor replaced; "
                  "create a session with that flag");
  if (!compiled_)
    return Status(
        BP_BAD_STATE,
        "the session was created with BP_SESSION_PLACE_ONLY: it has no programs whose weights could be read or "
        "replaced; create a session without that flag");
  const model::Graph& graph = model_->graph;
  const auto value =
      std::ranges::find_if(graph.values, [&](const model::Value& v) { return v.weight != BP_NONE && v.name == name; });
  const std::string called = "weight '" + std::string(name) + "'";
  if (value == graph.values.end()) return Status(BP_NOT_FOUND, "the model has no " + called);
  const model::Weight& weight = graph.weights[value->weight];
  if (tensor.layout != BP_LAYOUT_DENSE)
    return Status(BP_TYPE_MISMATCH, called + ": the tensor's layout is " + std::to_string(tensor.layout) +
                                        ", but must be dense (BP_LAYOUT_DENSE)");
  if (tensor.rank && !tensor.extents)
    return Status(BP_TYPE_MISMATCH,
                  called + ": the tensor's extents are NULL, but its rank is " + std::to_string(tensor.rank));
  if (tensor.dtype != weight.dtype ||
      !std::equal(weight.dims.begin(), weight.dims.end(), tensor.extents, tensor.extents + tensor.rank))
    return Status(BP_TYPE_MISMATCH, called + ": the tensor is " + type_text(tensor.dtype, tensor.extents, tensor.rank) +
                                        ", but the model's is " +
                                        type_text(weight.dtype, weight.dims.data(), weight.dims.size()));
  if (const uint64_t needed = dense_bytes(tensor.dtype, tensor.rank, tensor.extents); tensor.buffer.bytes < needed)
    return Status(BP_BUFFER_TOO_SMALL, called + ": the tensor's buffer has " + std::to_string(tensor.buffer.bytes) +
                                           " bytes, but its extents need " + std::to_string(needed));
  return value->weight;
}

std::vector<std::pair<const Program*, uint32_t>> Session::holders(model::WeightId weight) const {
  const uint64_t id = model_->graph.weights[weight].id;
  std::vector<std::pair<const Program*, uint32_t>> found;
  for (const auto& program : programs_) {
    const bp_graph_t& island = *program->view->abi();
    for (uint32_t w = 0; w < island.weight_count; ++w) {
      const uint64_t known = bp_graph_weight(&island, w)->id;
      if (known == id || is_replacement_of(known, weight)) found.emplace_back(program.get(), w);
    }
  }
  return found;
}

Status Session::check_replacement(std::string_view weight, const bp_tensor_t& tensor) const {
  return find_weight(weight, tensor).take_status();
}

namespace {

Status in_host_memory(std::string_view weight, const bp_tensor_t& tensor) {
  if (!tensor.buffer.memory && (tensor.buffer.address || !tensor.buffer.bytes)) return {};
  return {BP_UNSUPPORTED,
          "weight '" + std::string(weight) + "': the tensor must be in host memory; copy it with bp_memory_copy"};
}

// The size of a weight's new elements in bytes. For strings it follows from their last offset, or is the buffer's size
// if they would end beyond the buffer.
uint64_t size_of(const bp_tensor_t& tensor) {
  if (tensor.dtype != BP_DTYPE_STRING) return dense_bytes(tensor.dtype, tensor.rank, tensor.extents);
  const uint64_t count = dense_elements(tensor.rank, tensor.extents), capacity = tensor.buffer.bytes;
  if (count >= capacity / sizeof(int64_t)) return capacity;
  const uint64_t head = (count + 1) * sizeof(int64_t);
  uint64_t text = 0;
  std::memcpy(&text, host_address(tensor.buffer) + count * sizeof(int64_t), sizeof text);
  return text <= capacity - head ? head + text : capacity;
}

// Returns an error if the import computed parts of the graph from the weight (Weight::consumed), and the new elements
// differ from the imported ones.
Status check_consumed(std::string_view name, const model::Weight& fresh, const model::Weight& imported) {
  if (!imported.consumed ||
      (fresh.bytes == imported.bytes && (fresh.bytes == 0 || std::memcmp(fresh.data, imported.data, fresh.bytes) == 0)))
    return {};
  return {BP_UNSUPPORTED, "weight '" + std::string(name) +
                              "': the import computed shapes or constants of the graph from it, so it cannot be "
                              "replaced by other elements: make it an input of the model, or open the model again with "
                              "the new weight"};
}

// Returns an error if the device of `program`, whose graph has the new weights, knows a node only in an older form that
// cannot express them.
Status check_forms(const Program& program) {
  const bp_graph_t& graph = *program.view->abi();
  for (uint32_t n = 0; n < graph.node_count; ++n) {
    if (!program.view->too_new(n)) continue;
    const bp_node_t& node = *bp_graph_node(&graph, n);
    return Status(BP_UNSUPPORTED, "device '" + program.device->name() + "' supports " + abi::string(node.op_type) +
                                      " only in an older form, which cannot express the new weights: keep to elements "
                                      "that the form allows, or open the model again with the new weights")
        .with_node(node.id);
  }
  return {};
}

}  // namespace

Status Session::refit(const std::vector<std::pair<std::string, bp_tensor_t>>& weights) const {
  std::vector<std::pair<model::WeightId, std::shared_ptr<model::Weight>>> fresh;
  for (const auto& [name, tensor] : weights) {
    BP_ASSIGN(const model::WeightId index, find_weight(name, tensor));
    BP_TRY(in_host_memory(name, tensor));
    if (std::ranges::any_of(fresh, [&](const auto& one) { return one.first == index; }))
      return {BP_INVALID_ARGUMENT, "weight '" + name + "' is given twice"};
    auto weight = std::make_shared<model::Weight>(model_->graph.weights[index]);
    const char* bytes = host_address(tensor.buffer);
    const uint64_t size = size_of(tensor);
    weight->owned = std::make_shared<const std::vector<char>>(bytes, bytes + size);
    weight->data = weight->owned->data();
    weight->bytes = size;
    weight->file.clear();
    weight->file_offset = 0;
    weight->id = new_id(index);
    if (weight->dtype == BP_DTYPE_STRING && !model::strings_fit(*weight))
      return {BP_INVALID_ARGUMENT, "weight '" + name + "': its string offsets do not fit its bytes"};
    BP_TRY(check_consumed(name, *weight, model_->graph.weights[index]));
    fresh.emplace_back(index, std::move(weight));
  }

  const std::lock_guard lock(mutex_);
  if (!is_current()) return {BP_BUSY, "the session has been replaced during the call: call again"};
  Replacements wanted;
  for (size_t i = 0; i < fresh.size(); ++i) {
    const auto replaced = refit_.replaced.find(fresh[i].first);
    const model::Weight& present =
        replaced == refit_.replaced.end() ? model_->graph.weights[fresh[i].first] : *replaced->second;
    for (const auto& [program, slot] : holders(fresh[i].first)) {
      wanted[program].slots.push_back({slot, 0, &weights[i].second});
      wanted[program].present.push_back(&present);
    }
  }
  model::Refit shown = refit_;
  for (const auto& [index, weight] : fresh) shown.replaced[index] = weight;
  for (size_t k = 0; k < programs_.size(); ++k) {
    if (!wanted.contains(programs_[k].get())) continue;
    BP_TRY(check_forms(*propose(model_, coverage_[placement_.islands[k].device], placement_.islands[k], shown)));
  }
  // Compiles first, because a failure to compile leaves the session unchanged.
  std::shared_ptr<Session> next;
  if (!std::ranges::all_of(wanted, [&](const auto& one) { return native(*one.first); })) {
    next = copy();
    for (const auto& [index, weight] : fresh) next->refit_.replaced[index] = weight;
    BP_TRY(next->compile_again([&](const Program& program) { return wanted.contains(&program) && !native(program); }));
  }
  auto replaced = next ? decltype(refit_.replaced)() : refit_.replaced;  // complete before any program changes
  for (const auto& [index, weight] : fresh)
    if (!next) replaced[index] = weight;
  BP_TRY(refit_programs(wanted));
  if (next)
    replace_by(std::move(next));
  else
    refit_.replaced.swap(replaced);
  return {};
}

Status Session::compile_again(const std::function<bool(const Program&)>& which) {
  for (size_t k = 0; k < programs_.size(); ++k) {
    const Program& old = *programs_[k];
    if (!which(old)) continue;
    const double seconds = old.seconds;
    programs_[k] = propose(model_, coverage_[placement_.islands[k].device], placement_.islands[k], refit_);
    programs_[k]->seconds = seconds;
  }
  CompileOptions compiling;
  compiling.compute_types = request_.compute_types;
  compiling.refit = true;
  compiling.options = request_.options;
  return compile(model_->graph, environment_->services(), coverage_, placement_, programs_, compiling);
}

Status Session::read_weight(std::string_view name, bp_tensor_t& tensor) const {
  BP_ASSIGN(const model::WeightId index, find_weight(name, tensor));
  BP_TRY(in_host_memory(name, tensor));
  const std::lock_guard lock(mutex_);
  for (const auto& [program, slot] : holders(index)) {
    const bp_weights_api_t* api = program->plugin->weights;
    if (!api || !api->read || program->device->given_up()) continue;
    PluginError error;
    return device_status(*program->device, error, api->read(program->handle, slot, &tensor, error.get()));
  }
  const auto replaced = refit_.replaced.find(index);
  const model::Weight& weight = replaced == refit_.replaced.end() ? model_->graph.weights[index] : *replaced->second;
  if (tensor.buffer.bytes < weight.bytes)
    return {BP_BUFFER_TOO_SMALL, "weight '" + std::string(name) + "' has " + std::to_string(weight.bytes) +
                                     " bytes, but the tensor's buffer has " + std::to_string(tensor.buffer.bytes)};
  if (weight.bytes) std::memcpy(host_address(tensor.buffer), weight.data, weight.bytes);
  return {};
}

}  // namespace backplane
