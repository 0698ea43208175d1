// SPDX-License-Identifier: Apache-2.0
// libFuzzer: reads arbitrary bytes as a graph in a request of the loader, as the backend's process does.
#include <cstddef>
#include <cstdint>
#include <string>

#include "isolate/graph_wire.h"
#include "isolate/testing/small_graph.h"

namespace {

class NoService : public backplane::isolate::GraphService {
 public:
  backplane::Result<backplane::isolate::Mapping> weight(uint32_t, uint32_t, uint64_t) override {
    return backplane::Status(BP_UNSUPPORTED, "none");
  }
  void weight_consumed(uint32_t, uint32_t) override {}
  backplane::Status weight_hash(uint32_t, uint32_t, uint64_t*) override { return {BP_UNSUPPORTED, "none"}; }
  backplane::Status serialize(uint32_t, uint64_t, bp_text_sink_t, void*) override { return {BP_UNSUPPORTED, "none"}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  NoService service;
  auto graph = backplane::isolate::WireGraph::read(std::string(reinterpret_cast<const char*>(data), size), service);
  if (graph.ok()) backplane::isolate::testing::walk(*(*graph)->subject());
  return 0;
}
