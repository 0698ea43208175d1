// SPDX-License-Identifier: Apache-2.0
#include "view/op_versions.h"

#include <algorithm>
#include <map>

#include "ops/schema/schema.h"
#include "ops/upgrade/upgrade.h"

namespace backplane::model {
namespace {

// Whether the attribute has its default value, so that omitting it means the same. ONNX states the default of dilations
// only in words.
bool is_default(const Attribute& attribute, const ops::Schema& form) {
  if (attribute.name == "dilations" && attribute.type == BP_ATTR_INTS)
    return std::ranges::all_of(attribute.ints(), [](int64_t dilation) { return dilation == 1; });
  const ops::AttributeRule* rule = form.attribute(attribute.name);
  return rule && rule->has_default && rule->fallback.data == attribute.data;
}

// Whether the older form can express the node's attributes. An attribute that it lacks must have its default.
bool fits_attributes(const Node& node, const ops::Schema& form) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name.starts_with("__")) continue;  // reserved for tools; the view omits it
    if (const ops::AttributeRule* rule = form.attribute(attribute.name)) {
      if (rule->type != attribute.type) return false;
    } else if (!is_default(attribute, *node.schema)) {
      return false;
    }
  }
  return std::ranges::all_of(form.attributes,
                             [&](const ops::AttributeRule& rule) { return !rule.required || node.find(rule.name); });
}

bool allows(const ops::Formal& formal, const Type& type) {
  if (type.kind == 0) return true;
  if (!(formal.kinds >> type.kind & 1)) return false;
  const Type* inner = &type;
  while (inner->element && inner->kind != BP_KIND_MAP) inner = inner->element.get();
  if (inner->dtype == BP_DTYPE_UNDEFINED || (inner != &type && formal.dtypes == 0)) return true;
  return inner->kind == BP_KIND_MAP || (inner->dtype < 64 && (formal.dtypes >> inner->dtype & 1));
}

// The types that a form's type parameters, such as "T", have in a node.
using Bindings = std::map<std::string_view, const Type*>;

// Whether the older form has these inputs or outputs with their types. It may require the same type for two of them
// whose types may differ in newer forms.
bool fits_values(const Candidate& c, const Operands& values, const std::vector<ops::Formal>& formals,
                 Bindings& bindings) {
  for (size_t slot = 0; slot < values.size(); ++slot) {
    if (values[slot] == BP_NONE) continue;
    if (slot >= formals.size() && (formals.empty() || formals.back().option != ops::Formal::kVariadic)) return false;
    const ops::Formal& formal = formals[std::min(slot, formals.size() - 1)];
    const Type& type = c.graph.values[values[slot]].type;
    if (!allows(formal, type)) return false;
    if (type.kind == 0 || type.dtype == BP_DTYPE_UNDEFINED) continue;
    if (formal.option == ops::Formal::kVariadic && !formal.homogeneous) continue;
    const auto [bound, added] = bindings.try_emplace(formal.type, &type);
    if (!added && (bound->second->kind != type.kind || bound->second->dtype != type.dtype)) return false;
  }
  return true;
}

// Returns what the older form of the node cannot express; empty if it can express the whole node.
std::string_view misfit(const Candidate& c, const ops::Schema& form) {
  if (!fits_attributes(c.node, form)) return "one of its attributes";
  if (c.node.inputs.size() < form.min_inputs) return "an omitted input";
  Bindings bindings;
  if (!fits_values(c, c.node.inputs, form.inputs, bindings)) return "an input or its type";
  if (!fits_values(c, c.node.outputs, form.outputs, bindings)) return "an output or its type";
  return {};
}

std::string needs(std::string_view what, const ops::Schema& form) {
  return std::string(what) + " needs version " + std::to_string(form.since_version) + " of " + std::string(form.name);
}

}  // namespace

OlderForm older_form(const Candidate& candidate, uint32_t newest, uint32_t written) {
  const Node& node = candidate.node;
  const ops::Schema* form = node.schema;
  while (form->since_version > newest) {
    const std::string name(form->name), version = std::to_string(form->since_version);
    const ops::Upgrade* change = ops::find_upgrade(*form);
    if (!form->older) return {nullptr, name + " is new in version " + version};
    if (change && change->function != ops::unchanged)
      return {nullptr, name + " has another form or meaning before version " + version};
    if (const Limit* limit = find_limit(*form)) {
      const Fit fit = limit->fits(candidate);
      if (fit == Fit::kNever || (fit == Fit::kUnknown && written >= limit->version))
        return {nullptr, needs(limit->what, *form)};
    }
    form = form->older;
  }
  if (form == node.schema) return {form, {}};
  std::string_view unfit = misfit(candidate, *form);
  if (unfit.empty()) return {form, {}};
  while (form != node.schema) {  // finds the oldest form that can express the node
    form = form->newer;
    const std::string_view next = misfit(candidate, *form);
    if (next.empty()) break;
    unfit = next;
  }
  return {nullptr, needs(unfit, *form)};
}

}  // namespace backplane::model
