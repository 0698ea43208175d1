// SPDX-License-Identifier: Apache-2.0
// Writes a graph of the ABI as an ONNX ModelProto.
#pragma once

#include "backplane/graph.h"
#include "base/status.h"

namespace backplane::model {

// Implements bp_graph_api_t.serialize. The bytes of the outermost graph's initializers, except strings, go to `sink`
// without being copied.
Status serialize(const bp_graph_t& graph, uint64_t external_above, bp_text_sink_t sink, void* context);

// Writes the graph with the hash of each weight, also in subgraphs, in place of the weight's bytes or file. So the
// bytes that `sink` receives are equal for graphs of equal content, wherever the weights' files lie.
Status serialize_identity(const bp_graph_t& graph, bp_text_sink_t sink, void* context);

}  // namespace backplane::model
