// SPDX-License-Identifier: Apache-2.0
// The script of a partial device, read from the plugin's options. "partial.devices" is the number of devices. Each
// other option applies to all of them ("partial.ops") or to one ("partial.1.ops"). The last column is the default:
//
//   ops       operators that it claims: "*", "Conv,Relu", or "!Softmax" for all but             *
//   mask      "SEED:PERCENT": it claims only that share of the nodes in `ops`, drawn by id  all
//   seconds   the cost it reports for a node: a number, or "random:SEED" (1 µs to 1 ms)     the CPU backend's
//   reject    operators whose islands it rejects in review                                  none
//   split     operators that it gives back in review, where it also splits the island       none
//   resplit   1: in review it splits every island into one part, the island itself            0
//   groups    1: it reports a group of all nodes that it claims                               0
//   max_nodes largest number of nodes in an island; review splits larger ones               unbounded
//   kind      BP_DEVICE_*                                                                   5
//   uuid      16 letters at most                                                            none
//   memory    "host"; "own": only what was copied to it or imported; "shared": host memory; host
//             "flushed": host memory, but it sees the host's writes only after a flush
//   bytes     memory that it reports, for "own"                                             the CPU backend's
//   peers     1: the devices copy directly between each other. Each also reports a device   0
//             with index 8, which does not exist
//   align     bytes, a power of two: its allocations start at multiples of it, and a run refuses    64, and runs
//             memory that does not                                                           accept any memory
//   scratch   bytes that each instance needs bound, and overwrites in each run               0
//   forgets   the call of output_extents, counted from 1, from which on it reports BP_NONE    none
//   async     1: `run` returns at once, a thread does the work, and there are streams        0
//   marks     1: it has semaphores, for which the other devices can wait                    0
//   mark_files 1: it exports its semaphores as descriptors, and imports no descriptor         0
//   run_us    minimum time of each run                                                      0
//   meet      how many runs must have been active at once before a run ends; it waits 10 s at most 0
//   copy_us   minimum time of each copy                                                     0
//   hang_copy the copy, counted from 1, that never ends                                     none
//   touches   1: it reads imported memory once more when the import ends                    0
//   copy_meets 1: a copy ends only after a device ran during it; it waits 10 s at most      0
//   open_us   minimum time of opening the device and, for device 0, of creating the backend   0
//   compile_us minimum time of each compile                                                 0
//   held      "query" (of coverage) or "compile": such calls take until the test sets         none
//             `let_go` (counters.h), 60 s at most
//   fault     "KIND@NODE#N": in the Nth run (from 1) of a program that contains the node:   none
//             "lost" (for good), "internal", "exhausted", "hang" until cancelled or past the deadline,
//             "late": the run takes half a second longer, or "held": it takes until the test sets
//             `let_go` (counters.h), 60 s at most, both even if cancelled or past the deadline
//   cache     1: its programs can be stored; "usable", "recompile": they can, and it reports  0
//             BP_CACHE_USABLE or BP_CACHE_RECOMPILE for each stored one
//   parses    1: it has each island written as an ONNX model before it compiles it         0
//   pool      1: while open, it holds memory from the framework's allocator                0
//   stamp     its compiler's version: stored programs of another version are compiled again 1
//
// It adds one operator: org.backplane.test Same, whose output is its input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/plugin.h"

namespace backplane::partial {

enum class Memory { kHost, kOwn, kShared, kFlushed };

struct Fault {
  std::string kind, node;
  uint64_t run = 1;
};

struct Script {
  bool claims_all = true;  // true: all operators except `ops`; false: only `ops`
  std::vector<std::string> ops;
  uint64_t mask_seed = 0;
  uint64_t mask_percent = 100;
  std::optional<double> seconds;
  std::optional<uint64_t> cost_seed;
  std::vector<std::string> reject, split;
  uint64_t max_nodes = UINT64_MAX;
  uint32_t kind = BP_DEVICE_OTHER;
  std::string uuid;
  Memory memory = Memory::kHost;
  std::optional<uint64_t> bytes;
  bool resplit = false;
  bool groups = false;
  bool peers = false;
  uint64_t align = 64;
  bool refuses_unaligned = false;
  uint64_t scratch = 0;
  uint64_t forgets = UINT64_MAX;
  bool async = false;
  bool marks = false;
  bool mark_files = false;
  bool copy_meets = false, touches = false;
  uint64_t run_us = 0, meet = 0, copy_us = 0, open_us = 0, compile_us = 0, hang_copy = 0;
  std::optional<Fault> fault;
  std::string held;
  std::string cache = "0";
  std::string stamp = "1";
  bool parses = false, pool = false;

  bool claims(std::string_view op, uint64_t node_id) const;
  // The cost that the device reports for a node; nullopt: the cost from the CPU backend.
  std::optional<double> cost(uint64_t node_id) const;
};

// A pseudorandom number determined by `seed` and `id`.
uint64_t draw(uint64_t seed, uint64_t id);

// Throw sdk::Error for invalid values.
uint64_t read_devices(const bp_host_t* host);
Script read_script(const bp_host_t* host, uint32_t device);

bool contains(const std::vector<std::string>& list, std::string_view item);

}  // namespace backplane::partial
