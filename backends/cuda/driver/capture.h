// SPDX-License-Identifier: Apache-2.0
// Commands captured as a CUDA graph.
#pragma once

#include "driver/queue.h"

namespace backplane::cuda {

class Capture final : public gpu::DeviceCapture {
 public:
  // Captures what `enqueue` puts into `queue`. The queue must be new, no other thread may use it, and it must be
  // destroyed afterwards.
  Capture(SharedContext context, CommandQueue& queue, const std::function<void(gpu::CommandQueue&)>& enqueue);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() override;  // a launch of the graph that is in progress continues
  CUgraphExec get() const { return graph_; }

 private:
  SharedContext context_;
  CUgraphExec graph_ = nullptr;
};

}  // namespace backplane::cuda
