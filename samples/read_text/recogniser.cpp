// SPDX-License-Identifier: Apache-2.0
#include "recogniser.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace {

constexpr int64_t kRows = 48;

// Scales the picture to 48 rows, keeping its proportions, by interpolation between the centers of pixels. Returns the
// planes of blue, green and red, with values from -1 to 1.
backplane::Tensor input_of(const Picture& picture) {
  const int64_t columns =
      std::max<int64_t>(8, std::lround(static_cast<double>(kRows) * picture.width / picture.height));
  backplane::Tensor tensor(BP_DTYPE_FLOAT, {1, 3, kRows, columns});
  float* out = tensor.data<float>();
  const auto clamp = [](double at, int size) { return std::clamp(at, 0.0, static_cast<double>(size - 1)); };
  for (int64_t y = 0; y < kRows; ++y) {
    const double sy = clamp((y + 0.5) * picture.height / kRows - 0.5, picture.height);
    const int y0 = static_cast<int>(sy), y1 = std::min(y0 + 1, picture.height - 1);
    for (int64_t x = 0; x < columns; ++x) {
      const double sx = clamp((x + 0.5) * picture.width / static_cast<double>(columns) - 0.5, picture.width);
      const int x0 = static_cast<int>(sx), x1 = std::min(x0 + 1, picture.width - 1);
      for (int channel = 0; channel < 3; ++channel) {
        const auto pixel = [&](int px, int py) {
          return static_cast<double>(picture.rgb[(static_cast<size_t>(py) * picture.width + px) * 3 + (2 - channel)]);
        };
        const double top = std::lerp(pixel(x0, y0), pixel(x1, y0), sx - x0);
        const double bottom = std::lerp(pixel(x0, y1), pixel(x1, y1), sx - x0);
        out[(channel * kRows + y) * columns + x] = static_cast<float>(std::lerp(top, bottom, sy - y0) / 127.5 - 1);
      }
    }
  }
  return tensor;
}

std::vector<std::string> characters_of(const backplane::Model& model) {
  const auto report = nlohmann::json::parse(model.report());
  const auto found = report["metadata"].find("character");
  if (found == report["metadata"].end())
    throw std::runtime_error("the model has no metadata 'character': it is not a PP-OCR recognizer");
  std::vector<std::string> characters{""};
  const std::string text = *found;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    characters.push_back(text.substr(begin, end - begin));
  }
  characters.push_back(" ");
  return characters;
}

}  // namespace

Recogniser::Recogniser(const backplane::Environment& environment, const std::string& model,
                       const std::vector<std::string>& devices)
    : session_(environment.compile(environment.open(model), {.devices = devices})),
      exec_(session_.exec()),
      characters_(characters_of(session_.model())) {}

Recogniser::Line Recogniser::read(const Picture& picture) {
  exec_.bind(0u, input_of(picture));
  exec_.run();
  const backplane::Tensor output = exec_.output(0u);
  const int64_t steps = output.extents().at(1), classes = output.extents().at(2);
  if (classes != static_cast<int64_t>(characters_.size()))
    throw std::runtime_error("the model has " + std::to_string(classes) + " classes, but there are names for " +
                             std::to_string(characters_.size()) + " characters");

  // Takes the most likely class of each row of probabilities. The same class in adjacent rows is one character.
  Line line;
  int64_t before = 0;
  int read = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const float* row = output.data<float>() + step * classes;
    const int64_t best = std::max_element(row, row + classes) - row;
    if (best != 0 && best != before) {
      line.text += characters_[static_cast<size_t>(best)];
      line.confidence += row[best];
      ++read;
    }
    before = best;
  }
  if (read) line.confidence /= read;
  return line;
}

std::string Recogniser::placement() const {
  const auto report = nlohmann::json::parse(session_.report());
  std::map<std::string, std::pair<int, int>> devices;  // by device name: numbers of islands and nodes
  for (const auto& island : report["islands"]) {
    auto& [islands, nodes] = devices[island["device"]];
    ++islands;
    nodes += island["nodes"].get<int>();
  }
  std::string text;
  for (const auto& [name, counts] : devices)
    text += (text.empty() ? "" : ", ") + name + " (" + std::to_string(counts.first) +
            (counts.first == 1 ? " island, " : " islands, ") + std::to_string(counts.second) + " nodes)";
  return text;
}
