// SPDX-License-Identifier: Apache-2.0
// An island (a set of nodes that one device runs) planned for concrete extents: its kernels in order, and the storage
// of every tensor. Immutable once prepared; shared by instances.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <variant>

#include "engine/convolution_library.h"
#include "engine/driver.h"
#include "engine/kernel_source.h"
#include "engine/product_library.h"
#include "engine/shape.h"

namespace backplane::gpu {

// Constant device memory: a weight, a table that the planner computed, or the result of kernels that read only
// constants.
using Constant = Buffer;

// A piece of memory that kernels read or write.
struct Storage {
  enum class Place { kInput, kOutput, kConstant, kArena, kFault };
  Place place = Place::kArena;
  uint32_t slot = 0;          // kInput, kOutput: the island's input or output
  uint32_t weight = BP_NONE;  // kConstant: a weight of the graph, or BP_NONE if it is computed
  uint64_t bytes = 0;
  uint64_t offset = 0;                                 // kArena
  std::shared_ptr<const std::vector<std::byte>> data;  // kConstant: its bytes, if the planner computed them
  std::string key;                                     // kConstant: identifies the content in all plans of the device
  Constant constant;                                   // kConstant: set once the plan is prepared
};

// An argument of a kernel: a storage's index, or a value.
struct Argument {
  uint32_t storage = BP_NONE;
  uint32_t bytes = 0;
  std::array<std::byte, 32> value{};
};

// What a library of the driver computes.
struct LibraryCall {
  std::variant<ProductProblem, ConvolutionProblem> problem;
  LibraryAlgorithm algorithm;  // chosen when the plan is prepared
};

struct Launch {
  KernelSource source;  // with `call`, only its entry is used: a name for messages and traces
  std::optional<LibraryCall> call;
  std::vector<Argument> arguments;      // with `call`, indexed by LibraryArgument
  std::vector<uint32_t> reads, writes;  // indices of storages
  std::array<size_t, 3> global{1, 1, 1};
  std::array<size_t, 3> local{1, 1, 1};
  uint32_t node = 0;  // the node's index in the graph
  bool once = false;  // reads only constants, so it runs once, when the plan is prepared
  // Copies the storage that it reads to the one that it writes, element by element. A run leaves this launch out if
  // both are the same memory.
  bool is_copy = false;
};

// An input of the island whose bytes the plan depends on, such as axes or extents that are known only at run time.
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

// Sets the offset of every storage in the arena, a multiple of `alignment`, so that storages in use at the same time
// do not overlap, and sets `arena_bytes`.
void pack(Plan& plan, uint64_t alignment);

}  // namespace backplane::gpu
