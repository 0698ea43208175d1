// SPDX-License-Identifier: Apache-2.0
// The environment behind a bp_env_t: the backends that were found, and their devices.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/loader.h"
#include "base/budget.h"
#include "base/status.h"
#include "discover/device.h"
#include "discover/search.h"
#include "host/host.h"

namespace backplane {

// A file that discovery examined, or a plugin that is linked into the program. Holds the strings of its bp_candidate_t.
struct Candidate {
  uint32_t refusal = BP_REFUSED_NONE;
  std::string text, id, manifest, library, found_by;
  uint32_t version = 0;
  uint32_t device_count = 0;
  bool isolated = false;  // the backend runs in a separate process
};

// The cache of compiled programs. If `folder` is empty, programs are not stored.
struct CacheSettings {
  std::filesystem::path folder;
  uint64_t bytes = uint64_t{1} << 30;  // limit for all entries together; the least recently used are removed
};

class Environment {
 public:
  // Finds and loads backends, and negotiates with them. `desc` is in this loader's version of the struct.
  static Result<std::shared_ptr<Environment>> create(const bp_env_desc_t& desc);
  ~Environment();

  std::span<const SearchPath> search_paths() const { return search_paths_; }  // that were searched, in order
  std::span<const Candidate> candidates() const { return candidates_; }
  std::span<const std::unique_ptr<Device>> devices() const { return devices_; }
  // Each returns BP_NOT_FOUND if there is no such device. `find` takes a name ("cpu" is "cpu:0"), and its error lists
  // the existing names. `device` takes bp_device_info_t.index, from 1; `device_of` takes bp_device_info_t.id.
  Result<Device*> find(std::string_view name) const;
  Result<Device*> device(uint32_t index) const;
  Result<Device*> device_of(uint64_t id) const;
  Services& services() const { return *services_; }
  const CacheSettings& cache() const { return cache_; }
  const ImportLimits& import_limits() const { return import_limits_; }
  // Whether models whose declared extents contradict their operators are refused.
  bool refuses_contradictions() const { return refuses_contradictions_; }
  // A run is abandoned if it has not ended this long after its deadline, or after one of its devices was abandoned.
  std::chrono::milliseconds abandon_after() const { return abandon_after_; }

 private:
  struct Maker;  // builds the environment; in environment.cpp
  Environment() = default;
  std::shared_ptr<Services> services_;
  CacheSettings cache_;
  ImportLimits import_limits_;
  bool refuses_contradictions_ = false;
  std::chrono::milliseconds abandon_after_{};
  std::vector<SearchPath> search_paths_;
  std::vector<Candidate> candidates_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace backplane
