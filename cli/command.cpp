// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

namespace backplane::cli {
namespace {

template <typename T>
CLI::Option* add(CLI::App& app, std::string_view name, T& value, std::string_view help) {
  return app.add_option(std::string(name), value, std::string(help));
}

// Adds an option for a number. CLI11 would also read octal numbers, wrap negative ones around and clamp large ones.
template <typename Number, typename T>
CLI::Option* add_number(CLI::App& app, std::string_view name, T& value, std::string_view help) {
  const auto read = [](std::string& text) -> std::string {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    constexpr bool kIsWhole = std::is_integral_v<Number>;
    const bool is_number = error == std::errc() && at == end && (kIsWhole || !std::isnan(static_cast<double>(number)));
    if (!is_number && kIsWhole)
      return fmt::format("'{}' must be a whole number from 0 to {}", text, std::numeric_limits<Number>::max());
    if (!is_number) return fmt::format("'{}' must be a number", text);
    if (kIsWhole) text = std::to_string(number);
    return {};
  };
  return add(app, name, value, help)->transform(CLI::Validator(read, ""));
}

template <typename T>
void check_range(CLI::Option& option, T low, T high) {
  CLI::Range range(low, high);
  range.operation([low, high](std::string& text) {
    T value{};
    const bool fits = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
    return fits ? std::string() : fmt::format("'{}' must be a number from {} to {}", text, low, high);
  });
  option.check(range);
}

}  // namespace

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::hidden() {
  option_->group("");
  return *this;
}

Option Option::one_each() {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::separated_by(char c) {
  option_->delimiter(c);
  return *this;
}

Option Option::range(int low, int high) {
  check_range(*option_, low, high);
  return *this;
}

Option Option::range(double low, double high) {
  check_range(*option_, low, high);
  return *this;
}

Option Option::shown_as(std::string_view kind) {
  option_->type_name(std::string(kind));
  return *this;
}

Option Option::one_of(std::initializer_list<std::string_view> words) {
  option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
  return *this;
}

Option Command::add_option(std::string_view name, std::string& value, std::string_view help) {
  CLI::Option* const option = add(*app_, name, value, help);
  option->check([](const std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); });
  return Option(option);
}

Option Command::add_option(std::string_view name, std::vector<std::string>& value, std::string_view help) {
  return Option(add(*app_, name, value, help));
}

Option Command::add_option(std::string_view name, uint32_t& value, std::string_view help) {
  return Option(add_number<uint32_t>(*app_, name, value, help));
}

Option Command::add_option(std::string_view name, uint64_t& value, std::string_view help) {
  return Option(add_number<uint64_t>(*app_, name, value, help));
}

Option Command::add_option(std::string_view name, std::optional<uint64_t>& value, std::string_view help) {
  return Option(add_number<uint64_t>(*app_, name, value, help));
}

Option Command::add_option(std::string_view name, double& value, std::string_view help) {
  return Option(add_number<double>(*app_, name, value, help));
}

Option Command::add_flag(std::string_view name, bool& value, std::string_view help) {
  return Option(app_->add_flag(std::string(name), value, std::string(help)));
}

void Command::remove_option(std::string_view name) {
  app_->remove_option(app_->get_option(std::string(name)));
}

Command Command::add_command(std::string_view name, std::string_view help) {
  return Command(app_->add_subcommand(std::string(name), std::string(help)));
}

void Command::require_command() {
  app_->require_subcommand(1);
}

void Command::hide() {
  app_->group("");
}

void Command::pass_words_on() {
  app_->set_help_flag();
  app_->prefix_command();
}

bool Command::was_called() const {
  return app_->parsed();
}

std::vector<std::string> Command::words() const {
  return app_->remaining();
}

}  // namespace backplane::cli
