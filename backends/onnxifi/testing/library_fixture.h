// SPDX-License-Identifier: Apache-2.0
// Shared by the tests that run ONNXIFI libraries through the loader: environments with a vendor's library, and models.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "testing/client_fixture.h"

namespace onnxifi_test {

using namespace backplane;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

inline const std::string kPlugin = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_onnxifi.so";
inline const std::string kCpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";

inline std::string folder(const std::string& vendor) {
  return VENDORS "/" + vendor;
}

inline Environment vendors(const std::string& path, std::map<std::string, std::string> options = {}) {
  options["onnxifi.path"] = path;
  return environment({kCpu, kPlugin}, std::move(options));
}
inline Environment vendor(const std::string& name, std::map<std::string, std::string> options = {}) {
  return vendors(folder(name), std::move(options));
}

inline SessionOptions on(const std::string& device) {
  SessionOptions how;
  how.devices = {device};
  how.fallback = BP_FALLBACK_FORBID;
  return how;
}
inline SessionOptions pinned(std::map<std::string, std::string> pins) {
  SessionOptions how;
  how.pins = std::move(pins);
  how.options["loader.costs"] = "reported";  // the loader does not measure copies
  return how;
}

inline std::vector<float> values(const Tensor& tensor) {
  const auto* const first = static_cast<const float*>(tensor.data());
  return {first, first + tensor.count()};
}

// y = Relu(x · w + b), [2,2]
inline Model dense() {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {2, 2});
  const uint32_t w = graph.weight("w", Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const uint32_t b = graph.weight("b", Tensor::of<float>({2}, {-10, 10}));
  return graph.finish({graph.node("Relu", "y", {graph.node("Add", "s", {graph.node("MatMul", "p", {x, w}), b})})});
}

// Neg is meant for the CPU, Relu and Add for the library: n0 (cpu), r and a (onnxifi), n1 (cpu), r2 (onnxifi).
inline Model mixed() {
  Graph graph;
  const uint32_t x = graph.input("x", BP_DTYPE_FLOAT, {3});
  const uint32_t n0 = graph.node("Neg", "n0", {x});
  const uint32_t a = graph.node("Add", "a", {graph.node("Relu", "r", {n0}), x});
  return graph.finish({graph.node("Relu", "r2", {graph.node("Neg", "n1", {a})}), a});
}

inline bp_node_verdict_t verdict_of(const Session& session, const Environment& env, uint32_t node = 0) {
  for (const Device& device : env.devices()) {
    if (device.name == "onnxifi") return session.verdict(node, device.info.id);
  }
  ADD_FAILURE() << "there is no device onnxifi";
  return {};
}

inline Model one(const char* op, bp_dtype_t dtype, const std::vector<int64_t>& extents,
                 const std::vector<std::string>& symbols = {}, const std::map<std::string, int64_t>& numbers = {}) {
  Graph graph;
  return graph.finish({graph.node(op, "n", {graph.input("x", dtype, extents, symbols)}, numbers)});
}

}  // namespace onnxifi_test
