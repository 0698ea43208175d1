// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/device.h"

namespace backplane::gpu {

// Memory bound to an input or output, accessible to kernels.
class BoundMemory {
 public:
  // Makes the tensor's memory accessible to kernels, without copies if the device can. `queue` is the instance's own.
  BoundMemory(const Device& device, const Queue& queue, const bp_tensor_t& tensor);
  BoundMemory(const BoundMemory&) = delete;
  BoundMemory& operator=(const BoundMemory&) = delete;
  ~BoundMemory();

  const Buffer& buffer() const { return buffer_; }
  // Called before and after a run, with the run's queue. Both append the events of their commands to `events` and
  // return the number of bytes copied.
  uint64_t begin(CommandQueue& queue, uint64_t bytes, bool is_input, std::vector<Event>& events);
  uint64_t end(CommandQueue& queue, uint64_t bytes, bool is_output, std::vector<Event>& events);

 private:
  enum class Transfer {
    kDirect,      // the device's own memory
    kShared,      // the host's memory, mapped by the host between runs
    kHostCopy,    // the host's memory, copied
    kDeviceCopy,  // the device's own memory at an unaligned offset, copied
  };
  // Maps shared memory for the host once earlier commands have ended; waits for that if `blocking`.
  Event map(CommandQueue& queue, bool blocking);

  Queue queue_;
  Transfer transfer_;
  Buffer buffer_;
  Buffer source_;                       // kDeviceCopy
  uint64_t offset_ = 0;                 // kDeviceCopy
  char* host_ = nullptr;                // kHostCopy, kShared
  uint64_t capacity_ = 0;               // kHostCopy, kShared
  void* mapped_ = nullptr;              // kShared
  std::shared_ptr<const void> pinned_;  // kHostCopy
};

}  // namespace backplane::gpu
