// SPDX-License-Identifier: Apache-2.0
// A graph of the ABI as an ONNX ModelProto.
#pragma once

#include "backplane/graph.h"
#include "base/status.h"

namespace backplane::model {

// As bp_graph_api_t.serialize says. The bytes of large weights are handed to `sink` where they lie.
Status serialize(const bp_graph_t& graph, uint64_t external_above, bp_text_sink_t sink, void* context);

}  // namespace backplane::model
