// SPDX-License-Identifier: Apache-2.0
// A program's run state: kernels with their arguments set, memory between them, a queue, and the memory that is bound.
#pragma once

#include "engine/island.h"

namespace backplane::opencl {

// Memory bound to an input or output, as the kernels see it.
class BoundMemory {
 public:
  // Makes the tensor's memory reachable: without a copy where the device can.
  BoundMemory(const Device& device, cl_command_queue queue, const bp_tensor_t& tensor);
  BoundMemory(const BoundMemory&) = delete;
  BoundMemory& operator=(const BoundMemory&) = delete;
  ~BoundMemory() { unmap(); }

  const Buffer& buffer() const { return buffer_; }
  // Around a run, in the queue's order. They give the bytes that had to be copied.
  uint64_t begin(uint64_t bytes, bool is_input);
  uint64_t end(uint64_t bytes, bool is_output);

 private:
  enum class Way {
    kDirect,      // the device's own memory
    kShared,      // the host's memory, mapped by the host between runs
    kHostCopy,    // the host's memory, copied
    kDeviceCopy,  // the device's own memory at an odd offset, copied
  };
  void map();
  void unmap() noexcept;

  cl_command_queue queue_;
  Way way_;
  Buffer buffer_;
  Buffer source_;           // kDeviceCopy
  uint64_t offset_ = 0;     // kDeviceCopy
  char* host_ = nullptr;    // kHostCopy, kShared
  uint64_t capacity_ = 0;   // kShared
  void* mapped_ = nullptr;  // kShared
};

class Instance final : public sdk::Instance {
 public:
  explicit Instance(const Island& island);
  ~Instance() override;

  void bind(const bp_binding_t& binding) override;
  void extents(uint32_t slot, uint32_t rank, const int64_t* extents) override;
  void run(const bp_run_t& run) override;

 protected:
  bool reaches(const bp_tensor_t& tensor) const override;

 private:
  // A kernel's argument that is bound memory.
  struct External {
    uint32_t launch, argument;
    Storage::Place place;
    uint32_t slot;
  };

  void replan();
  std::vector<std::byte> read_input(uint32_t slot) const;
  void place_kernels();
  void reach_bound();
  void check_outputs() const;
  void work(const bp_run_t& run);
  void check_fault() const;
  void trace(const bp_run_t& run, const std::vector<Event>& events) const;
  const Buffer& bound(Storage::Place place, uint32_t slot) const;

  const Island& island_;
  Queue queue_;
  std::shared_ptr<const Plan> plan_;
  Buffer arena_, fault_;
  std::vector<Buffer> parts_;      // of the arena, by storage: a kernel does not retain its arguments
  std::vector<ClKernel> kernels_;  // by launch
  std::vector<External> externals_;
  std::vector<std::optional<BoundMemory>> inputs_, outputs_;
  bool shapes_changed_ = true;
  bool bindings_changed_ = true;
};

}  // namespace backplane::opencl
