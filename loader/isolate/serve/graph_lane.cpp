// SPDX-License-Identifier: Apache-2.0
#include "isolate/serve/graph_lane.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/abi.h"

namespace backplane::isolate {
namespace {

// Maps `bytes` bytes of the file that the loader sent, from `offset`. Empty if the file is missing or too small.
Mapping mapped(const Message& answer, uint64_t offset, uint64_t bytes) {
  struct stat state {};
  if (answer.files.size() != 1 || ::fstat(answer.files[0].get(), &state) != 0) return {};
  const auto size = static_cast<uint64_t>(state.st_size);
  if (offset > size || bytes > size - offset) return {};
  return Mapping::of(answer.files[0].get(), offset, bytes, PROT_READ);
}

}  // namespace

ActiveLanes::During::During(ActiveLanes& active, Lane& lane) : active_(active), lane_(lane) {
  const std::lock_guard lock(active_.mutex_);
  active_.lanes_.emplace_back(&lane, lane.call());
  ++active_.count_;
}

ActiveLanes::During::~During() {
  const std::lock_guard lock(active_.mutex_);
  const auto found = std::ranges::find(active_.lanes_, &lane_, &std::pair<Lane*, uint64_t>::first);
  if (found == active_.lanes_.end()) return;
  active_.lanes_.erase(found);
  --active_.count_;
}

ActiveLanes& traced_runs() {
  static auto& lanes = *new ActiveLanes;
  return lanes;
}

Result<Message> ActiveLanes::ask(Operation question, const std::string& bytes) {
  std::pair<Lane*, uint64_t> lane{};
  {
    const std::lock_guard lock(mutex_);
    if (!lanes_.empty()) lane = lanes_.back();
  }
  if (!lane.first)
    return Status(BP_BAD_STATE,
                  "the loader answers requests about a graph only during calls that use it: map weights earlier");
  return lane.first->ask(lane.second, question, bytes);
}

Result<Mapping> GraphLane::weight(uint32_t graph, uint32_t weight, uint64_t bytes) {
  Writer question;
  question.put(graph).put(weight);
  BP_ASSIGN(const Message answer, ask(Operation::kWeight, question.bytes()));
  Reader in(answer.bytes);
  const auto offset = in.get<uint64_t>();
  Mapping mapping = in.complete() ? mapped(answer, offset, bytes) : Mapping();
  if (!mapping)
    return Status(BP_IO_ERROR,
                  "the " + std::to_string(bytes) + " bytes of weight " + std::to_string(weight) + " cannot be mapped");
  return mapping;
}

void GraphLane::weight_consumed(uint32_t graph, uint32_t weight) {
  Writer question;
  question.put(graph).put(weight);
  static_cast<void>(ask(Operation::kWeightConsumed, question.bytes()));
}

Status GraphLane::weight_hash(uint32_t graph, uint32_t weight, uint64_t out_hash[2]) {
  Writer question;
  question.put(graph).put(weight);
  BP_ASSIGN(const Message answer, ask(Operation::kWeightHash, question.bytes()));
  Reader in(answer.bytes);
  const auto first = in.get<uint64_t>(), second = in.get<uint64_t>();
  if (!in.complete()) return {BP_CORRUPT, "the loader's answer is damaged"};
  out_hash[0] = first;
  out_hash[1] = second;
  return {};
}

Status GraphLane::serialize(uint32_t graph, uint64_t external_above, bp_text_sink_t sink, void* context) {
  Writer question;
  question.put(graph).put(external_above);
  BP_ASSIGN(const Message answer, ask(Operation::kSerializeGraph, question.bytes()));
  Reader in(answer.bytes);
  const auto bytes = in.get<uint64_t>();
  if (!in.complete()) return {BP_CORRUPT, "the loader's answer is damaged"};
  if (bytes == 0) return {};
  const Mapping mapping = mapped(answer, 0, bytes);
  if (!mapping) return {BP_RESOURCE_EXHAUSTED, "a serialized graph cannot be mapped"};
  sink(context, {mapping.data(), bytes});
  return {};
}

}  // namespace backplane::isolate
