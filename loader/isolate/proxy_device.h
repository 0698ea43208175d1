// SPDX-License-Identifier: Apache-2.0
// A device of an isolated backend, and the functions of its table.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "base/status.h"
#include "isolate/process.h"
#include "isolate/proxy_backend.h"

namespace backplane::isolate {

// An object in `process`, with its number there.
struct Remote {
  std::shared_ptr<Process> process;
  uint64_t handle = 0;
};

// The object to which a bp_device_t of an isolated plugin points. If the process has ended, the device is opened again
// in the next one.
struct ProxyDevice {
  ProxyBackend& backend;
  uint32_t index;  // when it was first described; another process may give the device another index
  uint64_t id;
  std::string options;  // as sent to the process

  std::mutex mutex;
  Remote remote;
  std::deque<std::string> opset_texts;
  std::vector<bp_opset_t> opsets;
  // The coverage of subgraphs that the process returned with the last query of a root graph, by graph id, until a query
  // takes it. Valid for queries whose request, without the graph, equals bodies_request.
  std::mutex bodies_mutex;
  std::string bodies_request;
  std::map<uint64_t, std::string> bodies;

  // Returns the device's handle in the running process. Opens the device there first, if needed.
  Result<Remote> live();
  // Sends a request that consists of the device's handle and `rest`. A call whose process ended has no lasting effect,
  // so it is repeated once if the process was killed from outside. `out_remote` is the device in the process that
  // replied.
  Result<std::string> call(Operation operation, const std::string& rest, const Patience& patience, Answers* answers,
                           Remote& out_remote);
};
inline ProxyDevice& device_of(bp_device_t* device) {
  return *reinterpret_cast<ProxyDevice*>(device);
}

// Fills the table. Optional functions that the library lacks stay null, except `health` and `abandon`.
void fill_device_table(uint32_t offered, bp_device_api_t& out);

}  // namespace backplane::isolate
