// SPDX-License-Identifier: Apache-2.0
// An island with concrete extents: kernels in order, and where every tensor lies. Immutable once prepared, shared by
// instances.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "engine/driver.h"
#include "engine/kernel_source.h"
#include "engine/shape.h"

namespace backplane::gpu {

// Memory of the device that never changes again: a weight, or what was computed from weights alone.
using Constant = Buffer;

// A piece of memory that kernels read and write.
struct Storage {
  enum class Place { kInput, kOutput, kConstant, kArena, kFault };
  Place place = Place::kArena;
  uint32_t slot = 0;          // kInput, kOutput: of the island
  uint32_t weight = BP_NONE;  // kConstant: the weight of the graph that it is, or BP_NONE when a kernel makes it
  uint64_t bytes = 0;
  uint64_t offset = 0;                                 // kArena
  std::shared_ptr<const std::vector<std::byte>> data;  // kConstant: its bytes, when the planner made them
  std::string key;                                     // kConstant: what it is, the same in every plan of a device
  Constant constant;                                   // kConstant, once prepared
};

// An argument of a kernel: a storage, or a value.
struct Argument {
  uint32_t storage = BP_NONE;
  uint32_t bytes = 0;
  std::array<std::byte, 32> value{};
};

struct Launch {
  KernelSource source;
  std::vector<Argument> arguments;
  std::vector<uint32_t> reads, writes;  // storages
  std::array<size_t, 3> global{1, 1, 1};
  std::array<size_t, 3> local{1, 1, 1};
  uint32_t node = 0;  // of the graph
  bool once = false;  // reads constants alone: run when the plan is prepared, never again
};

// An input of the island whose bytes the plan follows from: axes, extents, paddings that are known at run time alone.
struct HostInput {
  uint32_t slot;
  std::vector<std::byte> bytes;
};

struct Plan {
  std::vector<Launch> launches;
  std::vector<Storage> storages;
  std::vector<Shape> outputs;  // of the island
  std::vector<HostInput> host_inputs;
  bool may_fault = false;  // a kernel may write its node to the storage kFault: an index was beyond its extent
  uint64_t arena_bytes = 0;
  uint64_t constant_bytes = 0;
};

// Gives every storage of the arena its offset: those that live at the same time do not overlap. `alignment` is that of
// each offset.
void pack(Plan& plan, uint64_t alignment);

}  // namespace backplane::gpu
