// SPDX-License-Identifier: Apache-2.0
#include "isolate/proxy_backend.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/abi.h"
#include "base/clock.h"

namespace backplane::isolate {
namespace {

constexpr uint64_t kFirstPauseNs = 10'000'000;  // after the second failure in a row
constexpr uint64_t kLongestPauseNs = 30'000'000'000;
constexpr uint64_t kAwaitedPauseNs = 400'000'000;  // a call waits for a pause of up to this length; otherwise it fails
constexpr uint64_t kComputingNs = 600'000'000'000;

// The pause before the next start, in ns: 0 after one failure, so that a single crash costs little; then it doubles.
uint64_t pause_after(uint32_t failures) {
  if (failures < 2) return 0;
  return std::min(kLongestPauseNs, kFirstPauseNs << std::min(failures - 2, 20u));
}

}  // namespace

ProxyBackend::ProxyBackend(Library& library, const bp_backend_create_t& how)
    : library_(library), host_(how.host), directory_(abi::view(how.directory)) {
  bp_option_t option{};
  for (uint32_t i = 0; host_->option_at && host_->option_at(host_, i, &option) == BP_OK; ++i)
    options_.emplace_back(abi::string(option.name), abi::string(option.value));
}

ProxyBackend::~ProxyBackend() {
  if (!process_) return;
  if (process_->alive()) {
    static_cast<void>(process_->call(Operation::kDestroy, {}, {}, short_patience()));
    process_->end(std::chrono::seconds(2));
  }
  process_->set_log({});
}

Patience ProxyBackend::short_patience() const {
  Patience patience;
  patience.limit_ns = static_cast<uint64_t>(std::chrono::nanoseconds(library_.settings().limit).count());
  return patience;
}

Patience ProxyBackend::long_patience(const bp_cancel_t* cancel) const {
  Patience patience;
  patience.limit_ns = kComputingNs;
  patience.host = host_;
  patience.cancel = cancel;
  return patience;
}

Result<std::shared_ptr<Process>> ProxyBackend::running() {
  const std::lock_guard lock(mutex_);
  if (process_ && process_->alive()) return process_;
  if (process_) {
    process_->set_log({});
    process_ = nullptr;
    not_before_ = monotonic_now() + pause_after(++failures_);
  }
  if (const uint64_t now = monotonic_now(); now < not_before_) {
    const uint64_t left = not_before_ - now;
    if (left > kAwaitedPauseNs)
      return Status(BP_DEVICE_LOST, library_.name() + " ended " + std::to_string(failures_.load()) +
                                        " times in a row: it is started again in " +
                                        std::to_string((left + 999'999'999) / 1'000'000'000) + " s at the earliest");
    std::this_thread::sleep_for(std::chrono::nanoseconds(left));
  }
  // Failing to start a process, or to create the backend in it, counts as a failure too.
  not_before_ = monotonic_now() + pause_after(failures_ + 1);
  const bool again = failures_ > 0;
  auto made = library_.process();
  if (!made.ok()) {
    ++failures_;
    return made.take_status();
  }
  const std::shared_ptr<Process> process = made.take();
  process->set_log([host = host_](uint32_t level, std::string_view text) {
    if (host->log) host->log(host, level, abi::text(text));
  });
  Writer request;
  request.text(directory_).put(host_->version).put(host_->thread_count ? host_->thread_count(host_) : 0u);
  request.put<uint64_t>(options_.size());
  for (const auto& [name, value] : options_) request.text(name).text(value);
  auto created = process->call(Operation::kCreate, request.bytes(), {}, short_patience());
  if (!created.ok()) {
    ++failures_;
    process->set_log({});
    return created.take_status();
  }
  not_before_ = 0;
  process_ = process;
  if (again && host_->log) {
    const std::string text = "its process was started again";
    host_->log(host_, BP_LOG_WARNING, abi::text(text));
  }
  return process;
}

bp_text_t ProxyBackend::keep(std::string_view text) {
  if (text.empty()) return {};
  const std::lock_guard lock(texts_mutex_);
  return abi::text(texts_.emplace_back(text));
}

std::string ProxyBackend::identity_of(uint32_t index) {
  const std::lock_guard lock(texts_mutex_);
  const auto known = identities_.find(index);
  return known == identities_.end() ? std::string() : known->second;
}

void ProxyBackend::identify(uint32_t index, std::string identity) {
  const std::lock_guard lock(texts_mutex_);
  identities_.emplace(index, std::move(identity));
}

const bp_option_t* ProxyBackend::keep(std::vector<bp_option_t> options) {
  const std::lock_guard lock(texts_mutex_);
  return option_lists_.emplace_back(std::move(options)).data();
}

}  // namespace backplane::isolate
