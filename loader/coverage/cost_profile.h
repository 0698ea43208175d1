// SPDX-License-Identifier: Apache-2.0
// What nodes and copies took when they were measured on this machine. One text file for each device, in the cache
// folder:
//   backplane profile 1
//   <device: backend, release, driver, threads …>
//   <seconds> TAB <key>
// Lines that mean nothing are skipped, and a file of anything else is as good as none.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "discover/environment.h"
#include "ir/graph.h"

namespace backplane {

class Profile {
 public:
  // What is known of the device, opened with these options for its backend.
  static Profile of(const Device& device, const Host::Options& options);

  bool empty() const { return seconds_.empty(); }
  std::optional<double> find(std::string_view key) const;
  void set(const std::string& key, double seconds);
  // Writes what was set beside what others wrote meanwhile. False where it cannot be written: the next process measures
  // again.
  bool save() const;

  const std::filesystem::path& path() const { return path_; }  // empty where there is no cache folder

 private:
  void read();

  std::string identity_;
  std::filesystem::path path_;
  std::map<std::string, double, std::less<>> seconds_;
  std::map<std::string, double, std::less<>> fresh_;  // of those, what was set here
};

// Operator, attributes, types and shapes: nodes with the same key take the same time on a device. Extents that the
// model leaves open count as in place/cost.h. Empty for nodes that have bodies.
std::string profile_key(const model::Graph& graph, const model::Node& node, uint32_t compute_types);
// A copy of so many bytes to or from the device; `other` is the host or another device.
std::string profile_key_of_copy(std::string_view from, std::string_view to, uint64_t bytes);

}  // namespace backplane
