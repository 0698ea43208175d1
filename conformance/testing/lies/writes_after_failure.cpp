// SPDX-License-Identifier: Apache-2.0
// Writes to an output 20 ms after a failed run has called `done`.
// Reported: an output changes after the failed run has called `done`
#include <chrono>
#include <thread>

#include "testing/wrapper.h"

namespace backplane::liar {
namespace {

const bp_memory_api_t* memory_api;
bp_device_api_t device_api;
bp_status_t (*honest_open)(bp_backend_t*, uint32_t, const bp_device_open_t*, bp_device_t**, bp_error_t*);
bp_device_t* device;  // the one that was opened last

// The run's own `done`, and where its first output is.
struct Ended {
  void (*done)(void*, bp_status_t, const bp_error_t*);
  void* self;
  bp_buffer_t output;
};
thread_local Ended* latest;  // of the run that this thread is starting

void write(bp_buffer_t output) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  char wrong = 0;
  bp_buffer_t from = {};
  from.address = &wrong;
  from.bytes = output.bytes = sizeof wrong;
  const bp_copy_t what = {.size = sizeof what, .from = &from, .to = &output, .bytes = sizeof wrong};
  memory_api->copy(device, &what, nullptr);
}

void on_done(void* self, bp_status_t status, const bp_error_t* error) {
  const Ended ended = *static_cast<Ended*>(self);
  delete static_cast<Ended*>(self);
  if (status != BP_OK) std::thread(write, ended.output).detach();
  ended.done(ended.self, status, error);
}

void wrap(bp_run_t& run) {
  latest = nullptr;
  if (run.done == nullptr) return;
  latest = new Ended{run.done, run.self, {}};
  run.done = on_done;
  run.self = latest;
}

void note(Run& run) {
  if (latest != nullptr) latest->output = run.outputs[0].tensor.buffer;
}

bp_status_t open(bp_backend_t* backend, uint32_t index, const bp_device_open_t* how, bp_device_t** out_device,
                 bp_error_t* error) {
  const bp_status_t status = honest_open(backend, index, how, out_device, error);
  if (status == BP_OK) device = *out_device;
  return status;
}

void falsify(bp_plugin_t& plugin) {
  memory_api = plugin.memory;
  device_api = taken(*plugin.device);
  honest_open = device_api.open;
  device_api.open = open;
  plugin.device = &device_api;
}

}  // namespace

const Lie kLie = {.descriptor = falsify, .settings = wrap, .before = note};

}  // namespace backplane::liar
