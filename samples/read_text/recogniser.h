// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <backplane/client.hpp>
#include <string>
#include <vector>

#include "picture.h"

// The text line recogniser of PP-OCR: a picture of one line in, characters with their probabilities out. The model
// takes pictures of 48 rows and any width, and answers with one row of class probabilities for every 8 columns; class 0
// is "no character here".
class Recogniser {
 public:
  struct Line {
    std::string text;
    double confidence = 0;  // mean probability of the characters read
  };

  // `devices` as in SessionOptions. The characters come from the model's metadata.
  Recogniser(const backplane::Environment& environment, const std::string& model,
             const std::vector<std::string>& devices);

  Line read(const Picture& picture);
  // "cpu (1 island, 431 nodes)"
  std::string placement() const;

 private:
  backplane::Session session_;
  backplane::Exec exec_;
  std::vector<std::string> characters_;
};
