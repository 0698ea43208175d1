// SPDX-License-Identifier: Apache-2.0
#include "discover/verdict.h"

#include <fmt/format.h>

#include <charconv>

#include "discover/digest.h"
#include "discover/file.h"
#include "discover/writers.h"
#include "host/cache.h"

namespace backplane {
namespace {

constexpr std::string_view kFormat = "backplane verdict 1";
constexpr std::string_view kSurvived = "survived";
constexpr std::string_view kSurvivedIn = "survived in ";
constexpr std::string_view kQuarantined = "quarantined: ";
constexpr std::string_view kHung = "hung for ";  // a number of milliseconds, ": ", and how
constexpr size_t kMaxVerdictBytes = 4096;

// Removes the first line from `rest` and returns it without its newline. nullopt if `rest` contains no newline.
std::optional<std::string_view> next_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  if (end == rest.npos) return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return line;
}

}  // namespace

std::filesystem::path verdict_path(std::string_view content) {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / "probe" / blake2b_of(fmt::format("{} {}", content, own_build_id()));
}

std::optional<Verdict> parse_verdict(std::string_view text, std::string_view content) {
  const auto format = next_line(text), of = next_line(text), answer = next_line(text);
  if (format != kFormat || of != content || !answer || !text.empty()) return std::nullopt;
  Verdict verdict;
  if (answer == kSurvived) {
    verdict.survived = true;
  } else if (answer->starts_with(kSurvivedIn)) {
    verdict.survived = true;
    verdict.situation = answer->substr(kSurvivedIn.size());
  } else if (answer->starts_with(kQuarantined)) {
    verdict.how = answer->substr(kQuarantined.size());
  } else if (answer->starts_with(kHung)) {
    const std::string_view rest = answer->substr(kHung.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), verdict.hung_for);
    const std::string_view how = rest.substr(static_cast<size_t>(end - rest.data()));
    if (error != std::errc() || verdict.hung_for <= 0 || !how.starts_with(": ")) return std::nullopt;
    verdict.how = how.substr(2);
  } else {
    return std::nullopt;
  }
  return verdict;
}

std::optional<Verdict> recall_verdict(std::string_view content) {
  const std::filesystem::path path = verdict_path(content);
  File file;
  if (path.empty() || file.open(path) || !file.regular() || file.size() > kMaxVerdictBytes || check_writers(path, file))
    return std::nullopt;
  std::string text(static_cast<size_t>(file.size()), '\0');
  text.resize(file.read(0, text.data(), text.size()));
  return parse_verdict(text, content);
}

void remember_verdict(std::string_view content, const Verdict& verdict) {
  const std::filesystem::path path = verdict_path(content);
  if (path.empty()) return;
  const std::string answer = verdict.hung_for != 0       ? fmt::format("{}{}: {}", kHung, verdict.hung_for, verdict.how)
                             : !verdict.survived         ? std::string(kQuarantined) + verdict.how
                             : verdict.situation.empty() ? std::string(kSurvived)
                                                         : std::string(kSurvivedIn) + verdict.situation;
  write_whole(path, fmt::format("{}\n{}\n{}\n", kFormat, content, answer));
}

}  // namespace backplane
