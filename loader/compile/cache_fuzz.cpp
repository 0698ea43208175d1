// SPDX-License-Identifier: Apache-2.0
// Fuzzes files of the program cache. Arbitrary bytes are refused with a reason. An entry with a byte changed after its
// header is reported as damaged. An unchanged entry is read back.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "compile/cache.h"

namespace {

namespace fs = std::filesystem;

const fs::path& folder() {
  static const fs::path kFolder = [] {
    const fs::path made = fs::temp_directory_path() / ("backplane-cache-fuzz-" + std::to_string(getpid()));
    fs::create_directories(made);
    static const fs::path kMade = made;
    std::atexit([] {
      std::error_code error;
      fs::remove_all(kMade, error);
    });
    return made;
  }();
  return kFolder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace backplane;
  const std::string key(32, 'a');
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const ProgramCache cache({folder(), 1 << 20});
  const fs::path path = folder() / (key + ".program");
  std::vector<char> blob;
  std::string problem;
  std::ofstream(path, std::ios::binary) << bytes;
  if (!cache.read(key, blob, problem) && problem.empty()) std::abort();

  if (!cache.write(key, bytes) || !cache.read(key, blob, problem)) std::abort();
  if (std::string_view(blob.data(), blob.size()) != bytes) std::abort();
  if (size < 2) return 0;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto at = static_cast<std::streamoff>(fs::file_size(path) - 1 - data[0] % size);
  file.seekg(at);
  const char before = static_cast<char>(file.get());
  const char after = static_cast<char>(data[1]);
  file.seekp(at);
  file.put(after);
  file.close();
  if (cache.read(key, blob, problem) != (before == after)) std::abort();
  return 0;
}
