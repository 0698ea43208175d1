// SPDX-License-Identifier: Apache-2.0
#include "engine/island.h"

#include <algorithm>
#include <ranges>

#include "backplane/sdk/weights.hpp"
#include "engine/instance.h"
#include "engine/planner.h"

namespace backplane::gpu {
namespace {

constexpr size_t kKeptPlans = 16;

// Whether all extents are equal numbers, or have the same names.
bool have_equal_extents(const sdk::Value& a, const sdk::Value& b) {
  bool equal = a.rank() >= 0 && a.rank() == b.rank();
  for (uint32_t d = 0; equal && d < static_cast<uint32_t>(a.rank()); ++d)
    equal = a.extent(d) >= 0 ? a.extent(d) == b.extent(d) : !a.symbol(d).empty() && a.symbol(d) == b.symbol(d);
  return equal;
}

}  // namespace

Island::Island(Device& device, const sdk::Compile& what)
    : sdk::Program(device, what), gpu_device_(device), compute_types_(what.compute_types()) {
  for (uint32_t i = 0; i < graph().node_count(); ++i) {
    const sdk::Node node = graph().node(i);
    const Row& row = device.table().require(node, {device.caps(), what.compute_types(), what.options()});
    for (const InPlace& pair : row.in_place) pair_in_place(node, pair);
    what.check_cancelled();
  }
  std::vector<Shape> inputs;
  for (const sdk::Value& value : graph().inputs()) {
    static_inputs_ = static_inputs_ && value.has_static_shape();
    inputs.push_back(value.extents());
  }
  for (const sdk::Value& value : graph().outputs()) static_outputs_ = static_outputs_ && value.has_static_shape();
  if (static_inputs_) {
    try {
      plan(inputs, {}, &what);
    } catch (const InputsUnknown&) {  // the first run plans the island
    }
  }
  what.progress(graph().node_count(), graph().node_count());
}

// Skips inputs that something else reads, since the changes would be seen there.
void Island::pair_in_place(const sdk::Node& node, const InPlace& pair) {
  const sdk::Value input = node.input(pair.input), output = node.output(pair.output);
  if (!input || !output || input.raw().use_count != 1 || (input.raw().flags & BP_VALUE_OUTPUT) != 0) return;
  if (!pair.same_extents && !have_equal_extents(input, output)) return;
  const auto place = [](const auto& all, const sdk::Value& value) {
    const auto at = std::ranges::find_if(all, [&](const sdk::Value& each) { return each.index() == value.index(); });
    return at == all.end() ? BP_NONE : static_cast<uint32_t>(at - all.begin());
  };
  const uint32_t from = place(graph().inputs(), input), to = place(graph().outputs(), output);
  if (from != BP_NONE && to != BP_NONE) in_place_.push_back({from, to, BP_DONATE_MAY, 0});
}

bool follows_from(const Plan& plan, const ReadInput& read) {
  return plan.host_inputs.empty() ||
         (read && std::ranges::all_of(plan.host_inputs, [&](const HostInput& i) { return read(i.slot) == i.bytes; }));
}

std::shared_ptr<const Plan> Island::plan(const std::vector<Shape>& inputs, const ReadInput& read,
                                         const sdk::Compile* compile) const {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(
      plans_, [&](const Entry& entry) { return entry.inputs == inputs && follows_from(*entry.plan, read); });
  if (known != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, known);
    return plans_.front().plan;
  }
  auto made = std::make_shared<Plan>(Planner(context(), graph(), inputs, read).make());
  prepare(*made, compile);
  plans_.push_front({inputs, made});
  if (plans_.size() > kKeptPlans) plans_.pop_back();
  return made;
}

PlanContext Island::context() const {
  return {gpu_device_.table(), gpu_device_.caps(), gpu_device_.host(), compute_types_, gpu_device_.libraries()};
}

void Island::prepare(Plan& plan, const sdk::Compile* compile) const {
  std::vector<const KernelSource*> sources;
  for (Launch& launch : plan.launches) {
    if (!launch.call) {
      sources.push_back(&launch.source);
      continue;
    }
    std::visit(
        [&](const auto& problem) {
          launch.call->algorithm = gpu_device_.libraries().of(problem)->algorithm(problem, compile != nullptr);
          launch.source.entry = std::string(problem.kKind) + " " + problem.text();
        },
        launch.call->problem);
    plan.storages[launch.arguments[kLibraryWorkspace].storage].bytes = launch.call->algorithm.workspace_bytes;
  }
  gpu_device_.kernels().build(sources, [compile] {
    if (compile != nullptr) compile->check_cancelled();
  });

  std::vector<bool> needed(plan.storages.size());
  for (const Launch& launch : plan.launches) {
    if (launch.once) continue;
    for (const uint32_t storage : launch.reads)
      needed[storage] = plan.storages[storage].place == Storage::Place::kConstant;
  }
  for (uint32_t i = 0; i < plan.storages.size(); ++i) {
    if (needed[i]) plan.constant_bytes += plan.storages[i].bytes, resolve(plan, i);
  }
  for (uint32_t i = 0; i < plan.storages.size(); ++i) {
    if (!needed[i]) plan.storages[i].constant.reset();  // only used to compute other constants
  }
  std::erase_if(plan.launches, [](const Launch& launch) { return launch.once; });
  pack(plan, gpu_device_.caps().alignment);
}

Constant Island::resolve(Plan& plan, uint32_t index) const {
  Storage& storage = plan.storages[index];
  if (storage.constant == nullptr) storage.constant = gpu_device_.constant(storage.key);
  if (storage.constant != nullptr) return storage.constant;
  if (storage.weight != BP_NONE || storage.data != nullptr)
    return storage.constant = gpu_device_.share(storage.key, upload(storage));
  const auto writer = std::ranges::find_if(
      plan.launches, [&](const Launch& launch) { return launch.once && launch.writes.front() == index; });
  return storage.constant = gpu_device_.share(storage.key, run_once(plan, *writer));
}

Buffer Island::upload(const Storage& storage) const {
  const bp_graph_t* raw = graph().raw();
  if (storage.data != nullptr) {
    Buffer buffer = gpu_device_.driver().buffer(storage.bytes);
    const Queue queue = gpu_device_.driver().queue();
    if (storage.bytes != 0)
      queue->write({buffer.get(), 0}, storage.data->data(), storage.bytes, true,
                   "upload of a table of " + std::to_string(storage.bytes) + " bytes");
    return buffer;
  }
  uint32_t value = 0;
  while (bp_graph_value(raw, value)->weight != storage.weight) ++value;
  Buffer buffer = gpu_device_.driver().buffer(storage.bytes);
  if (storage.bytes == 0) return buffer;
  const Queue queue = gpu_device_.driver().queue();
  queue->write({buffer.get(), 0}, sdk::weight_data(graph().value(value)), storage.bytes, true,
               "upload of a weight of " + std::to_string(storage.bytes) + " bytes");
  raw->api->weight_consumed(raw, storage.weight);
  return buffer;
}

Buffer Island::run_once(Plan& plan, const Launch& launch) const {
  Buffer result = gpu_device_.driver().buffer(plan.storages[launch.writes.front()].bytes);
  const Kernel kernel = gpu_device_.kernels().kernel(launch.source);
  for (uint32_t i = 0; i < launch.arguments.size(); ++i) {
    const Argument& argument = launch.arguments[i];
    const bool value = argument.storage == BP_NONE;
    const bool written = argument.storage == launch.writes.front();
    set_argument(kernel, i, argument, value ? Buffer() : written ? result : resolve(plan, argument.storage));
  }
  const Queue queue = gpu_device_.driver().queue();
  queue->launch(*kernel, {launch.global, launch.local}, false);
  queue->finish("preparing constants with kernel '" + launch.source.entry + "'");
  return result;
}

std::unique_ptr<sdk::Instance> Island::instance() const {
  return std::make_unique<Instance>(*this);
}

bp_program_info_t Island::info() const {
  bp_program_info_t info{};
  info.shapes = static_outputs_ ? BP_SHAPES_STATIC : BP_SHAPES_COMPUTED;
  info.inplace = in_place_.data();
  info.inplace_count = static_cast<uint32_t>(in_place_.size());
  const std::lock_guard lock(mutex_);
  if (!plans_.empty()) info.device_bytes = plans_.front().plan->constant_bytes;
  return info;
}

void Island::output_extents(const std::vector<bp_tensor_t>& inputs, std::vector<bp_shape_t>& outputs) const {
  std::vector<Shape> shapes;
  for (const bp_tensor_t& tensor : inputs) shapes.emplace_back(tensor.extents, tensor.extents + tensor.rank);
  const auto read = [&](uint32_t slot) {
    const bp_tensor_t& tensor = inputs[slot];
    if (tensor.buffer.memory != nullptr || tensor.buffer.address == nullptr) throw InputsUnknown{};
    return host_copy(tensor);
  };
  const auto found = [&]() -> std::vector<Shape> {
    try {
      return plan(shapes, read)->outputs;
    } catch (const InputsUnknown&) {  // the run plans the island
      return Planner(context(), graph(), shapes, {}).output_shapes();
    }
  }();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape& shape = found[i];
    outputs[i].rank = static_cast<uint32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), outputs[i].extents);
  }
}

std::vector<std::byte> host_copy(const bp_tensor_t& tensor) {
  const std::byte* begin = static_cast<const std::byte*>(tensor.buffer.address) + tensor.buffer.offset;
  return {begin, begin + view::dense_bytes(tensor.dtype, tensor.extents, tensor.rank).value_or(0)};
}

void set_argument(const Kernel& kernel, uint32_t index, const Argument& argument, const Buffer& buffer) {
  if (argument.storage == BP_NONE)
    kernel->set(index, argument.value.data(), argument.bytes);
  else
    kernel->set(index, *buffer);
}

}  // namespace backplane::gpu
