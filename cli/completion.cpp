// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace backplane::cli {
namespace {

// Puts text into single quotes for a shell.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string identifier(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

std::vector<std::string> words_of(const CommandWords& command) {
  std::vector<std::string> words;
  for (const CommandWords& each : command.commands) words.push_back(each.name);
  for (const OptionWords& option : command.options) {
    if (!option.is_positional) words.push_back(option.name);
  }
  return words;
}

// Appends a branch for the command at `path` with the words that may follow it, and branches for its subcommands.
void bash_branch(const CommandWords& command, const std::string& path, std::string& out) {
  out += fmt::format("    {})\n      words={}\n", shell_quoted(path),
                     shell_quoted(fmt::format("{}", fmt::join(words_of(command), " "))));
  std::string choices;
  for (const OptionWords& option : command.options) {
    if (option.is_flag || option.is_positional) continue;
    if (option.may_be_file) {
      choices += fmt::format("        {}) files=yes ;;\n", option.name);
    } else {
      choices += fmt::format("        {}) words={}; only=yes ;;\n", option.name,
                             shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    }
  }
  if (!choices.empty()) out += fmt::format("      case $before in\n{}      esac\n", choices);
  out += "      ;;\n";
  for (const CommandWords& each : command.commands) bash_branch(each, path + " " + each.name, out);
}

void command_paths(const CommandWords& command, const std::string& path, std::vector<std::string>& out) {
  for (const CommandWords& each : command.commands) {
    out.push_back(path + " " + each.name);
    command_paths(each, out.back(), out);
  }
}

std::string bash(const CommandWords& program) {
  const std::string function = "_" + identifier(program.name);
  std::vector<std::string> paths;
  command_paths(program, program.name, paths);
  std::string known;
  for (const std::string& path : paths) known += fmt::format("      {}) path=\"$path $word\" ;;\n", shell_quoted(path));
  std::string branches;
  bash_branch(program, program.name, branches);
  return fmt::format(R"(# bash completion for {0}
{1}() {{
  local word path={0} words='' files='' only='' current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
    case "$path $word" in
{2}      *) ;;
    esac
  done
  case $path in
{3}  esac
  COMPREPLY=()
  if [[ -z $files ]]; then mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"); fi
  if [[ -z $only && $current != -* ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -F {1} {0}
)",
                     program.name, function, known, branches);
}

std::string fish(const CommandWords& program) {
  std::string out = fmt::format("# fish completion for {}\n", program.name);
  const auto options = [&](const CommandWords& command, const std::string& condition) {
    for (const OptionWords& option : command.options) {
      if (option.is_positional) continue;
      out += fmt::format("complete -c {} -n {} -l {} -d {}", program.name, shell_quoted(condition),
                         option.name.substr(2), shell_quoted(option.help));
      if (!option.choices.empty()) {
        out += fmt::format(" -x -a {}", shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
      } else if (!option.is_flag) {
        out += option.may_be_file ? " -r" : " -x";
      }
      out += '\n';
    }
  };
  options(program, "__fish_use_subcommand");
  for (const CommandWords& command : program.commands) {
    out += fmt::format("complete -c {} -f -n __fish_use_subcommand -a {} -d {}\n", program.name, command.name,
                       shell_quoted(command.help));
    options(command, "__fish_seen_subcommand_from " + command.name);
    for (const CommandWords& below : command.commands) {
      out += fmt::format("complete -c {} -n {} -a {} -d {}\n", program.name,
                         shell_quoted("__fish_seen_subcommand_from " + command.name), below.name,
                         shell_quoted(below.help));
    }
  }
  return out;
}

// Escapes text for a single-quoted argument of zsh's _arguments.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return result;
}

std::string zsh_options(const CommandWords& command) {
  std::string out;
  for (const OptionWords& option : command.options) {
    if (option.is_positional) continue;
    out += fmt::format(" '*{}[{}]", option.name, zsh_text(option.help));
    if (!option.choices.empty()) {
      out += fmt::format(":value:({})", fmt::join(option.choices, " "));
    } else if (!option.is_flag) {
      out += option.may_be_file ? ":value:_files" : ":value: ";
    }
    out += '\'';
  }
  return out;
}

std::string zsh(const CommandWords& program) {
  std::string names, branches;
  for (const CommandWords& command : program.commands) {
    names += fmt::format(" '{}:{}'", command.name, zsh_text(command.help));
    branches += fmt::format("    {}) _arguments{}", command.name, zsh_options(command));
    if (!command.commands.empty()) {
      std::vector<std::string> below;
      for (const CommandWords& each : command.commands) below.push_back(each.name);
      branches += fmt::format(" '1:command:({})'", fmt::join(below, " "));
    }
    branches += " '*:file:_files' ;;\n";
  }
  const std::string function = "_" + identifier(program.name);
  return fmt::format(R"(#compdef {0}
{1}() {{
  local state line context
  local -a commands=({2})
  _arguments -C{3} '1: :->command' '*:: :->rest'
  case $state in
    command) _describe command commands; _files ;;
    rest)
    case $line[1] in
{4}    esac ;;
  esac
}}
if [[ $funcstack[1] == {1} ]]; then {1} "$@"; else compdef {1} {0}; fi
)",
                     program.name, function, names, zsh_options(program), branches);
}

}  // namespace

std::string completion(const CommandWords& program, std::string_view shell) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  return "";
}

}  // namespace backplane::cli
