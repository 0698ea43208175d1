// SPDX-License-Identifier: Apache-2.0
// The script for a partial device, read from the plugin's options. "partial.devices" is their number; each other option
// applies to all of them ("partial.ops") or to one ("partial.1.ops"):
//
//   ops       operators that it claims: "*", "Conv,Relu", or "!Softmax" for all but             *
//   mask      "SEED:PERCENT" of the nodes, drawn by node id, out of those                   all
//   seconds   the cost it reports for a node: a number, or "random:SEED" (1 µs to 1 ms)     the CPU backend's
//   reject    operators whose islands it rejects in review                                  none
//   split     operators at which it splits an island in review                              none
//   groups    1: it reports a group of all nodes that it claims                               0
//   max_nodes of an island; it splits those that are larger                                 unbounded
//   kind      BP_DEVICE_*                                                                   5
//   uuid      16 letters at most                                                            none
//   memory    "host"; "own": what was imported, or copied to it; "shared": host memory,     host
//             "flushed": it does, and sees host writes after a flush alone
//   peers     1: the devices copy directly between each other                               0
//   scratch   bytes that each instance wants bound, and overwrites in each run               0
//   async     1: `run` returns at once, a thread does the work, and there are streams        0
//   marks     1: its semaphores can be waited for by the other devices                      0
//   run_us    what each run takes at least                                                  0
//   meet      how many devices must have run at once before a run ends; it waits 10 s at most 0
//   copy_us   what each copy takes at least                                                 0
//   copy_meets 1: a copy ends when a device ran during it; it waits 10 s at most            0
//   compile_us what each compile takes at least                                             0
//   fault     "KIND@NODE#N": in the Nth run (from 1) of the island that holds the node:     none
//             "lost" (for good), "internal", "exhausted", "hang" until cancelled or late, or "late": half a second
//             more, whatever the run says
//   cache     1: its programs can be stored; "usable" or "recompile": it says so of each    0
//   stamp     of its compiler: entries of another one are to be compiled anew               1
//
// One operator is its own: org.backplane.test Same, whose output is its input.
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
  bool claims_all = true;  // except `ops`; otherwise only `ops`
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
  bool groups = false;
  bool peers = false;
  uint64_t scratch = 0;
  bool async = false;
  bool marks = false;
  bool copy_meets = false;
  uint64_t run_us = 0, meet = 0, copy_us = 0, compile_us = 0;
  std::optional<Fault> fault;
  std::string cache = "0";
  std::string stamp = "1";

  bool claims(std::string_view op, uint64_t node_id) const;
  // The cost that it reports for a node; none: the cost that the CPU backend reports.
  std::optional<double> cost(uint64_t node_id) const;
};

// A number that depends on seed and id only.
uint64_t draw(uint64_t seed, uint64_t id);

// Throws sdk::Error for invalid values.
uint64_t read_devices(const bp_host_t* host);
Script read_script(const bp_host_t* host, uint32_t device);

bool contains(const std::vector<std::string>& list, std::string_view item);

}  // namespace backplane::partial
