// SPDX-License-Identifier: Apache-2.0
// Measured times of nodes and copies on this machine. Each device has a text file in the cache folder for each
// combination of its driver, options and number of threads:
//   backplane profile 1
//   <device: backend, release, driver, threads …>
//   <seconds> TAB <key>
// Malformed lines are skipped; a file whose first two lines differ from these, or to which other users can write, is
// ignored.
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
  // Reads the stored times of the device. They belong to one combination of options of its backend: those of the
  // environment, and `options`, those of the session.
  static Profile of(const Device& device, const Host::Options& options);

  bool empty() const { return seconds_.empty(); }
  std::optional<double> find(std::string_view key) const;
  void set(const std::string& key, double seconds);
  // Merges the times set by `set` into the file. Returns false if there is no cache folder or the file cannot be
  // written: the next process then measures again.
  bool save() const;

  const std::filesystem::path& path() const { return path_; }  // empty if there is no cache folder

 private:
  void read();

  std::string identity_;
  std::filesystem::path path_;
  std::map<std::string, double, std::less<>> seconds_;
  std::map<std::string, double, std::less<>> fresh_;  // set by `set`, not read from the file
};

// The extent of a dimension on which costs are based: the dimension's own or, if the model leaves it open, the extent
// that is assumed for its symbol (ir/formula.h), or kOpenExtent without a symbol.
int64_t expected_extent(const model::Graph& graph, const bp_dim_t& dim);

// The node's operator, attributes, types and shapes: on one device, nodes with the same key take the same time. An
// extent that the model leaves open is written as "?" and the expected one. Empty for nodes with subgraphs.
std::string profile_key(const model::Graph& graph, const model::Node& node, uint32_t compute_types);
// The key of a copy of `bytes` bytes; `from` and `to` are names of devices or "host".
std::string profile_key_of_copy(std::string_view from, std::string_view to, uint64_t bytes);

}  // namespace backplane
