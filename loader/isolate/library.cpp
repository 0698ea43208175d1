// SPDX-License-Identifier: Apache-2.0
#include "isolate/library.h"

#include <fcntl.h>

#include "base/abi.h"
#include "isolate/proxy_backend.h"
#include "isolate/proxy_call.h"
#include "isolate/proxy_coverage.h"
#include "isolate/proxy_device.h"
#include "isolate/proxy_instance.h"
#include "isolate/proxy_program.h"

namespace backplane::isolate {
namespace {

constexpr std::string_view kExtension = "backplane.isolated_library";

bp_status_t create(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    *out_backend = nullptr;
    BP_ASSIGN(const bp_backend_create_t known, abi::read(how, "bp_backend_create_t"));
    Library* library = Library::of(known.chain);
    if (!library)
      return {
          BP_BAD_STATE,
          "bp_backend_create_t.chain lacks the struct of an isolated library: create the backend through that library"};
    BP_TRY(refuse_chain(known.chain));
    auto backend = std::make_unique<ProxyBackend>(*library, known);
    BP_TRY(backend->running().take_status());
    *out_backend = reinterpret_cast<bp_backend_t*>(backend.release());
    return {};
  });
}

void destroy(bp_backend_t* backend) {
  delete reinterpret_cast<ProxyBackend*>(backend);
}

}  // namespace

Library::Library(Settings settings)
    : settings_(std::move(settings)), file_(::fcntl(settings_.file, F_DUPFD_CLOEXEC, 3)), name_(settings_.library) {
  settings_.file = -1;
  link_.chain.size = sizeof link_;
  link_.chain.extension = abi::text(kExtension);
  link_.chain.version = 1;
  link_.library = this;
}

Library* Library::of(const bp_chain_t* chain) {
  for (; chain; chain = chain->next)
    if (chain->size == sizeof(Link) && abi::view(chain->extension) == kExtension)
      return reinterpret_cast<const Link*>(chain)->library;
  return nullptr;
}

Result<std::shared_ptr<Process>> Library::start(std::string& out_answer) {
  if (!file_) return Status(BP_RESOURCE_EXHAUSTED, "cannot copy the descriptor of " + settings_.library.string());
  BP_ASSIGN(auto process, Process::start(name_, settings_.program, file_.get()));
  Patience patience;
  patience.limit_ns = static_cast<uint64_t>(std::chrono::nanoseconds(settings_.limit).count());
  BP_ASSIGN(out_answer, process->call(Operation::kLoad, {}, {}, patience));
  return process;
}

std::shared_ptr<Library> Library::load(Settings settings, Rejection& out_rejection) {
  std::shared_ptr<Library> library(new Library(std::move(settings)));
  std::string answer;
  auto started = library->start(answer);
  if (!started.ok()) {
    const bool crashed = started.status().code() == BP_DEVICE_LOST;
    out_rejection = {crashed ? BP_REFUSED_CRASHED : BP_REFUSED_UNTRIED, std::string(started.status().text())};
    return nullptr;
  }
  library->first_ = started.take();
  Reader in(answer);
  const auto code = in.get<uint32_t>();
  if (in.ok() && code != BP_REFUSED_NONE) {
    out_rejection = {code, std::string(in.text())};
    return nullptr;
  }
  if (Status status = library->describe(std::move(answer)); !status.ok()) {
    out_rejection = {BP_REFUSED_CRASHED, std::string(status.text())};
    return nullptr;
  }
  library->first_->set_name(library->name_);
  return library;
}

// Reads the library's description from the process's reply to kLoad, in which it follows the code BP_REFUSED_NONE.
Status Library::describe(std::string answer) {
  description_ = std::move(answer);
  Reader in(description_);
  in.get<uint32_t>();
  plugin_.size = sizeof plugin_;
  for (uint32_t* field : {&plugin_.version, &plugin_.version_min, &plugin_.version_max, &plugin_.sanitizer})
    *field = in.get<uint32_t>();
  for (bp_text_t* field : {&plugin_.id, &plugin_.name, &plugin_.vendor, &plugin_.release, &plugin_.build_id})
    *field = abi::text(in.text());
  const auto offered = in.get<uint32_t>();
  const uint64_t opsets = in.count(12);
  for (uint64_t i = 0; i < opsets; ++i) {
    bp_opset_t opset{};
    opset.domain = abi::text(in.text());
    opset.version = in.get<uint32_t>();
    opsets_.push_back(opset);
  }
  if (!in.complete()) return {BP_CORRUPT, name_ + ": its process described it in a message that cannot be read"};
  plugin_.create = create;
  plugin_.destroy = destroy;
  fill_device_table(offered, device_);
  fill_coverage_table(offered, coverage_);
  coverage_.newest_opsets = opsets_.data();
  coverage_.newest_opset_count = static_cast<uint32_t>(opsets_.size());
  coverage_.newest_opset_stride = sizeof(bp_opset_t);
  fill_program_table(offered, program_);
  fill_instance_table(offered, instance_);
  plugin_.device = &device_;
  plugin_.coverage = &coverage_;
  plugin_.program = &program_;
  plugin_.instance = &instance_;
  if (offered & kCache) {
    fill_cache_table(offered, cache_);
    plugin_.cache = &cache_;
  }
  if (offered & kWeights) {
    fill_weights_table(offered, weights_);
    plugin_.weights = &weights_;
  }
  name_ = "backend " + abi::string(plugin_.id) + " (" + settings_.library.string() + ")";
  return {};
}

Result<std::shared_ptr<Process>> Library::process() {
  if (first_) return std::exchange(first_, nullptr);
  std::string answer;
  BP_ASSIGN(auto process, start(answer));
  if (answer != description_) {
    Reader in(answer);
    const bool refused = in.get<uint32_t>() != BP_REFUSED_NONE;
    return Status(BP_STALE, name_ + (refused ? ": " + std::string(in.text())
                                             : " is no longer the same plugin: create a new environment"));
  }
  return process;
}

}  // namespace backplane::isolate
