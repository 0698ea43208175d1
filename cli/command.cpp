// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <CLI/CLI.hpp>

namespace backplane::cli {
namespace {

template <typename T>
CLI::Option* add(CLI::App& app, std::string_view name, T& value, std::string_view help) {
  return app.add_option(std::string(name), value, std::string(help));
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
  option_->check(CLI::Range(low, high));
  return *this;
}

Option Option::range(double low, double high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option Option::one_of(std::initializer_list<std::string_view> words) {
  option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
  return *this;
}

Option Command::add_option(std::string_view name, std::string& value, std::string_view help) {
  return Option(add(*app_, name, value, help));
}

Option Command::add_option(std::string_view name, std::vector<std::string>& value, std::string_view help) {
  return Option(add(*app_, name, value, help));
}

Option Command::add_option(std::string_view name, uint32_t& value, std::string_view help) {
  return Option(add(*app_, name, value, help));
}

Option Command::add_option(std::string_view name, uint64_t& value, std::string_view help) {
  return Option(add(*app_, name, value, help));
}

Option Command::add_option(std::string_view name, std::optional<uint64_t>& value, std::string_view help) {
  return Option(add(*app_, name, value, help));
}

Option Command::add_option(std::string_view name, double& value, std::string_view help) {
  return Option(add(*app_, name, value, help));
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
