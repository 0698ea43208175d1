// SPDX-License-Identifier: Apache-2.0
// An opened model.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "backplane/client/call.hpp"
#include "backplane/graph.hpp"

namespace backplane {
inline namespace client {

// A model, checked and canonicalized.
class Model {
 public:
  explicit Model(bp_model_t* model, std::shared_ptr<const void> keep = nullptr)
      : model_(model, [keep = std::move(keep)](bp_model_t* m) { api().model_destroy(m); }) {}

  // Valid as long as the model exists.
  view::Graph graph() const {
    const bp_graph_t* graph = api().model_graph(model_.get());
    if (graph == nullptr) {
      (void)report();  // throws the reason, such as a fork since the model was made
      throw std::bad_alloc();
    }
    return view::Graph(graph);
  }
  // The JSON output of `backplane info --json`, without `uncovered`.
  std::string report() const { return detail::collect(api().model_report, get()); }
  bp_model_t* get() const { return model_.get(); }

 private:
  std::shared_ptr<bp_model_t> model_;
};

}  // namespace client
}  // namespace backplane
