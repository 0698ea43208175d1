// SPDX-License-Identifier: Apache-2.0
// `backplane-conform keygen`: a key pair for signing bundles.
#include <fmt/format.h>

#include <memory>

#include "certify/key.h"
#include "commands/verb.h"

namespace backplane::conform {
namespace {

std::function<int()> declare(cli::Command command) {
  struct KeyOptions {
    std::string name, owner, folder = ".";
  };
  const auto options = std::make_shared<KeyOptions>();
  command
      .add_option("NAME", options->name, "Name of the files NAME.key, to be kept secret, and NAME.pub, to be published")
      .required();
  command.add_option("--owner", options->owner, "Name of the owner, for people").shown_as("NAME").required();
  command.add_option("--folder", options->folder, "Folder for the files").shown_as("FOLDER");
  return [options] {
    const Key key = make_key(options->owner);
    write_key(key, options->folder, options->name);
    fmt::print("{}\n", key.public_hex);
    return 0;
  };
}

}  // namespace

extern const Verb keygen_verb = {"keygen", "generates a key pair for signing bundles", declare};

}  // namespace backplane::conform
