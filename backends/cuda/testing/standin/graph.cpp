// SPDX-License-Identifier: Apache-2.0
// The stand-in for libcuda.so.1: captures of streams, and the graphs made of them. A graph contains the commands of one
// stream in their order, with the arguments that they were enqueued with.
#include "testing/standin/cuda.h"
#include "testing/standin/hooks.h"
#include "testing/standin/stream.h"

#define EXPORT extern "C" STANDIN_EXPORT

using namespace standin;

struct CUgraph_st {
  Commands commands;
};
struct CUgraphExec_st {
  // Launches in progress outlive the object: CUDA frees what is executing when it has ended.
  struct State {
    Commands commands;
    uint64_t launched = 0, ended = 0;  // guarded by order_mutex
  };
  std::shared_ptr<State> state = std::make_shared<State>();
};

namespace {

std::mutex& exists_mutex = *new std::mutex;
std::set<const void*>& existing = *new std::set<const void*>;

template <class Object>
Object* created(Object* object, const char* kind) {
  const std::lock_guard lock(exists_mutex);
  existing.insert(object);
  count(kind, 1);
  return object;
}

template <class Object>
CUresult destroy(Object* object, const char* kind) {
  {
    const std::lock_guard lock(exists_mutex);
    if (existing.erase(object) == 0) return CUDA_ERROR_INVALID_VALUE;
  }
  delete object;
  count(kind, -1);
  return CUDA_SUCCESS;
}

bool exists(const void* object) {
  const std::lock_guard lock(exists_mutex);
  return existing.count(object) != 0;
}

}  // namespace

void standin_fail_in_capture(bool fails) {
  const std::lock_guard lock(order_mutex);
  fails_in_capture = fails;
}

// ---- captures -------------------------------------------------------------------------------------------------------

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  IN_CONTEXT();
  if (stream == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock(order_mutex);
  if (stream->recording != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  stream->recording.reset(new Recording{mode, std::this_thread::get_id(), {}});
  return CUDA_SUCCESS;
}

// Ends the capture even if a failure is injected, as CUDA does if the call fails.
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* out) {
  const auto refused = static_cast<CUresult>(called(__func__));
  *out = nullptr;
  if (!has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  std::unique_ptr<Recording> recording;
  {
    const std::lock_guard lock(order_mutex);
    if (stream == nullptr || stream->recording == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->recording->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        stream->recording->thread != std::this_thread::get_id())
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    recording = std::move(stream->recording);
  }
  if (refused != CUDA_SUCCESS) return refused;
  if (!recording->is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *out = created(new CUgraph_st{std::move(recording->commands)}, "graphs");
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  IN_CONTEXT();
  const std::lock_guard lock(order_mutex);
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream == nullptr) {
    for (const CUstream each : streams)
      if (each->blocks_default && each->recording != nullptr) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  } else if (stream->recording != nullptr) {
    *status = stream->recording->is_valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  }
  return CUDA_SUCCESS;
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  IN_CONTEXT();
  if (!exists(graph) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto* made = new CUgraphExec_st;
  made->state->commands = graph->commands;
  *out = created(made, "executable graphs");
  return CUDA_SUCCESS;
}

// As with CUDA, a launch also waits for earlier launches of the same executable graph in other streams.
EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  IN_CONTEXT();
  if (!exists(graph)) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<CUgraphExec_st::State> state = graph->state;
  {
    const std::lock_guard lock(order_mutex);
    if (stream != nullptr && stream->recording != nullptr) {  // `graph` becomes a part of the captured graph
      if (!stream->recording->is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      Commands& commands = stream->recording->commands;
      commands.insert(commands.end(), state->commands.begin(), state->commands.end());
      return CUDA_SUCCESS;
    }
  }
  uint64_t turn = 0;
  {
    const std::lock_guard lock(order_mutex);
    turn = state->launched++;
  }
  const CUresult added = add(stream, [=] {
    {
      std::unique_lock lock(order_mutex);
      order_changed.wait(lock, [&] { return state->ended == turn; });
    }
    for (const std::function<void()>& command : state->commands) command();
    const std::lock_guard lock(order_mutex);
    ++state->ended;
    order_changed.notify_all();
  });
  if (added == CUDA_SUCCESS) return added;
  const std::lock_guard lock(order_mutex);
  --state->launched;
  return added;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec graph) {
  static_cast<void>(called(__func__));
  return destroy(graph, "executable graphs");
}

EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  static_cast<void>(called(__func__));
  return destroy(graph, "graphs");
}
