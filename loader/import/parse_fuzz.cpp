// SPDX-License-Identifier: Apache-2.0
// Fuzzes the import: any bytes lead to a result or an error, never a crash or a hang. An imported model can be
// serialized, and shape inference of a copy of it succeeds again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "import/import.h"
#include "ops/infer/infer.h"
#include "view/view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace backplane;
  model::Source source;
  source.bytes = data;
  source.size = size;
  source.limits = {.bytes = uint64_t{256} << 20, .seconds = 5};
  auto imported = model::import(source);
  if (!imported.ok()) return 0;
  const std::shared_ptr<model::Model> model = imported.take();
  for (const auto& calls : {model::WholeCalls(), model::all_calls(*model)}) {
    const auto view = model::View::whole(model, {.opsets = {{"", 13}}}, calls);
    const bp_graph_t* graph = view->abi();
    graph->api->serialize(
        graph, UINT64_MAX, [](void*, bp_text_t) {}, nullptr, nullptr);
  }
  if (!ops::infer(*model::copy(*model), {.fold = false, .foreign = {}}).ok()) std::abort();
  return 0;
}
