// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <backplane/client.hpp>
#include <string>
#include <vector>

#include "picture.h"

// PP-OCR's recognizer of text lines: it takes a picture of one line and returns its characters with a confidence. The
// model takes pictures with 48 rows and any width, and returns a row of class probabilities for every 8 columns. Class
// 0 means "no character here".
class Recogniser {
 public:
  struct Line {
    std::string text;
    double confidence = 0;  // mean probability of the characters read
  };

  // `devices` is as in SessionOptions. The set of characters comes from the model's metadata.
  Recogniser(const backplane::Environment& environment, const std::string& model,
             const std::vector<std::string>& devices);

  Line read(const Picture& picture);
  // The devices that run the model, such as "cpu (1 island, 431 nodes)".
  std::string placement() const;

 private:
  backplane::Session session_;
  backplane::Exec exec_;
  std::vector<std::string> characters_;
};
