// SPDX-License-Identifier: Apache-2.0
// read_text MODEL [--device A,B] [--expect TSV] PICTURE.png…
//
// Prints each picture's text, the model's confidence, and the devices that run the model. With --expect (a file with
// lines of file name, tab, text), also prints whether the text is right, and exits with 1 if any text is wrong.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "recogniser.h"

namespace {

struct Arguments {
  std::string model;
  std::vector<std::string> devices, pictures;
  std::map<std::string, std::string> expected;  // by file name
};

std::map<std::string, std::string> read_expected(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::map<std::string, std::string> expected;
  for (std::string line; std::getline(file, line);)
    if (const size_t tab = line.find('\t'); tab != std::string::npos)
      expected[line.substr(0, tab)] = line.substr(tab + 1);
  return expected;
}

bool parse(int count, char** words, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--device" && has_value) {
      std::stringstream names(words[++i]);
      for (std::string name; std::getline(names, name, ',');) arguments.devices.push_back(name);
    } else if (word == "--expect" && has_value) {
      arguments.expected = read_expected(words[++i]);
    } else if (word.starts_with("--")) {
      return false;
    } else if (arguments.model.empty()) {
      arguments.model = word;
    } else {
      arguments.pictures.push_back(word);
    }
  }
  return !arguments.pictures.empty();
}

}  // namespace

int main(int count, char** words) try {
  Arguments arguments;
  if (!parse(count, words, arguments)) {
    std::fprintf(stderr, "usage: read_text MODEL [--device A,B] [--expect TSV] PICTURE.png…\n");
    return 2;
  }
  const backplane::Environment environment;
  Recogniser recogniser(environment, arguments.model, arguments.devices);
  const std::string placement = recogniser.placement();
  int right = 0, wrong = 0;
  for (const std::string& path : arguments.pictures) {
    const auto [text, confidence] = recogniser.read(Picture::read_png(path));
    const std::string name = std::filesystem::path(path).filename();
    std::printf("%-10s  %-68s  %.3f  %s", name.c_str(), ('"' + text + '"').c_str(), confidence, placement.c_str());
    if (const auto expected = arguments.expected.find(name); expected != arguments.expected.end()) {
      const bool same = expected->second == text;
      ++(same ? right : wrong);
      std::printf("  %s", same ? "right" : ("wrong: it says \"" + expected->second + '"').c_str());
    }
    std::printf("\n");
  }
  if (!arguments.expected.empty()) std::printf("%d of %d pictures read right\n", right, right + wrong);
  return wrong == 0 && (arguments.expected.empty() || right > 0) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "read_text: %s\n", error.what());
  return 1;
}
