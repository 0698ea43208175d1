// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel_cache.h"

namespace backplane::opencl {
namespace {

std::string build_log(cl_program program, cl_device_id device) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size != 0) clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(std::min(log.size(), log.find('\0')));
  return log;
}

}  // namespace

KernelCache::KernelCache(const sdk::Host& host, const Facts& facts, cl_context context)
    : host_(host), facts_(facts), context_(context), options_("-cl-std=CL1.2"), disk_("opencl") {
  if (facts.exact_division) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (facts.fp64) options_ += " -DHAS_F64";
}

ClKernel KernelCache::kernel(const KernelSource& source) {
  const ClProgram built = program(source);
  cl_int status = CL_SUCCESS;
  ClKernel kernel(clCreateKernel(built.get(), source.entry.c_str(), &status));
  check(status, "kernel '" + source.entry + "'");
  return kernel;
}

void KernelCache::build(const std::vector<const KernelSource*>& sources) {
  host_.parallel_for(sources.size(), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) program(*sources[i]);
  });
}

ClProgram KernelCache::program(const KernelSource& source) {
  const std::string options = options_ + " " + source.options;
  const std::string text = source.text();
  std::promise<ClProgram> promise;
  std::shared_future<ClProgram> future;
  bool mine = false;
  const std::string key = options + "\n" + text;
  {
    const std::lock_guard lock(mutex_);
    auto [at, fresh] = programs_.try_emplace(key);
    if (fresh) at->second = promise.get_future().share();
    future = at->second;
    mine = fresh;
  }
  if (!mine) return future.get();
  try {
    ClProgram made = make(source, text, options);
    promise.set_value(made);
    return made;
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    programs_.erase(key);  // memory may be there the next time
    throw;
  }
}

ClProgram KernelCache::make(const KernelSource& source, const std::string& text, const std::string& options) {
  const std::string key = facts_.identity() + options + "\n" + text;
  if (facts_.binaries) {
    if (const auto binary = disk_.read(key)) {
      if (ClProgram program = from_binary(*binary, options)) return program;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  ClProgram program = from_source(text, options);
  tell(source, begin);
  if (facts_.binaries) disk_.write(key, binary_of(program.get()));
  return program;
}

void KernelCache::tell(const KernelSource& source, std::chrono::steady_clock::time_point begin) const {
  using std::chrono::nanoseconds;
  const auto time = [](auto point) {
    return static_cast<uint64_t>(std::chrono::duration_cast<nanoseconds>(point.time_since_epoch()).count());
  };
  const auto end = std::chrono::steady_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(end - begin).count();
  host_.log(BP_LOG_DEBUG, "kernel '" + source.entry + "' with '" + source.options + "' was compiled for " +
                              facts_.name + " in " + std::to_string(ms) + " ms");
  if (!host_.tracing()) return;
  bp_span_t span{};
  span.kind = BP_SPAN_COMPILE;
  span.begin = time(begin);
  span.end = time(end);
  span.name = sdk::text(source.entry);
  host_.trace(span);
}

ClProgram KernelCache::from_binary(const std::string& binary, const std::string& options) {
  const size_t size = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int loaded = CL_SUCCESS, status = CL_SUCCESS;
  ClProgram program(clCreateProgramWithBinary(context_, 1, &facts_.id, &size, &data, &loaded, &status));
  if (status != CL_SUCCESS || loaded != CL_SUCCESS) return {};
  if (clBuildProgram(program.get(), 1, &facts_.id, options.c_str(), nullptr, nullptr) != CL_SUCCESS) return {};
  return program;
}

ClProgram KernelCache::from_source(const std::string& text, const std::string& options) {
  const char* data = text.data();
  const size_t size = text.size();
  cl_int status = CL_SUCCESS;
  ClProgram program(clCreateProgramWithSource(context_, 1, &data, &size, &status));
  check(status, "program");
  status = clBuildProgram(program.get(), 1, &facts_.id, options.c_str(), nullptr, nullptr);
  if (status == CL_BUILD_PROGRAM_FAILURE) {
    throw sdk::Error(BP_INTERNAL,
                     "a kernel does not compile with '" + options + "' on " + facts_.name + ": " +
                         build_log(program.get(), facts_.id),
                     BP_NO_NODE, status);
  }
  check(status, "building a kernel with '" + options + "'");
  return program;
}

std::string KernelCache::binary_of(cl_program program) const {
  size_t size = 0;
  check(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr), "size of a kernel's binary");
  std::string binary(size, '\0');
  char* data = binary.data();
  check(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr), "binary of a kernel");
  return binary;
}

}  // namespace backplane::opencl
