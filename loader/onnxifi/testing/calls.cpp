// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/testing/calls.h"

#include <cstdlib>
#include <utility>

#include "onnxifi/testing/structs.h"

namespace backplane::onnxifi {
namespace {

bool is_waiting(onnxEvent event) {
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  return onnxGetEventState(event, &state) == ONNXIFI_STATUS_SUCCESS && state == ONNXIFI_EVENT_STATE_NONSIGNALLED;
}

}  // namespace

Calls::Calls(onnxBackendID id, std::string model)
    : model_(std::move(model)),
      inputs_{descriptor("a", a_), descriptor("b", b_)},
      output_(descriptor("c", c_)),
      handles_{nullptr, this, id} {
  onnxBackend backend = nullptr;
  onnxGraph graph = nullptr;
  if (onnxInitBackend(id, nullptr, &backend) != ONNXIFI_STATUS_SUCCESS ||
      onnxInitGraph(backend, nullptr, model_.size(), model_.data(), 0, nullptr, &graph) != ONNXIFI_STATUS_SUCCESS)
    std::abort();
  handles_.push_back(backend);
  handles_.push_back(graph);
}

Calls::~Calls() {
  for (void* handle : handles_) {
    const bool of_one_kind = (onnxReleaseGraph(handle) == ONNXIFI_STATUS_SUCCESS) +
                                 (onnxReleaseEvent(handle) == ONNXIFI_STATUS_SUCCESS) +
                                 (onnxReleaseBackend(handle) == ONNXIFI_STATUS_SUCCESS) <=
                             1;
    if (!of_one_kind) std::abort();
  }
}

onnxStatus Calls::call(const std::function<uint32_t()>& next) {
  constexpr size_t kMaxHandles = 200;
  const auto pick = [&] { return handles_[next() % handles_.size()]; };
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  void* made = nullptr;
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  onnxMemoryFenceV1 after = fence(nullptr);
  switch (next() % 13) {
    case 0:
      status = onnxInitBackend(pick(), nullptr, &made);
      break;
    case 1:
      status = onnxInitEvent(pick(), &made);
      break;
    case 2:  // sometimes with a model that lacks its last byte
      status = onnxInitGraph(pick(), nullptr, model_.size() - next() % 2, model_.data(), 0, nullptr, &made);
      break;
    case 3:
      status = onnxSetGraphIO(pick(), 2, inputs_, 1, next() % 8 == 0 ? nullptr : &output_);
      break;
    case 4: {
      const onnxMemoryFenceV1 before = fence(pick());
      // If the event were never signalled, the run would keep its graph forever.
      if (is_waiting(before.event)) onnxSignalEvent(before.event);
      status = onnxRunGraph(pick(), &before, &after);
      made = after.event;
      break;
    }
    case 5:
      status = onnxSetIOAndRunGraph(pick(), 2, inputs_, 1, &output_, &after);
      made = after.event;
      break;
    case 6:
      status = onnxSignalEvent(pick());
      break;
    case 7:
      status = onnxGetEventState(pick(), &state);
      break;
    case 8: {
      void* const event = pick();
      if (!is_waiting(event)) status = onnxWaitEvent(event);
      break;
    }
    case 9:
      status = onnxReleaseEvent(pick());
      break;
    case 10:
      status = onnxReleaseGraph(pick());
      break;
    case 11:
      status = onnxReleaseBackend(pick());
      break;
    default: {
      char text[256];
      size_t size = size_t{100} * (next() % 3);
      status = onnxGetBackendInfo(pick(), static_cast<onnxBackendInfo>(next() % 50), text, &size);
    }
  }
  if (made != nullptr && handles_.size() < kMaxHandles) handles_.push_back(made);
  return status;
}

}  // namespace backplane::onnxifi
