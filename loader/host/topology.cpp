// SPDX-License-Identifier: Apache-2.0
#include "host/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <memory>
#include <set>

#include "host/cgroup.h"

namespace backplane {
namespace {

using System = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using Set = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

uint32_t logical_index(hwloc_obj_t object) {
  return object ? object->logical_index : BP_NONE;
}

bp_core_t core_of(hwloc_topology_t system, hwloc_obj_t unit, hwloc_const_cpuset_t allowed) {
  bp_core_t core{};
  core.id = unit->os_index;
  core.core = logical_index(hwloc_get_ancestor_obj_by_type(system, HWLOC_OBJ_CORE, unit));
  core.package = logical_index(hwloc_get_ancestor_obj_by_type(system, HWLOC_OBJ_PACKAGE, unit));
  const int node = hwloc_bitmap_first(unit->nodeset);
  core.numa_node = node < 0 ? BP_NONE : static_cast<uint32_t>(node);
  core.l3 = BP_NONE;
  for (hwloc_obj_t above = unit->parent; above; above = above->parent) {
    if (!hwloc_obj_type_is_dcache(above->type)) continue;
    const uint64_t bytes = above->attr->cache.size;
    if (above->attr->cache.depth == 1) core.l1_bytes = bytes;
    if (above->attr->cache.depth == 2) core.l2_bytes = bytes;
    if (above->attr->cache.depth == 3) {
      core.l3_bytes = bytes;
      core.l3 = above->logical_index;
    }
  }
  const int kind = hwloc_cpukinds_get_by_cpuset(system, unit->cpuset, 0);
  core.kind = kind < 0 ? 0 : static_cast<uint32_t>(kind);
  if (hwloc_bitmap_isset(allowed, unit->os_index)) core.flags |= BP_CORE_ALLOWED;
  return core;
}

uint64_t cache_line(hwloc_topology_t system) {
  hwloc_obj_t cache = hwloc_get_obj_by_type(system, HWLOC_OBJ_L1CACHE, 0);
  return cache && cache->attr->cache.linesize ? cache->attr->cache.linesize : 64;
}

}  // namespace

Result<Topology> Topology::read() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    return Status(BP_UNSUPPORTED, "hwloc cannot start: the machine's topology is unknown");
  System system(raw, &hwloc_topology_destroy);
  if (hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 || hwloc_topology_load(raw) != 0)
    return Status(BP_UNSUPPORTED, "hwloc cannot read the machine's topology");

  // The processors that the system allows and to which this process is bound.
  Set allowed(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(raw)), &hwloc_bitmap_free);
  Set bound(hwloc_bitmap_alloc(), &hwloc_bitmap_free);
  if (!allowed || !bound) return Status(BP_UNSUPPORTED, "out of memory for the machine's topology");
  if (hwloc_get_cpubind(raw, bound.get(), HWLOC_CPUBIND_PROCESS) == 0 &&
      hwloc_bitmap_intersects(allowed.get(), bound.get()))
    hwloc_bitmap_and(allowed.get(), allowed.get(), bound.get());

  Topology topology;
  for (hwloc_obj_t unit = nullptr; (unit = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_PU, unit));)
    topology.cores_.push_back(core_of(raw, unit, allowed.get()));
  if (topology.cores_.empty()) return Status(BP_UNSUPPORTED, "hwloc reports no processors");
  topology.numa_count_ = std::max(1, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_NUMANODE));
  topology.memory_bytes_ = std::min<uint64_t>(hwloc_get_root_obj(raw)->total_memory, cgroup_memory_limit());
  topology.cache_line_bytes_ = cache_line(raw);
  return topology;
}

uint32_t Topology::allowed_cores() const {
  std::set<uint32_t> cores;
  for (const bp_core_t& processor : cores_) {
    if (processor.flags & BP_CORE_ALLOWED) cores.insert(processor.core);
  }
  return static_cast<uint32_t>(cores.size());
}

bp_topology_t Topology::table() const {
  bp_topology_t table{};
  table.size = sizeof table;
  table.core_count = static_cast<uint32_t>(cores_.size());
  table.cores = cores_.data();
  table.core_stride = sizeof(bp_core_t);
  table.numa_count = numa_count_;
  table.memory_bytes = memory_bytes_;
  table.cache_line_bytes = cache_line_bytes_;
  return table;
}

}  // namespace backplane
