// SPDX-License-Identifier: Apache-2.0
// libFuzzer: untrusted parts of a bundle. The first byte selects what reads the rest: `verify`, as one part of a bundle
// that its vendor signed; the HTML page, as a journal; or another reader.
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "certify/page.h"
#include "certify/trust.h"
#include "cli/printable.h"
#include "families/families.h"
#include "journal/digest.h"

namespace backplane::conform {
namespace {

constexpr const char* kFuzzed[] = {kStatement, kCommitment, kJournal, kWaivers, kExpected, kLabReport, kCases};

const Key& own_key() {
  static const Key kKey = make_key("Acme");
  return kKey;
}

// A statement with the correct digests of all parts, so that `verify` goes on to read the parts.
std::string statement_over(const Parts& parts) {
  nlohmann::ordered_json digests = nlohmann::ordered_json::object();
  for (const auto& [name, text] : parts) digests[name] = sha256(text);
  const nlohmann::ordered_json json = {{"bundle", 2},
                                       {"nonce", "0123456789abcdef0123456789abcdef"},
                                       {"machine", nlohmann::ordered_json::object()},
                                       {"files", nlohmann::ordered_json::array()},
                                       {"ended", "2026-11-20T14:00:00Z"},
                                       {"parts", digests}};
  return json.dump();
}

void try_bundle(const char* name, const std::string& text) {
  Parts parts = {{kCommitment, "{}"}, {kJournal, "{}"}, {kCases, ""}};
  parts[name] = text;
  if (std::string_view(name) != kStatement) parts[kStatement] = statement_over(parts);
  parts[kVendorSignature] = sign(own_key(), "vendor", {{kStatement, sha256(parts[kStatement])}});
  try {
    verify(parts);
  } catch (const Refused& refusal) {
    if (cli::printable(refusal.what()).find('\033') != std::string::npos) std::abort();
  }
}

void try_page(const std::string& text) {
  Certificate certificate;
  try {
    certificate.proof.record = parse_journal(text, "j");
  } catch (const std::runtime_error&) {
    return;
  }
  certificate.proof.statement.machine_json = "{}";
  certificate.outcome = outcome(certificate.proof.record.header, certificate.proof.record.results);
  const std::string page = html_of(certificate);
  if (page.find("<script") != std::string::npos || page.find('\033') != std::string::npos) std::abort();
}

void try_reader(uint8_t which, const std::string& text) {
  try {
    if (which == 0) read_signature(text);
    if (which == 1) commitment_of(text);
    if (which == 2) {
      static const std::string kFile = "/tmp/backplane_bundle_fuzz_" + std::to_string(::getpid());
      write_file(kFile, text);
      Trust::read(kFile);
    }
    if (which == 3) Exceptions().add_waivers(text, "w");
  } catch (const std::runtime_error&) {
  }
}

}  // namespace
}  // namespace backplane::conform

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace backplane::conform;
  if (size == 0) return 0;
  use_families();  // `verify` draws up the list of cases
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  const uint8_t which = data[0] % 12;
  if (which < std::size(kFuzzed))
    try_bundle(kFuzzed[which], text);
  else if (which == std::size(kFuzzed))
    try_page(text);
  else
    try_reader(static_cast<uint8_t>(which - std::size(kFuzzed) - 1), text);
  return 0;
}
