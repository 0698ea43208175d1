// SPDX-License-Identifier: Apache-2.0
// An island with concrete extents: kernels in order, and the storage of every tensor. Immutable once prepared, shared
// by instances.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "engine/driver.h"
#include "engine/kernel_source.h"
#include "engine/shape.h"

namespace backplane::gpu {

// Constant memory of the device: a weight, or what was computed from weights alone.
using Constant = Buffer;

// A piece of memory that kernels read and write.
struct Storage {
  enum class Place { kInput, kOutput, kConstant, kArena, kFault };
  Place place = Place::kArena;
  uint32_t slot = 0;          // kInput, kOutput: of the island
  uint32_t weight = BP_NONE;  // kConstant: a weight of the graph, or BP_NONE if a kernel computes it
  uint64_t bytes = 0;
  uint64_t offset = 0;                                 // kArena
  std::shared_ptr<const std::vector<std::byte>> data;  // kConstant: its bytes, if the planner made them
  std::string key;                                     // kConstant: identifies its content across the plans of a device
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
  bool once = false;  // reads only constants: run once, when the plan is prepared
};

// An input of the island on whose bytes the plan depends: axes, extents or paddings that are known only at run time.
struct HostInput {
  uint32_t slot;
  std::vector<std::byte> bytes;
};

struct Plan {
  std::vector<Launch> launches;
  std::vector<Storage> storages;
  std::vector<Shape> outputs;  // of the island
  std::vector<HostInput> host_inputs;
  bool may_fault = false;  // a kernel may report an index out of range in the storage kFault
  uint64_t arena_bytes = 0;
  uint64_t constant_bytes = 0;
};

// Sets the offset of every storage in the arena, a multiple of `alignment`, so that those that are live at the same
// time do not overlap.
void pack(Plan& plan, uint64_t alignment);

}  // namespace backplane::gpu
