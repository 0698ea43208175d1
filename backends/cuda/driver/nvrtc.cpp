// SPDX-License-Identifier: Apache-2.0
#include "driver/nvrtc.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "driver/library.h"

namespace backplane::cuda {
namespace {

#define BACKPLANE_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion);                   \
  X(nvrtcGetErrorString);            \
  X(nvrtcCreateProgram);             \
  X(nvrtcDestroyProgram);            \
  X(nvrtcCompileProgram);            \
  X(nvrtcGetProgramLogSize);         \
  X(nvrtcGetProgramLog);             \
  X(nvrtcGetCUBINSize);              \
  X(nvrtcGetCUBIN);

// NOLINTBEGIN(readability-identifier-naming): members have the names of the compiler's functions
struct Functions {
#define BACKPLANE_NVRTC_MEMBER(name) decltype(&::name) name
  BACKPLANE_NVRTC_FUNCTIONS(BACKPLANE_NVRTC_MEMBER)
#undef BACKPLANE_NVRTC_MEMBER
};
// NOLINTEND(readability-identifier-naming)

// When NVRTC first compiles, it opens its library libnvrtc-builtins by name alone. This function opens that library
// before, from NVRTC's folder, so that it is found even if no search path has the folder, as after an installation that
// did not run ldconfig.
void open_builtins(const Functions& all) {
  int major = 0, minor = 0;
  Dl_info nvrtc{};
  if (all.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS ||
      dladdr(reinterpret_cast<void*>(all.nvrtcVersion), &nvrtc) == 0)
    return;
  std::string path = nvrtc.dli_fname;
  path.resize(path.rfind('/') + 1);  // 0 without a slash
  path += "libnvrtc-builtins.so." + std::to_string(major) + '.' + std::to_string(minor);
  dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

Functions open_compiler() {
  void* const library =
      open_first({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"},
                 "NVRTC, which compiles kernels, is not found", "; install CUDA's run-time compiler");
  Functions all;
#define BACKPLANE_NVRTC_FIND(name)                                        \
  all.name = reinterpret_cast<decltype(all.name)>(dlsym(library, #name)); \
  if (all.name == nullptr)                                                \
  throw sdk::Error(BP_UNSUPPORTED, "NVRTC has no function " #name         \
                                   "; install CUDA 12 or "                \
                                   "newer")
  BACKPLANE_NVRTC_FUNCTIONS(BACKPLANE_NVRTC_FIND)
#undef BACKPLANE_NVRTC_FIND
  open_builtins(all);
  return all;
}

const Functions& nvrtc() {
  static const Functions kFunctions = open_compiler();
  return kFunctions;
}

void check(nvrtcResult status, std::string_view what) {
  if (status == NVRTC_SUCCESS) return;
  throw sdk::Error(status == NVRTC_ERROR_OUT_OF_MEMORY ? BP_RESOURCE_EXHAUSTED : BP_INTERNAL,
                   std::string(what) + ": " + nvrtc().nvrtcGetErrorString(status), BP_NO_NODE, status);
}

class Program {
 public:
  explicit Program(const std::string& text) {
    check(nvrtc().nvrtcCreateProgram(&program_, text.c_str(), "kernel.cu", 0, nullptr, nullptr), "creating a program");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { nvrtc().nvrtcDestroyProgram(&program_); }
  nvrtcProgram get() const { return program_; }

  std::string log() const {
    size_t size = 0;
    if (nvrtc().nvrtcGetProgramLogSize(program_, &size) != NVRTC_SUCCESS) return {};
    std::string log(size, '\0');
    if (size != 0) nvrtc().nvrtcGetProgramLog(program_, log.data());
    log.resize(std::min(log.size(), log.find('\0')));
    return log;
  }

 private:
  nvrtcProgram program_ = nullptr;
};

}  // namespace

std::string compile(const std::string& text, const std::string& options, const std::string& arch,
                    std::string* out_log) {
  const Program program(text);
  std::istringstream words(options);
  std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  all.push_back("--gpu-architecture=" + arch);
  std::vector<const char*> raw;
  for (const std::string& option : all) raw.push_back(option.c_str());
  const nvrtcResult status = nvrtc().nvrtcCompileProgram(program.get(), static_cast<int>(raw.size()), raw.data());
  if (status == NVRTC_ERROR_COMPILATION || status == NVRTC_ERROR_INVALID_OPTION) {
    throw sdk::Error(BP_INTERNAL, "a kernel does not compile with '" + options + "' for " + arch + ": " + program.log(),
                     BP_NO_NODE, status);
  }
  check(status, "compiling a kernel with '" + options + "'");
  if (out_log != nullptr) *out_log = program.log();
  size_t size = 0;
  check(nvrtc().nvrtcGetCUBINSize(program.get(), &size), "size of a kernel's binary");
  std::string binary(size, '\0');
  check(nvrtc().nvrtcGetCUBIN(program.get(), binary.data()), "binary of a kernel");
  return binary;
}

}  // namespace backplane::cuda
