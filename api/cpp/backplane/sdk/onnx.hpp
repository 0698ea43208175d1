// SPDX-License-Identifier: Apache-2.0
// A graph as a serialized ONNX ModelProto, for vendors with their own parser or compiler.
#pragma once

#include "backplane/sdk/coverage.hpp"

namespace backplane::sdk {

// Calls `piece` with a std::string_view for each piece of the message, in order. A compiler that reads the message
// piece by piece needs no complete copy. Weights of more than `external_above` bytes that lie in files become
// references to the files. Rethrows exceptions of `piece`. Throws Error: BP_IO_ERROR, BP_UNSUPPORTED (over 2 GB).
template <class Piece>
void write_onnx(const Graph& graph, Piece&& piece, uint64_t external_above = UINT64_MAX) {
  struct Sink {
    Piece& piece;
    std::exception_ptr failure;
  } sink{piece, nullptr};
  const bp_text_sink_t take = [](void* context, bp_text_t bytes) {
    Sink& to = *static_cast<Sink*>(context);
    try {
      if (!to.failure) to.piece(text(bytes));
    } catch (...) {
      to.failure = std::current_exception();
    }
  };
  Detail detail;
  const bp_status_t status = graph.raw()->api->serialize(graph.raw(), external_above, take, &sink, detail.get());
  if (sink.failure) std::rethrow_exception(sink.failure);
  detail.check(status, "the graph cannot be written as ONNX");
}

// Returns the complete message, in the IR version and opsets that the device supports.
inline std::string onnx(const Graph& graph, uint64_t external_above = UINT64_MAX) {
  std::string bytes;
  write_onnx(
      graph, [&](std::string_view piece) { bytes.append(piece); }, external_above);
  return bytes;
}

}  // namespace backplane::sdk
