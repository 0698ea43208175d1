// SPDX-License-Identifier: Apache-2.0
// Test code: a stand-in for NVRTC that compiles kernels for the host with the host's compiler. Its "machine code" is a
// header (image.h) and a shared library, which the stand-in for the driver loads (cuda.cpp). If the environment
// variable STANDIN_SOURCES names a folder, it also stores the sources there, for the test of the real NVRTC. What was
// compiled once is kept in the build folder for other processes.
#include <nvrtc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "testing/standin/image.h"

struct _nvrtcProgram {
  std::string text, log, binary;
};

namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "standin_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

// Writes a file that other processes may read or write at the same time, unless it is there or the folder is not.
void write_whole(const fs::path& path, const std::string& text) {
  std::error_code failed;
  if (fs::exists(path, failed)) return;
  static std::atomic<int> count = 0;
  const fs::path own = path.string() + "." + std::to_string(getpid()) + "." + std::to_string(++count);
  write(own, text);
  fs::rename(own, path, failed);
}

void keep(const std::string& text, const std::string& options) {
  const char* const folder = std::getenv("STANDIN_SOURCES");
  if (folder == nullptr) return;
  const std::string all = options + "\n" + text;
  write_whole(fs::path(folder) / (std::to_string(std::hash<std::string>()(all)) + ".cu"), all);
}

bool run(const std::string& command) {
  return std::system(command.c_str()) == 0;  // NOLINT(bugprone-command-processor): runs a compiler, in tests only
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}
EXPORT const char* nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "an error of the stand-in for NVRTC";
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* text, const char*, int, const char* const*,
                                      const char* const*) {
  *program = new _nvrtcProgram{text, {}, {}};
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  const Folder folder;
  std::string macros, all;
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i];
    if (option.rfind("--gpu-architecture", 0) != 0) all += (all.empty() ? "" : " ") + option;
    if (option.rfind("-D", 0) == 0) macros += " '" + option + "'";
  }
  keep(program->text, all);
  write(folder / "source.cpp", std::string("#include \"") + STANDIN_FOLDER + "/host.h\"\n" + program->text);
  const std::string log = " 2>'" + (folder / "log").string() + "'", compiler = STANDIN_COMPILER " -std=c++20 -w ";
  const auto failed = [&] {
    program->log = contents(folder / "log");
    return NVRTC_ERROR_COMPILATION;
  };
  if (!run(compiler + "-E -P" + macros + " '" + (folder / "source.cpp").string() + "' -o '" +
           (folder / "source.ii").string() + "'" + log))
    return failed();
  // Kernels are found after preprocessing, which removes those that the options disable.
  std::string text = contents(folder / "source.ii");
  static const std::regex kKernel("BACKPLANE_KERNEL\\s+void\\s+(\\w+)");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kKernel), end; at != end; ++at) names.insert((*at)[1]);
  const size_t end_of_header = text.rfind("struct Launcher<");
  const bool has_barrier = text.find("__syncthreads()", end_of_header) != std::string::npos ||
                           text.find("__shfl_", end_of_header) != std::string::npos;
  text = std::regex_replace(text, std::regex("BACKPLANE_KERNEL"), "");
  for (const std::string& name : names)
    text += "\nextern \"C\" const StandinKernel standin_" + name + ";\nconst StandinKernel standin_" + name +
            " = Launcher<decltype(" + name + ")>::make<&" + name + ", " + (has_barrier ? "1" : "0") + ">();\n";
  const std::string compile = compiler + "-O1 -ffp-contract=off -fno-math-errno -fPIC -c kernels.cpp -o kernels.o";
  const fs::path known = fs::path(STANDIN_CACHE) / (std::to_string(std::hash<std::string>()(compile + text)) + ".so");
  std::string library = contents(known);
  if (library.empty()) {
    write(folder / "kernels.cpp", text);
    // ccache returns what it knows for the same command; it fails where it has no folder that it can write to.
    const std::string to_folder = "cd '" + (folder / ".").string() + "' && ";
    if ((*STANDIN_CCACHE == 0 || !run(to_folder + STANDIN_CCACHE " " + compile + log)) &&
        !run(to_folder + compile + log))
      return failed();
    if (!run(to_folder + compiler + "-shared kernels.o -o kernels.so -lm" + log)) return failed();
    library = contents(folder / "kernels.so");
    write_whole(known, library);
  }
  standin::ImageHeader header;
  header.bytes = library.size();
  program->binary = std::string(reinterpret_cast<const char*>(&header), sizeof header) + library;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = program->log.size() + 1;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  *std::ranges::copy(program->log, log).out = 0;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  *size = program->binary.size();
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* binary) {
  program->binary.copy(binary, program->binary.size());
  return NVRTC_SUCCESS;
}
