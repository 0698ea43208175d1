// SPDX-License-Identifier: Apache-2.0
#include "discover/helper.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "discover/search.h"
#include "discover/writers.h"

namespace backplane {

namespace fs = std::filesystem;

Refusal find_helper(std::string_view name, fs::path& out_helper) {
  const fs::path own = loader_folder();
  for (const char* place : {"../bin", "../libexec/backplane", "../../libexec/backplane"}) {
    std::error_code error;
    fs::path helper = own.empty() ? fs::path() : fs::canonical(own / place / name, error);
    if (helper.empty() || error) continue;
    out_helper = std::move(helper);
    return check_writers(out_helper);
  }
  return {
      BP_REFUSED_UNTRIED,
      fmt::format(
          "{} is in none of ../bin, ../libexec/backplane and ../../libexec/backplane, relative to {}: install it there",
          name, own.string())};
}

}  // namespace backplane
