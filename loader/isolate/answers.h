// SPDX-License-Identifier: Apache-2.0
// Replies to a plugin's requests about the graphs that were sent to its process.
#pragma once

#include <cstdint>
#include <vector>

#include "backplane/plugin.h"
#include "base/status.h"
#include "isolate/graph_wire.h"
#include "isolate/message.h"
#include "isolate/process.h"

namespace backplane::isolate {

// Replies to requests for weights, hashes and serialized graphs, and passes on progress reports. Borrows its arguments.
class GraphAnswers : public Answers {
 public:
  explicit GraphAnswers(const Graphs& graphs, const bp_compile_t* what = nullptr) : graphs_(graphs), what_(what) {}
  Status answer(Operation question, Reader& in, Writer& out, std::vector<Descriptor>& out_files) override;

 private:
  Status weight(const bp_graph_t& graph, uint32_t index, Writer& out, std::vector<Descriptor>& out_files);

  const Graphs& graphs_;
  const bp_compile_t* what_;  // receives progress reports; may be null
};

}  // namespace backplane::isolate
