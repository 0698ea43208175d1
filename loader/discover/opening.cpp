// SPDX-License-Identifier: Apache-2.0
#include "discover/opening.h"

#include <fmt/format.h>

#include <utility>

#include "base/abi.h"
#include "discover/digest.h"
#include "discover/known.h"
#include "discover/library.h"
#include "discover/negotiate.h"
#include "discover/process_state.h"
#include "discover/survey.h"
#include "discover/writers.h"

namespace backplane {

Refusal open_library(const Opening& opening, const Log& log, Backend& out, FileFacts& out_facts) {
  const std::string name = opening.library.string();
  File file;
  if (Refusal refusal = file.open(opening.library)) return refusal;
  if (Refusal refusal = check_writers(opening.library, file)) return refusal;
  if (Refusal refusal = check_library(opening.library, file)) return refusal;
  const auto content = blake2b_of(file);
  if (!content)
    return {BP_REFUSED_UNTRUSTED,
            fmt::format("{} is not used: it changed while it was read, or cannot be read: try again", name)};
  if (!opening.sha256.empty())
    if (const auto sha256 = sha256_of(file); sha256 != opening.sha256)
      return {BP_REFUSED_UNTRUSTED,
              fmt::format("{} is not the library of manifest {}: its SHA-256 is {}, not {}: install both again", name,
                          opening.manifest, sha256.value_or("unreadable"), opening.sha256)};
  if (opening.isolation) {
    if (Refusal refusal = open_isolated(opening, file, out)) return refusal;
  } else {
    if (Refusal refusal = probe_library(opening.library, file, *content, opening.probe, log)) return refusal;
    if (opening.probe.policy == ProbePolicy::kNever) out.kept_parts = KeptParts::kAll;
    bp_plugin_query_t query = nullptr;
    {
      const KeptProcessState kept(out.kept_parts);  // the library's constructors run
      if (Refusal refusal = load_library(opening.library, file, *content, query)) return refusal;
    }
    if (Refusal refusal = negotiate(query, name, opening.expected_id, *out.tables)) return refusal;
  }
  out.id = abi::string(out.plugin->id);
  out.library = name;
  out_facts = file.facts();
  return {};
}

void load_when_used(Backend& backend, Opening opening, std::shared_ptr<Services> services, size_t devices,
                    std::string situation) {
  backend.load = [&backend, opening = std::move(opening), services = std::move(services), devices,
                  situation = std::move(situation)]() -> Status {
    const auto refused = [](const Refusal& refusal) { return Status(BP_INCOMPATIBLE, refusal.text); };
    // An earlier use may have created the backend, and then found that its devices have changed. Its library must stay:
    // the handle of an isolated backend refers to it.
    if (!backend.handle) {
      FileFacts facts;
      if (const Refusal refusal = open_library(opening, services->log().about(LogCategory::kDiscover), backend, facts))
        return refused(refusal);
      if (const Refusal refusal = create_backend(backend, opening.library.parent_path().string(), services, {}))
        return refused(refusal);
    }
    std::vector<bp_device_info_t> infos;
    const Refusal refusal = survey_devices(backend, infos);
    if (!refusal && infos.size() == devices) return {};
    forget_backend(opening.library, situation);
    if (refusal) return refused(refusal);
    return {BP_STALE, fmt::format("backend {} has {} devices, not {} as before: create a new environment", backend.id,
                                  infos.size(), devices)};
  };
}

}  // namespace backplane
