// SPDX-License-Identifier: Apache-2.0
// Any bytes at all: an answer, never a crash or a hang. What comes in must go out again.
#include <cstddef>
#include <cstdint>

#include "model/import.h"
#include "model/view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  backplane::model::Source source;
  source.bytes = data;
  source.size = size;
  auto model = backplane::model::import(source);
  if (!model.ok()) return 0;
  const auto view = backplane::model::View::whole(*model, {{"", 13}});
  const bp_graph_t* graph = view->abi();
  graph->api->serialize(
      graph, UINT64_MAX, [](void*, bp_text_t) {}, nullptr, nullptr);
  return 0;
}
