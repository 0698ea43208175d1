// SPDX-License-Identifier: Apache-2.0
#include "view/op_versions.h"

#include <algorithm>

#include "ops/schema/schema.h"
#include "ops/upgrade/upgrade.h"

namespace backplane::model {
namespace {

// Whether the older form can express the node's attributes. An attribute that it lacks must have its default.
bool fits_attributes(const Node& node, const ops::Schema& form) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name.starts_with("__")) continue;  // reserved for tools; the view omits it
    if (const ops::AttributeRule* rule = form.attribute(attribute.name)) {
      if (rule->type != attribute.type) return false;
      continue;
    }
    const ops::AttributeRule* now = node.schema->attribute(attribute.name);
    if (!now || !now->has_default || now->fallback.data != attribute.data) return false;
  }
  return std::all_of(form.attributes.begin(), form.attributes.end(),
                     [&](const ops::AttributeRule& rule) { return !rule.required || node.find(rule.name); });
}

bool fits_types(const Graph& graph, const Operands& values, const std::vector<ops::Formal>& formals) {
  for (size_t slot = 0; slot < values.size(); ++slot) {
    if (values[slot] == BP_NONE) continue;
    if (formals.empty()) return false;
    const ops::Formal& formal = formals[std::min(slot, formals.size() - 1)];
    const Type& type = graph.values[values[slot]].type;
    if (type.kind != BP_KIND_TENSOR || type.dtype == BP_DTYPE_UNDEFINED) continue;
    if (!(formal.dtypes >> type.dtype & 1)) return false;
  }
  return true;
}

}  // namespace

const ops::Schema* older_form(const Graph& graph, const Node& node, uint32_t newest) {
  const ops::Schema* form = node.schema;
  while (form && form->since_version > newest) {
    const ops::Upgrade* change = ops::find_upgrade(*form);
    if (change && change->function != ops::unchanged) return nullptr;
    form = form->older;
  }
  if (!form || form == node.schema) return form;
  const bool counts = node.inputs.size() >= form->min_inputs && node.inputs.size() <= form->max_inputs &&
                      node.outputs.size() <= form->max_outputs;
  const bool fits = counts && fits_attributes(node, *form) && fits_types(graph, node.inputs, form->inputs) &&
                    fits_types(graph, node.outputs, form->outputs);
  return fits ? form : nullptr;
}

}  // namespace backplane::model
