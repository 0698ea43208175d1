// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/device.h"

namespace backplane::gpu {

// Memory bound to an input or output, accessible to kernels.
class BoundMemory {
 public:
  // Makes the tensor's memory accessible to kernels: in place if possible, otherwise through a copy. `queue` is the
  // instance's own queue. If host memory is used in place, this constructor maps it for the host, which waits for the
  // queue, and the destructor unmaps it.
  BoundMemory(const Device& device, const Queue& queue, const bp_tensor_t& tensor);
  // For an output that is bound to the memory of `input`: both use one buffer. `input` must outlive this object.
  explicit BoundMemory(const BoundMemory* input);
  BoundMemory(const BoundMemory&) = delete;
  BoundMemory& operator=(const BoundMemory&) = delete;
  ~BoundMemory();

  const Buffer& buffer() const { return buffer_; }
  bool is_in(const BoundMemory& input) const { return input_ == &input; }
  // Whether the tensor is in device memory that kernels use in place, so that `begin` and `end` enqueue nothing.
  bool is_direct() const { return transfer_ == Transfer::kDirect; }
  bool is_on_device() const { return host_ == nullptr; }
  // Whether `begin` and `end` enqueue only what a capture may contain. Captured copies refer to `buffer`: destroy such
  // captures before this object.
  bool can_be_captured() const { return transfer_ != Transfer::kShared && (host_ == nullptr || pinned_ != nullptr); }
  // Appends the addresses, of the device and of the host, that a run's commands use: a part of Captures::Key.
  void append_addresses(const Driver& driver, std::vector<uint64_t>& addresses) const;
  // `begin` is called before a run's kernels and `end` after them, each with the run's queue; the tensor has `bytes`
  // bytes. Both enqueue commands, append their events to `events`, and return the number of bytes to be copied.
  uint64_t begin(CommandQueue& queue, uint64_t bytes, bool is_input, std::vector<Event>& events);
  uint64_t end(CommandQueue& queue, uint64_t bytes, bool is_output, std::vector<Event>& events);

 private:
  enum class Transfer {
    kDirect,      // device memory, used in place
    kShared,      // host memory, used in place; mapped for the host between runs
    kHostCopy,    // host memory, copied to and from the device
    kDeviceCopy,  // device memory that is not aligned, copied to an aligned buffer and back
  };
  // Maps shared memory for the host once earlier commands have ended; waits for that if `blocking`.
  Event map(CommandQueue& queue, bool blocking);

  const BoundMemory* const input_ = nullptr;  // the input whose buffer this output uses; NULL: none
  Queue queue_;
  Transfer transfer_;
  Buffer buffer_;
  Buffer source_;                       // kDirect, kDeviceCopy: the bound memory
  uint64_t offset_ = 0;                 // kDirect, kDeviceCopy: where the tensor begins in `source_`, in bytes
  char* host_ = nullptr;                // kHostCopy, kShared
  uint64_t capacity_ = 0;               // kHostCopy, kShared, in bytes
  void* mapped_ = nullptr;              // kShared
  std::shared_ptr<const void> pinned_;  // kHostCopy
};

}  // namespace backplane::gpu
