// SPDX-License-Identifier: Apache-2.0
#include "backplane/loader.h"
#include "c_api/handles.h"
#include "import/import.h"
#include "session/report.h"

using namespace backplane;
using c_api::fenced;

bp_model_t* c_api::wrap(std::shared_ptr<const model::Model> model) {
  auto handle = std::make_unique<bp_model_t>();
  handle->model = std::move(model);
  return handle.release();
}

const model::View& bp_model_t::view() const {
  std::call_once(viewed_, [&] { view_ = model::View::whole(model, {}); });
  return *view_;
}

bp_status_t bp_model_open(bp_env_t* env, const bp_model_source_t* source, bp_model_t** out_model, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_model, "out_model"));
    if (env) BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(const bp_model_source_t known, abi::read(source, "source"));
    BP_TRY(abi::check_chain(known.chain));
    const int given = (known.path.size != 0) + (known.bytes.data != nullptr) + (known.descriptor >= 0);
    if (given != 1)
      return {BP_INVALID_ARGUMENT,
              "source: " + std::to_string(given) +
                  " of path, bytes and descriptor are set: set exactly one (descriptor: -1 if unused)"};
    model::Source from;
    if (env) {
      from.limits = env->environment->import_limits();
      from.exact = env->environment->refuses_contradictions();
    }
    BP_ASSIGN(from.path, abi::path(known.path, "source.path"));
    from.bytes = known.bytes.data;
    from.size = known.bytes.size;
    from.descriptor = known.descriptor;
    BP_ASSIGN(from.directory, abi::path(known.directory, "source.directory"));
    BP_TRY(abi::check_array(known.weights, known.weight_count, known.weight_stride, "source.weights"));
    for (uint32_t i = 0; i < known.weight_count; ++i) {
      const bp_named_tensor_t weight = abi::element(known.weights, i, known.weight_stride);
      BP_ASSIGN(const bp_tensor_t tensor, abi::read(weight.tensor, "source.weights.tensor"));
      BP_TRY(abi::check_buffer(tensor.buffer, "source.weights.tensor.buffer"));
      if (env) BP_TRY(check_place(*env->environment, tensor.buffer, "source.weights.tensor.buffer").take_status());
      from.weights.emplace_back(abi::string(weight.name), tensor);
    }
    BP_ASSIGN(auto model, model::import(from));
    model::Owner& owner = model->add_owner();
    *out_model = c_api::wrap(std::move(model));
    owner.self = known.self;
    owner.release = known.release;
    return {};
  });
}

void bp_model_destroy(bp_model_t* model) {
  c_api::destroy(model);
}

const bp_graph_t* bp_model_graph(const bp_model_t* model) {
  const bp_graph_t* graph = nullptr;
  fenced(nullptr, [&]() -> Status {
    BP_TRY(c_api::usable(model, "model"));
    graph = model->view().abi();
    return {};
  });
  return graph;
}

bp_status_t bp_model_report(const bp_model_t* model, bp_text_sink_t sink, void* context, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(model, "model"));
    return c_api::send(report(*model->model), sink, context);
  });
}
