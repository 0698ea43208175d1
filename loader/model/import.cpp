// SPDX-License-Identifier: Apache-2.0
// The way from bytes to the canonical graph, one call a stage.
#include "model/import.h"

#include <new>

#include "model/gradient.h"
#include "model/hash.h"
#include "model/names.h"
#include "model/parse.h"
#include "model/passes.h"
#include "ops/infer.h"
#include "ops/schema.h"
#include "ops/upgrade.h"

namespace backplane::model {

Result<std::shared_ptr<Model>> import(const Source& source) {
  auto parsed = parse(source);
  if (!parsed.ok()) {
    const bool is_named = source.path.empty() || parsed.status().text().find(source.path) != std::string_view::npos;
    return is_named ? parsed.take_status() : parsed.take_status().context("model " + in_quotes(source.path));
  }
  std::shared_ptr<Model> model = parsed.take();
  if (Status status = canonicalize(*model); !status.ok())
    return std::move(status).context("model " + in_quotes(model->origin));
  return model;
}

Status canonicalize(Model& model) try {
  model.hashes = std::make_shared<WeightHashes>();
  BP_TRY(check(model));
  BP_TRY(inline_functions(model));
  BP_TRY(absorb_constants(model));
  BP_TRY(ops::upgrade(model));
  BP_TRY(differentiate(model));
  BP_TRY(ops::infer(model));
  settle(model);
  prune(model);
  find_calls(model);
  return {};
} catch (const std::bad_alloc&) {
  return Status(BP_RESOURCE_EXHAUSTED, "no memory left for the model");
}

uint32_t canonical_opset() {
  return ops::newest_opset("");
}

}  // namespace backplane::model
