// SPDX-License-Identifier: Apache-2.0
// An instance, the memory that is bound to it, and its runs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "host/container.h"
#include "isolate/serve/server.h"

namespace backplane::isolate {

// The parameters of a run. Those in the page are read only once, because the loader may change them at any time.
struct RunOrder {
  uint64_t deadline = 0, id = 0, trace_id = 0;
  int32_t priority = 0;
  bool cancellable = false, tracing = false;
};

class ServedInstance {
 public:
  static Result<std::shared_ptr<ServedInstance>> make(std::shared_ptr<ServedProgram> program);
  ~ServedInstance();

  // `bind` and `extents` read the part of a request that follows the instance's number.
  Status bind(Reader& in, const std::vector<Descriptor>& files);
  Status extents(Reader& in);
  Status run(Lane& lane, const RunOrder& order);
  // Read the contents of input containers before a run, and write those of output containers after it.
  Status read_containers(Reader& in);
  Status write_containers(Writer& out) const;
  ServedProgram& program() const { return *program_; }

 private:
  struct Slot {
    bool bound = false;
    bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
    std::vector<int64_t> extents, strides;
    uint32_t layout = BP_LAYOUT_DENSE, flags = 0;
    uint64_t block = 0, offset = 0;  // the loader's block of shared memory; 0: no memory is bound
    std::shared_ptr<const Mapping> mapping;
    char* address = nullptr;
    uint64_t capacity = 0;
    std::shared_ptr<const DeviceBuffer> device;  // set if the device has memory of its own
    std::unique_ptr<bp_container_t> container;
  };
  // An output whose extents the run determined.
  struct Found {
    std::vector<int64_t> extents, strides;
    Mapping mapping;
    uint64_t bytes = 0;
    DeviceBuffer device;
  };
  // The run in progress. A member of the instance, because a faulty plugin may call `done` after the run.
  struct Running {
    ServedInstance* instance = nullptr;
    Lane* lane = nullptr;
    uint64_t call = 0;
    std::mutex mutex;
    std::condition_variable changed;
    bool done = true;
    Status status;
    std::map<uint32_t, Found> found;  // by slot
  };

  explicit ServedInstance(std::shared_ptr<ServedProgram> program) : program_(std::move(program)) {}
  const bp_plugin_t& plugin() const { return program_->device->tables.plugin; }
  const DeviceMemory& memory() const { return program_->device->memory; }
  Slot* slot(uint32_t number);
  static void on_done(void* self, bp_status_t code, const bp_error_t* error);
  Status bind_containers();
  Status bind_scratch();
  // If another slot is bound to the same memory, `map_block` and `device_buffer` return the object of that slot: a
  // program that works in place needs the same buffer for both.
  Result<std::shared_ptr<const Mapping>> map_block(uint64_t block, const Descriptor& file) const;
  Result<std::shared_ptr<const DeviceBuffer>> device_buffer(uint32_t number, const Slot& next) const;
  bp_status_t output(uint32_t number, uint32_t rank, const int64_t* extents, uint64_t bytes, bp_tensor_t* out_tensor);

  std::shared_ptr<ServedProgram> program_;
  bp_instance_t* handle_ = nullptr;
  std::vector<Slot> inputs_, outputs_;
  Running running_;
  // Shared memory that the loader created for this instance, by id.
  std::map<uint64_t, std::shared_ptr<const Mapping>> blocks_;
  std::map<uint64_t, uint64_t> block_bytes_;
  std::vector<std::byte> scratch_;
  DeviceBuffer device_scratch_;
};

}  // namespace backplane::isolate
