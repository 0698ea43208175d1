// SPDX-License-Identifier: Apache-2.0
#include "runner/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace backplane::conform {
namespace {

// Row by row: entry j of a row is what the beginning of `a` costs to become the first j letters of `b`.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1)});
      const bool is_swap = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (is_swap) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = last;
    last = row;
  }
  return last.back();
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Those without a description are nobody's to call.
std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
    names.push_back(command->get_name());
  return names;
}

std::string meant(std::string_view seen, const std::vector<std::string>& words) {
  const std::string word = nearest(seen, words);
  return word.empty() ? "" : fmt::format(" (did you mean '{}'?)", word);
}

}  // namespace

std::string nearest(std::string_view seen, const std::vector<std::string>& words) {
  constexpr size_t kFurthest = 2, kLongest = 64;
  if (seen.size() > kLongest) return "";
  std::string best;
  size_t least = kFurthest + 1;
  for (const std::string& word : words) {
    if (const size_t distance = edits(seen, word); distance < least) {
      least = distance;
      best = word;
    }
  }
  return best;
}

void keep_unknown_words(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) keep_unknown_words(*command);
}

std::string unknown_word(const CLI::App& app) {
  const CLI::App* command = &app;  // the innermost that was called
  std::vector<std::string> words = app.remaining();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    const std::vector<std::string> more = command->remaining();
    words.insert(words.begin(), more.begin(), more.end());
  }
  if (words.empty()) return "";
  // An option is the likelier mistake: the word behind it may be its value.
  const auto option = std::find_if(words.begin(), words.end(), [](const auto& word) { return word.starts_with("-"); });
  if (option != words.end()) {
    const std::string name = option->substr(0, option->find('='));
    return fmt::format("there is no option '{}'{}", name, meant(name, options_of(*command)));
  }
  const std::vector<std::string> commands = commands_of(*command);
  if (commands.empty()) return fmt::format("'{}' is one word too many", words.front());
  return fmt::format("there is no command '{}'{}", words.front(), meant(words.front(), commands));
}

}  // namespace backplane::conform
