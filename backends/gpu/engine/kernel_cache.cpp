// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel_cache.h"

namespace backplane::gpu {
KernelCache::KernelCache(const sdk::Host& host, const DeviceCaps& caps, const Driver& driver)
    : host_(host), caps_(caps), driver_(driver), options_(driver.options()), disk_(caps.backend) {
  if (caps.fp64) options_ += " -DHAS_F64";
}

Kernel KernelCache::kernel(const KernelSource& source) {
  return module(source)->kernel(source.entry);
}

void KernelCache::build(const std::vector<const KernelSource*>& sources, const std::function<void()>& check) {
  host_.parallel_for(sources.size(), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      if (check) check();
      module(*sources[i]);
    }
  });
}

Module KernelCache::module(const KernelSource& source) {
  const std::string options = options_ + " " + source.options;
  const std::string text = std::string(driver_.prelude()) + source.text();
  std::promise<Module> promise;
  std::shared_future<Module> future;
  bool mine = false;
  const std::string key = options + "\n" + text;
  {
    const std::lock_guard lock(mutex_);
    auto [at, fresh] = modules_.try_emplace(key);
    if (fresh) at->second = promise.get_future().share();
    future = at->second;
    mine = fresh;
  }
  if (!mine) return future.get();
  try {
    Module made = make(source, text, options);
    promise.set_value(made);
    return made;
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    modules_.erase(key);  // so that the next call builds again: this failure may have been a lack of memory
    throw;
  }
}

Module KernelCache::make(const KernelSource& source, const std::string& text, const std::string& options) {
  const std::string key = caps_.identity + options + "\n" + text;
  if (caps_.binaries) {
    if (const auto binary = disk_.read(key)) {
      if (Module module = driver_.load(*binary, options)) return module;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  Module module = driver_.compile(text, options);
  report(source, begin);
  if (caps_.binaries) disk_.write(key, module->binary());
  return module;
}

void KernelCache::report(const KernelSource& source, std::chrono::steady_clock::time_point begin) const {
  using std::chrono::nanoseconds;
  const auto time = [](auto point) {
    return static_cast<uint64_t>(std::chrono::duration_cast<nanoseconds>(point.time_since_epoch()).count());
  };
  const auto end = std::chrono::steady_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(end - begin).count();
  host_.log(BP_LOG_DEBUG, "kernel '" + source.entry + "' with '" + source.options + "' was compiled for " + caps_.name +
                              " in " + std::to_string(ms) + " ms");
  if (!host_.tracing()) return;
  bp_span_t span{};
  span.kind = BP_SPAN_COMPILE;
  span.begin = time(begin);
  span.end = time(end);
  span.name = sdk::text(source.entry);
  host_.trace(span);
}

}  // namespace backplane::gpu
