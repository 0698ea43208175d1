// SPDX-License-Identifier: Apache-2.0
// An island as an ONNXIFI graph. The library keeps one set of buffer addresses per graph, so the runs of all instances
// are serialized.
#pragma once

#include <array>
#include <mutex>
#include <vector>

#include "descriptors.h"
#include "device.h"

namespace onnxifi_backend {

class IslandProgram : public backplane::sdk::StreamedProgram {
 public:
  IslandProgram(const Device& device, const backplane::sdk::Compile& what);
  ~IslandProgram() override;

  void launch(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
              const backplane::sdk::RunSync& order) const override;

 private:
  // The descriptors of onnxSetGraphIO or onnxSetIOAndRunGraph. A library may read them until the next such call.
  struct Locations {
    Descriptors inputs, outputs;
  };
  class Event;

  onnxStatus init_with_weights_inside(OnnxModel& onnx_model);
  onnxStatus init_with_descriptors(OnnxModel& onnx_model, const backplane::sdk::Compile& what);
  // Starts a run on these addresses. Returns the event to wait for, or NULL if the run is complete.
  onnxEvent start(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) const;
  void wait(onnxEvent event) const;

  const Device& device_;
  const Functions& functions_;
  const std::vector<Described> inputs_, outputs_;
  SetIoAndRun set_io_and_run_ = nullptr;  // NULL if the library lacks it
  onnxGraph graph_ = nullptr;
  std::vector<std::vector<char>> weights_;  // copies of unaligned weights, and of all constants

  mutable std::mutex mutex_;  // held during a run
  mutable std::array<Locations, 2> locations_;
  mutable size_t current_ = 0;
  mutable std::vector<const void*> bound_;  // addresses of inputs, then outputs; empty if none are bound
};

}  // namespace onnxifi_backend
