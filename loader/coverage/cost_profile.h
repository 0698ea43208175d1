// SPDX-License-Identifier: Apache-2.0
// Measured times of nodes and copies on this machine. One text file for each device, in the cache folder:
//   backplane profile 1
//   <device: backend, release, driver, threads …>
//   <seconds> TAB <key>
// Malformed lines are skipped; a file with another first line is ignored.
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
  // The stored times of the device as opened with these options of its backend.
  static Profile of(const Device& device, const Host::Options& options);

  bool empty() const { return seconds_.empty(); }
  std::optional<double> find(std::string_view key) const;
  void set(const std::string& key, double seconds);
  // Merges the times that were set into the file. False where it cannot be written: the next process measures again.
  bool save() const;

  const std::filesystem::path& path() const { return path_; }  // empty where there is no cache folder

 private:
  void read();

  std::string identity_;
  std::filesystem::path path_;
  std::map<std::string, double, std::less<>> seconds_;
  std::map<std::string, double, std::less<>> fresh_;  // costs that were set here
};

// Operator, attributes, types and shapes: nodes with the same key take the same time on a device. Extents that the
// model leaves open count as in place/cost.h. Empty for nodes that have bodies.
std::string profile_key(const model::Graph& graph, const model::Node& node, uint32_t compute_types);
// A copy of `bytes` bytes to or from the device; `other` is the host or another device.
std::string profile_key_of_copy(std::string_view from, std::string_view to, uint64_t bytes);

}  // namespace backplane
