// SPDX-License-Identifier: Apache-2.0
#include "isolate/staging.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <string>

#include "base/file_limit.h"

namespace backplane::isolate {
namespace {

constexpr uint64_t kSmallTensor = 64 << 10;  // in bytes; up to this size, copies share a block
constexpr uint64_t kSmallBlock = 256 << 10;
// In bytes. Pieces start at multiples of this; a device may require that alignment (bp_space_t.alignment).
constexpr uint64_t kAlignment = 4096;
constexpr uint64_t kMostPiece = uint64_t{1} << 62;

}  // namespace

Result<Piece> StagingPool::take(uint64_t bytes) {
  const auto failed = [&] {
    return Status(BP_RESOURCE_EXHAUSTED,
                  "cannot allocate shared memory for " + std::to_string(bytes) + " bytes of a tensor");
  };
  if (bytes > kMostPiece) return failed();
  const uint64_t size = std::bit_ceil(std::max(bytes, kAlignment));
  if (const auto found = std::ranges::find(free_, size, &Piece::bytes); found != free_.end()) {
    const Piece piece = *found;
    free_.erase(found);
    return piece;
  }
  const bool small = size <= kSmallTensor;
  if (small)
    for (Staging& block : blocks_)
      if (block.bytes == kSmallBlock && block.bytes - block.used >= size) {
        block.used += size;
        return Piece{&block, block.used - size, size};
      }
  static std::atomic<uint64_t> last{uint64_t{1} << 63};  // larger than every id of a shared block of the loader
  Staging block;
  block.bytes = small ? kSmallBlock : size;
  block.block = ++last;
  const FileLimitFails limit;
  block.file = Descriptor(::memfd_create("backplane-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (block.file && ::ftruncate(block.file.get(), static_cast<off_t>(block.bytes)) == 0) {
    ::fcntl(block.file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    block.mapping = Mapping::of(block.file.get(), 0, block.bytes, PROT_READ | PROT_WRITE);
  }
  if (!block.mapping) return failed();
  block.used = size;
  blocks_.push_back(std::move(block));
  return Piece{&blocks_.back(), 0, size};
}

}  // namespace backplane::isolate
