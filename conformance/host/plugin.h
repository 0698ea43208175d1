// SPDX-License-Identifier: Apache-2.0
// A plugin's library, its backend and a device, each owned by a class whose destructor releases it.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "host/detail.h"
#include "host/graph.h"
#include "host/host.h"

namespace backplane::conform {

// The sanitizer that this program is built with, as a host offer states it.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kOwnSanitizer = BP_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
constexpr uint32_t kOwnSanitizer = BP_SANITIZER_THREAD;
#else
constexpr uint32_t kOwnSanitizer = BP_SANITIZER_NONE;
#endif

// Thrown with a one-line message if the plugin breaks the contract so badly that a check cannot continue.
struct Breach : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A plugin's library, opened with the same flags as in the loader. The destructor unloads it, unless keep_loaded() was
// called; the loader never unloads one.
class Library {
 public:
  // Throws Breach if the file does not load or is not a plugin.
  explicit Library(const std::filesystem::path& file);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  const bp_plugin_t* query(const bp_host_offer_t* offer) const { return query_(offer); }
  const bp_plugin_t* query(uint32_t version_min = BP_ABI_VERSION_MIN, uint32_t version_max = BP_ABI_VERSION) const;
  std::string directory() const { return directory_; }
  // Keeps the code loaded until the process ends, because threads may still run it.
  void keep_loaded() const { is_kept_ = true; }

 private:
  void* handle_ = nullptr;
  bp_plugin_query_t query_ = nullptr;
  std::string directory_;
  mutable bool is_kept_ = false;
};

// A backend that the plugin created.
class Backend {
 public:
  // Throws Breach if the plugin refuses this host, lacks a required slot or creates no backend.
  Backend(const Library& library, Host& host);
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  ~Backend();

  const bp_plugin_t& plugin() const { return *plugin_; }
  Host& host() const { return host_; }
  bp_backend_t* raw() const { return raw_; }
  // Both functions throw Breach if the plugin returns an error.
  uint32_t device_count() const;
  bp_device_info_t info(uint32_t index) const;

 private:
  Host& host_;
  const bp_plugin_t* plugin_;
  bp_backend_t* raw_ = nullptr;
};

// A device's verdict on a node, with a copy of its text. See bp_verdict_t.
struct Claim {
  uint32_t answer = BP_ANSWER_NO;
  uint32_t reason = BP_REASON_OPERATOR;
  uint32_t compute_types = 0;
  std::string detail;
  uint32_t verdicts = 0;  // the number of verdicts received; 0 and 1 are valid

  bool operator==(const Claim&) const = default;
};

// An open device.
class Device {
 public:
  // Throws Breach if the device does not exist or does not open. `how` is NULL for the defaults.
  Device(const Backend& backend, uint32_t index, const bp_device_open_t* how = nullptr);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const Backend& backend() const { return backend_; }
  const bp_plugin_t& plugin() const { return backend_.plugin(); }
  const bp_device_info_t& info() const { return info_; }
  bp_device_t* raw() const { return raw_; }
  bool flushes() const { return (info_.flags & BP_DEVICE_FLUSHES_SUBNORMALS) != 0; }
  // The newest version of the ONNX operator set that the plugin states; 0 if it states none.
  uint32_t newest_opset() const;

  // Sets `out_claims` to one claim for each node.
  Answer coverage(const Graph& graph, std::vector<Claim>& out_claims) const;
  // Returns BP_UNSUPPORTED if the plugin rejects or splits the graph, and BP_OK if it has no `review`.
  Answer review(const Graph& graph) const;

 private:
  const Backend& backend_;
  bp_device_info_t info_ = {};
  bp_device_t* raw_ = nullptr;
};

}  // namespace backplane::conform
