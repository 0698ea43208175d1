// SPDX-License-Identifier: Apache-2.0
#include "discover/opened.h"

#include "base/abi.h"
#include "discover/negotiate.h"

namespace backplane {

Refusal OpenedLibraries::open(const Opening& opening, const Log& log, Backend& out, FileFacts& out_facts) {
  Library& known = libraries_[{opening.library, opening.isolation ? opening.isolation->text() : ""}];
  const FileFacts facts = facts_of(opening.library);
  if (known.facts == facts && facts != FileFacts()) {
    if (known.refusal) return known.refusal;
    if (!opening.expected_id.empty() && !known.id.empty() && known.id != opening.expected_id)
      return wrong_id(opening.library.string(), known.id, opening.expected_id);
  }
  Refusal refusal = open_library(opening, log, out, out_facts);
  known = {facts, {}, {}};
  switch (refusal.code) {
    case BP_REFUSED_NONE:
    case BP_REFUSED_ID:
      known.id = abi::string(out.plugin->id);
      break;
    case BP_REFUSED_LINK:
    case BP_REFUSED_SYMBOL:
    case BP_REFUSED_DESCRIPTOR:
    case BP_REFUSED_VERSION:
    case BP_REFUSED_BY_PLUGIN:
    case BP_REFUSED_CRASHED:
    case BP_REFUSED_UNTRIED:
      known.refusal = refusal;
      break;
    default:  // the refusal is found quickly, or depends on the manifest
      break;
  }
  return refusal;
}

}  // namespace backplane
