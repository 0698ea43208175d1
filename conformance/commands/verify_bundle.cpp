// SPDX-License-Identifier: Apache-2.0
// `backplane-conform verify-bundle`: verifies a bundle offline. Given the plugin, it also runs a sample of the cases
// again.
#include <fmt/format.h>

#include "certify/bundle.h"
#include "certify/page.h"
#include "certify/rerun.h"
#include "certify/trust.h"
#include "cli/overwrite.h"
#include "cli/printable.h"
#include "commands/verb.h"
#include "journal/digest.h"
#include "run/plugin_run.h"

namespace backplane::conform {
namespace {

using cli::printable;

struct Options {
  RunOptions run;
  std::string bundle, vendor_key, lab_key, trust, nonce, commitment, html, require_level;
  size_t sample = 200;
  bool json = false;
};

std::string today() {
  return utc_now().substr(0, 10);
}

// Throws Refused if `trusted_file` is given and the signer's key is not the one in it.
void check_key(const char* part, const std::string& trusted_file, const std::optional<Signature>& seen) {
  if (trusted_file.empty()) return;
  if (!seen)
    throw Refused(part,
                  "it is missing, and --lab-key requires it: without that option, a bundle needs no countersignature");
  const std::string trusted = read_public_key(trusted_file);
  if (seen->public_hex != trusted)
    throw Refused(part, fmt::format("its key is {}, not {} from '{}'", seen->public_hex, trusted, trusted_file));
}

// Names the signer as `trust` does, or else as the signature does. With `is_given`, the verifier passed this key as an
// option, so it counts even if `trust` does not contain it.
Signer signer_of(const Trust& trust, const Signature& signature, bool is_given) {
  KeyStatus status = trust.of(signature.public_hex, signature.role, today());
  const bool is_known = !status.owner.empty();
  if (!is_known && is_given) status.fault.clear();
  return {.name = is_known ? status.owner : fmt::format("a key that names {} as its owner", in_quotes(signature.owner)),
          .key = signature.public_hex,
          .fault = status.fault};
}

void check_signers(const Options& options, const Proof& proof, Certificate& out) {
  check_key(kVendorSignature, options.vendor_key, proof.vendor);
  check_key(kLabSignature, options.lab_key, proof.lab);
  const Trust trust = options.trust.empty() ? Trust() : Trust::read(options.trust);
  out.vendor = signer_of(trust, proof.vendor, !options.vendor_key.empty());
  // With --trust, a bundle whose vendor's key does not count is refused.
  if (!options.trust.empty() && !out.vendor.fault.empty())
    throw Refused(kVendorSignature, fmt::format("{}: {}", out.vendor.name, out.vendor.fault));
  if (proof.lab) {
    out.lab = signer_of(trust, *proof.lab, !options.lab_key.empty());
    if (out.lab->fault.empty() && out.lab->name == out.vendor.name) out.lab->fault = "it is another key of the vendor";
    if (!options.lab_key.empty() && !out.lab->fault.empty())
      throw Refused(kLabSignature, fmt::format("{}: {}", out.lab->name, out.lab->fault));
  }
  if (proof.certifier) {
    out.certifier = signer_of(trust, *proof.certifier, false);
    if (out.certifier->fault.empty() && out.certifier->name == out.vendor.name)
      out.certifier->fault = "it is another key of the vendor";
  }
}

// The nonce and the commitment tie a bundle to the certifier who requested it. Each is compared if it is given.
void check_asked(const Options& options, const Proof& proof, const Parts& parts, Certificate& out) {
  if (!options.nonce.empty() && options.nonce != proof.statement.nonce)
    throw Refused(kStatement, fmt::format("its nonce is {}, but --nonce is {}", proof.statement.nonce, options.nonce));
  out.is_nonce_compared = !options.nonce.empty();
  if (options.commitment.empty()) return;
  const bool is_file = std::filesystem::exists(options.commitment);
  const std::string expected = is_file ? sha256_of_file(options.commitment) : options.commitment;
  const std::string digest = sha256(parts.at(kCommitment));
  if (expected != digest)
    throw Refused(kCommitment, fmt::format("its SHA-256 is {}, but --commitment is for {}", digest, expected));
  out.is_commitment_compared = true;
}

// The files that the command reads.
std::vector<std::string> files_read(const Options& options) {
  std::vector<std::string> files = {options.trust, options.vendor_key, options.lab_key, options.commitment,
                                    options.run.plugin};
  for (const std::string& folder : {options.bundle, options.trust}) {
    std::error_code ignored;  // reading the folder will report it
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) files.push_back(entry.path());
  }
  return files;
}

int verify_bundle(const Options& options) {
  cli::keep_inputs("--html", options.html, files_read(options));
  const Parts parts = read_parts(options.bundle);
  Certificate certificate{.proof = verify(parts)};
  const Proof& proof = certificate.proof;
  check_signers(options, proof, certificate);
  check_asked(options, proof, parts, certificate);
  const bool accepts_waivers = certificate.certifier && certificate.certifier->fault.empty();
  certificate.outcome = outcome_on(proof, today(), accepts_waivers);
  if (!options.run.plugin.empty()) {
    certificate.again = rerun_sample(proof, parts, options.run, options.sample);
  }
  if (options.json) {
    fmt::print("{}", json_of(certificate));
  } else {
    for (const std::string& line : lines_of(certificate)) fmt::print("{}\n", printable(line));
  }
  if (!options.html.empty()) write_file(options.html, html_of(certificate));
  std::string fault = certificate.outcome.fault;
  for (const Level& level : certificate.outcome.levels) {
    if (level.name == options.require_level)
      fault = level.reached ? "" : fmt::format("{} is not reached: {}", level.name, level.reason);
  }
  if (!fault.empty()) fmt::print(stderr, "backplane-conform: {}\n", printable(fault));
  return fault.empty() ? 0 : 1;
}

std::function<int()> declare(cli::Command command) {
  const auto options = std::make_shared<Options>();
  command.add_option("BUNDLE", options->bundle, "The bundle's folder").shown_as("FOLDER").required();
  command
      .add_option("--trust", options->trust,
                  "File or folder of trusted keys, with owners, roles, validity and revocation")
      .shown_as("PATH");
  command.add_option("--vendor-key", options->vendor_key, "The vendor's public key").shown_as("FILE");
  command.add_option("--lab-key", options->lab_key, "The public key of a laboratory that must have countersigned")
      .shown_as("FILE");
  command.add_option("--nonce", options->nonce, "The certifier's nonce").shown_as("NONCE");
  command.add_option("--commitment", options->commitment, "The commitment that the certifier was sent, or its SHA-256");
  command.add_option("--require-level", options->require_level, "Succeed if this level is reached: L0, L1, L2 or L3")
      .one_of({"L0", "L1", "L2", "L3"});
  command.add_option("--html", options->html, "File for an HTML page of the bundle").shown_as("FILE");
  command.add_option("--plugin", options->run.plugin, "The plugin, to run a sample of the cases again")
      .shown_as("FILE");
  command.add_option("--sample", options->sample, "Number of cases to run again").range(1, 1 << 24);
  command.add_flag("--json", options->json, "Print JSON on standard output");
  declare_execution(command, options->run);
  return [options] { return verify_bundle(*options); };
}

}  // namespace

extern const Verb verify_bundle_verb = {"verify-bundle", "verifies a certification's bundle and prints what it proves",
                                        declare};

}  // namespace backplane::conform
