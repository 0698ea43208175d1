// SPDX-License-Identifier: Apache-2.0
#include "driver/capture.h"

namespace backplane::cuda {

// Commands are captured from a stream, not added to a graph one by one, because only a library itself knows the
// commands that its calls enqueue. The mode is "thread local": other threads may allocate and wait meanwhile, and a
// call of this thread that a graph could not repeat fails instead of being left out.
Capture::Capture(SharedContext context, CommandQueue& queue, const std::function<void(gpu::CommandQueue&)>& enqueue)
    : context_(std::move(context)) {
  const Current current(*context_);
  check(cuda().cuStreamBeginCapture(queue.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "beginning a capture");
  const auto failure = sdk::caught([&] { enqueue(queue); });
  CUgraph captured = nullptr;
  CUresult status = cuda().cuStreamEndCapture(queue.get(), &captured);
  if (!failure && status == CUDA_SUCCESS) status = cuda().cuGraphInstantiate(&graph_, captured, 0);
  if (captured != nullptr) cuda().cuGraphDestroy(captured);
  if (failure) throw sdk::Error(*failure);
  check(status, "capturing a run");
}

Capture::~Capture() {
  static_cast<void>(sdk::caught([this] {
    const Current current(*context_);
    cuda().cuGraphExecDestroy(graph_);
  }));
}

}  // namespace backplane::cuda
