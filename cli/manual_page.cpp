// SPDX-License-Identifier: Apache-2.0
#include "cli/manual_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace backplane::cli {
namespace {

// Escapes text for troff, so that no line is taken for a request and '-' stays an ASCII hyphen.
std::string troff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '\n') {
      result += ' ';
    } else {
      result += c;
    }
  }
  if (result.starts_with('.') || result.starts_with('\'')) result.insert(0, "\\&");
  return result;
}

void options(const CommandWords& command, std::string& out) {
  for (const OptionWords& option : command.options) {
    const std::string value = option.is_flag || option.is_positional ? ""
                              : option.choices.empty()               ? " \\fIVALUE\\fR"
                                                       : fmt::format(" {}", fmt::join(option.choices, "|"));
    out += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", troff(option.name), value, troff(option.help));
  }
}

void command(const CommandWords& each, const std::string& path, std::string& out) {
  out += fmt::format(".SS {}\n{}.\n", troff(path), troff(each.help));
  options(each, out);
  for (const CommandWords& below : each.commands) command(below, path + " " + below.name, out);
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

}  // namespace

std::string manual_page(const CommandWords& program, std::string_view version, std::string_view footer) {
  std::string out = fmt::format(
      ".\\\" Written from the options of the program.\n.TH {} 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
      upper(program.name), version, troff(program.name), troff(program.help));
  out += fmt::format(".SH SYNOPSIS\n.B {}\n[\\fIOPTION\\fR]... {}\n", troff(program.name),
                     program.commands.empty() ? "" : "[\\fICOMMAND\\fR [\\fIARGUMENT\\fR]...]");
  if (!program.options.empty()) {
    out += ".SH OPTIONS\n";
    options(program, out);
  }
  if (!program.commands.empty()) {
    out += ".SH COMMANDS\n";
    for (const CommandWords& each : program.commands) command(each, each.name, out);
  }
  return out + fmt::format(".SH EXIT STATUS\n{}\n", troff(footer));
}

}  // namespace backplane::cli
