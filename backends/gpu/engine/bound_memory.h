// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/device.h"

namespace backplane::gpu {

// Memory bound to an input or output, accessible to kernels.
class BoundMemory {
 public:
  // Makes the tensor's memory accessible to kernels, without copies where possible. `queue` is the instance's own.
  BoundMemory(const Device& device, const Queue& queue, const bp_tensor_t& tensor);
  BoundMemory(const BoundMemory&) = delete;
  BoundMemory& operator=(const BoundMemory&) = delete;
  ~BoundMemory();

  const Buffer& buffer() const { return buffer_; }
  // Whether kernels use the bound memory itself. Otherwise it is copied, or mapped.
  bool is_direct() const { return transfer_ == Transfer::kDirect; }
  // Whether `begin` and `end` enqueue only what a capture may contain. The copies refer to memory of this object.
  bool can_be_captured() const { return transfer_ != Transfer::kShared && (host_ == nullptr || pinned_ != nullptr); }
  // Appends the addresses that the commands of a run use.
  void append_addresses(const Driver& driver, std::vector<uint64_t>& addresses) const;
  // `begin` is called before a run and `end` after it, each with the run's queue. Both enqueue commands, append the
  // commands' events to `events`, and return the number of bytes copied.
  uint64_t begin(CommandQueue& queue, uint64_t bytes, bool is_input, std::vector<Event>& events);
  uint64_t end(CommandQueue& queue, uint64_t bytes, bool is_output, std::vector<Event>& events);

 private:
  enum class Transfer {
    kDirect,      // device memory, used in place
    kShared,      // host memory, used in place; mapped for the host between runs
    kHostCopy,    // host memory, copied to and from the device
    kDeviceCopy,  // device memory at an unaligned offset, copied to an aligned buffer and back
  };
  // Maps shared memory for the host once earlier commands have ended; waits for that if `blocking`.
  Event map(CommandQueue& queue, bool blocking);

  Queue queue_;
  Transfer transfer_;
  Buffer buffer_;
  Buffer source_;                       // kDeviceCopy
  uint64_t offset_ = 0;                 // kDeviceCopy, in bytes
  char* host_ = nullptr;                // kHostCopy, kShared
  uint64_t capacity_ = 0;               // kHostCopy, kShared, in bytes
  void* mapped_ = nullptr;              // kShared
  std::shared_ptr<const void> pinned_;  // kHostCopy
};

}  // namespace backplane::gpu
