// SPDX-License-Identifier: Apache-2.0
// Damaged or malicious journals, waivers, keys and bundles are either accepted or refused with a one-line message.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "certify/bundle.h"
#include "certify/page.h"
#include "certify/rerun.h"
#include "cli/printable.h"
#include "journal/digest.h"
#include "journal/merge.h"
#include "journal/waiver.h"
#include "report/write.h"

namespace backplane::conform {
namespace {

// A small deterministic generator, because std's distributions differ between libraries.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  size_t below(size_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % count;
  }

 private:
  uint64_t state_;
};

// Returns the text with one random fault: a changed byte, a lost or duplicated piece, a missing end, or another value
// after one of the colons.
std::string damaged(std::string text, Dice& dice) {
  constexpr const char* kValues[] = {"null", "-1",         "1e300", "18446744073709551616", "\"\"",     "[]",
                                     "{}",   "[0,0]",      "true",  "\"\\u0000\\n\"",       "[[[[[[[[", "\"pass\"",
                                     "0",    "4294967295", "\"*\""};
  const size_t at = dice.below(text.size()), length = std::min(text.size() - at, dice.below(40));
  switch (dice.below(6)) {
    case 0:
      text[at] = static_cast<char>(dice.below(256));
      return text;
    case 1:
      return text.erase(at, length);
    case 2:
      return text.insert(at, text.substr(at, length));
    case 3:
      return text.substr(0, at);
    default: {
      const size_t colon = text.find(':', at);
      if (colon == std::string::npos) return text;
      return text.replace(colon + 1, text.find_first_of(",}]\n", colon) - colon - 1,
                          kValues[dice.below(std::size(kValues))]);
    }
  }
}

// Counts the damaged versions of `text` that `read` refuses. Each refusal must be a std::runtime_error of one line.
int refused(const std::string& text, const std::function<void(const std::string& text)>& read, uint64_t times = 2000) {
  int count = 0;
  for (uint64_t seed = 1; seed <= times; ++seed) {
    Dice dice(seed);
    const std::string changed = damaged(text, dice);
    SCOPED_TRACE(changed);
    try {
      read(changed);
    } catch (const std::runtime_error& error) {
      ++count;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()), "");
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not meant for people: " << error.what();
    }
  }
  std::printf("%d of %d refused\n", count, static_cast<int>(times));
  return count;
}

constexpr const char* kNonce = "0123456789abcdef0123456789abcdef";

// The unsigned files of a bundle whose run of the group abi succeeded.
Parts bundle(const std::vector<LoadedFile>& files = {}) {
  Commitment commitment = {.plugin = "12", .loader = "34", .harness = "56", .selection = "quick", .filter = "abi/*"};
  commitment.made = "2026-11-20T12:00:00Z";
  commitment.files = files;
  const Plan planned = plan(case_options_of(commitment));
  commitment.list = planned.list;
  commitment.cases = planned.total;
  const std::string waivers =
      R"({"waivers": [{"device": "acme*", "versions": ["1.2", ""], "case": "ops/*", "reason": "r", "link": "l", "expires": "2027-06-30"}]})";
  commitment.waivers = sha256(waivers);
  Exceptions exceptions;
  exceptions.add_waivers(waivers, kWaivers);
  const std::string text = to_text(commitment);

  Record record;
  record.header = {.harness = "56",
                   .plugin = "p.so",
                   .plugin_sha256 = "12",
                   .identity = {.backend = "acme"},
                   .selection = "quick",
                   .filter = "abi/*",
                   .seeds = seeds_of(text, kNonce),
                   .cases = planned.total,
                   .list = planned.list,
                   .waivers = exceptions.digest(),
                   .started = "2026-11-20T13:00:00Z"};
  std::string journal = to_json_line(record.header) + '\n', names;
  for (const Case& one : planned.cases) {
    Result result{.name = one.name, .state = State::kPass, .nodes = 1, .worst = 0.5, .opset = 14, .errors = {1, 2, 3}};
    result.seed = record.header.seeds.of_cases();
    journal += to_json_line(result) + '\n';
  }
  std::vector<std::string> sorted;
  for (const Case& one : planned.cases) sorted.push_back(one.name);
  std::sort(sorted.begin(), sorted.end());
  for (const std::string& name : sorted) names += name + '\n';
  return {{kCommitment, text}, {kJournal, journal}, {kCases, names}, {kWaivers, waivers}};
}

// Writes the statement again and signs it after a part was damaged. Only the vendor can do this, with the private key.
void state_and_sign(Parts& parts, const Key& key) {
  parts[kStatement] = statement_of(parts, {kNonce, "2026-11-20T14:00:00Z", R"({"cores": 2})", {{"/p.so", "12"}}});
  parts[kVendorSignature] = sign(key, "vendor", {{kStatement, sha256(parts[kStatement])}});
}

TEST(Damaged, JournalsAreRefusedWithAReason) {
  const std::string journal = bundle()[kJournal];
  const conform::Run whole = {parse_journal(journal, "j").header, parse_journal(journal, "j").results};
  EXPECT_GT(refused(journal,
                    [&](const std::string& text) {
                      Record record = parse_journal(text, "j");
                      Header again;
                      EXPECT_TRUE(from_json_line(to_json_line(record.header), again));
                      difference(record.header, whole.header, true);
                      outcome(record.header, record.results);
                      const conform::Run run = {record.header, record.results};
                      summary_json(run);
                      junit_xml(run);
                      coverage_csv(run);
                      const RunComparison change = compare_runs(whole, run);
                      change.to_text();
                      change.to_json();
                      html_page(run, &change);
                      merge({{"a", std::move(record)}});
                    }),
            500);
}

TEST(Damaged, ShardsThatAreNoneDoNotDivideByZero) {
  Header header;
  for (const char* shard : {"[1,0]", "[0,1]", "[3,2]", "[0,0]"}) {
    std::string line = to_json_line(header);
    line.replace(line.find("[1,1]"), 5, shard);
    Header read;
    EXPECT_FALSE(from_json_line(line, read)) << shard;
  }
}

TEST(Damaged, WaiversAndExpectations) {
  const std::vector<Result> results = parse_journal(bundle()[kJournal], "j").results;
  const auto apply = [&](const Exceptions& exceptions) {
    const Exceptions holding = exceptions.on({.backend = "acme", .version = "1.3"}, "2026-11-20");
    for (Result result : results) {
      result.state = State::kFail;
      holding.apply(std::move(result));
    }
  };
  EXPECT_GT(refused(bundle()[kWaivers],
                    [&](const std::string& text) {
                      Exceptions exceptions;
                      exceptions.add_waivers(text, "w");
                      apply(exceptions);
                    }),
            500);
  EXPECT_GT(refused(R"({"expected_failures": [{"case": "ops/Erf/*", "reason": "no erf yet"}]})",
                    [&](const std::string& text) {
                      Exceptions exceptions;
                      exceptions.add_expectations(text, "e");
                      apply(exceptions);
                    }),
            500);
}

TEST(Damaged, CommitmentsAndSignatures) {
  EXPECT_GT(refused(bundle()[kCommitment], [](const std::string& text) { plan(case_options_of(commitment_of(text))); }),
            500);
  const std::string signature = sign(make_key("Acme"), "vendor", {{kStatement, "12"}});
  EXPECT_GT(refused(signature, [](const std::string& text) { read_signature(text); }), 1500);
}

TEST(Damaged, Keys) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("backplane_damaged_" + std::to_string(::getpid()));
  write_key(make_key("Acme"), folder, "acme");
  const std::string secret = read_file(folder / "acme.key"), open = read_file(folder / "acme.pub");
  EXPECT_GT(refused(
                secret,
                [&](const std::string& text) {
                  write_file(folder / "other", text);
                  read_key(folder / "other");
                },
                200),
            50);
  EXPECT_GT(refused(
                open,
                [&](const std::string& text) {
                  write_file(folder / "other", text);
                  read_public_key(folder / "other");
                },
                200),
            50);
  std::filesystem::remove_all(folder);
}

// A vendor signs a damaged bundle: it either verifies, or the error names a part.
TEST(Damaged, BundlesThatAreSignedAllTheSame) {
  const Key key = make_key("Acme");
  Parts honest = bundle();
  state_and_sign(honest, key);
  EXPECT_NO_THROW(verify(honest));
  for (const char* name : {kCommitment, kJournal, kCases, kWaivers, kStatement}) {
    SCOPED_TRACE(name);
    int refusals = 0;
    for (uint64_t seed = 1; seed <= 150; ++seed) {
      Dice dice(seed);
      Parts parts = honest;
      parts[name] = damaged(parts[name], dice);
      try {
        if (std::string_view(name) == kStatement)
          parts[kVendorSignature] = sign(key, "vendor", {{kStatement, sha256(parts[kStatement])}});
        else
          state_and_sign(parts, key);
      } catch (const std::exception&) {  // no statement follows from the damaged parts: sign the undamaged one
        parts[kVendorSignature] = sign(key, "vendor", {{kStatement, sha256(parts[kStatement])}});
      }
      try {
        verify(parts);
      } catch (const Refused& refusal) {
        ++refusals;
        EXPECT_EQ(std::string(refusal.what()).find('\n'), std::string::npos) << refusal.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "no part is named: " << error.what() << "\n" << parts[name];
      }
    }
    std::printf("%s: %d of 150 refused\n", name, refusals);
    EXPECT_GT(refusals, 50);
  }
}

// A bundle that its vendor built to harm the verifier.
class Hostile : public testing::Test {
 protected:
  // Signs `text` as the statement and verifies the bundle. Returns the refusal, or an empty string.
  std::string refusal_of_statement(const std::string& text) {
    parts[kStatement] = text;
    parts[kVendorSignature] = sign(key, "vendor", {{kStatement, sha256(text)}});
    try {
      verify(parts);
    } catch (const Refused& refusal) {
      return refusal.what();
    }
    return "";
  }
  // An honest statement whose machine is replaced by `json`.
  std::string with_machine(const std::string& json) {
    Parts honest = bundle();
    state_and_sign(honest, key);
    std::string text = honest[kStatement];
    const size_t begin = text.find("\"machine\": ") + strlen("\"machine\": "), end = text.find('}', begin) + 1;
    return text.replace(begin, end - begin, json);
  }

  Key key = make_key("Acme");
  Parts parts = bundle();
};

TEST_F(Hostile, DeepMachine) {
  for (const size_t depth : {20u, 1'000'000u}) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    EXPECT_THAT(refusal_of_statement(with_machine(deep)), testing::StartsWith("statement.json: "));
  }
}

TEST_F(Hostile, ManyKeys) {
  std::string keys = "{";
  for (int i = 0; i < 300'000; ++i) keys += fmt::format("{}\"k{}\":0", i == 0 ? "" : ",", i);
  const std::clock_t start = std::clock();  // processor time: the machine may be busy
  EXPECT_THAT(refusal_of_statement(with_machine(keys + "}")), testing::HasSubstr("too many keys"));
  EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC);
}

TEST_F(Hostile, ManyObjectsInAList) {
  std::string objects = "[{}";
  for (int i = 0; i < 200'000; ++i) objects += ",{}";
  const std::clock_t start = std::clock();
  EXPECT_THAT(refusal_of_statement(with_machine(objects + "]")), testing::StartsWith("statement.json: "));
  EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC);
}

TEST_F(Hostile, AKeyTwice) {
  EXPECT_THAT(refusal_of_statement(with_machine(R"({"cores": 2, "cores": 3})")), testing::HasSubstr("duplicate key"));
}

// The verifier draws up the list of cases again, so the time for this must not depend on the vendor.
TEST_F(Hostile, SelectionsThatTakeLong) {
  const auto refusal = [&](const std::function<void(Commitment&)>& change) {
    parts = bundle();
    Commitment commitment = commitment_of(parts[kCommitment]);
    change(commitment);
    parts[kCommitment] = to_text(commitment);
    return refusal_of_statement(statement_of(parts, {kNonce, "2026-11-20T14:00:00Z", "{}", {{"/p.so", "12"}}}));
  };
  EXPECT_THAT(refusal([](Commitment& one) { one.filter = std::string(1 << 16, '*'); }),
              testing::StartsWith("commitment.json: --filter has 65536 bytes"));
  Commitment commitment = commitment_of(parts[kCommitment]);
  commitment.selection = "full (complete)";
  EXPECT_THAT([&] { commitment_of(to_text(commitment)); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("'full (complete)', neither")));
  EXPECT_THAT(refusal([](Commitment& one) { one.profiles = std::vector<std::string>(1000, "core"); }),
              testing::StartsWith("commitment.json: --profile names 'core' twice"));
}

// Each result is matched with all patterns of waivers, and each waiver with the names of backend and device.
TEST_F(Hostile, JournalsThatTakeLong) {
  const auto refusal = [&](const std::function<void(Record&)>& change) {
    parts = bundle();
    Record record = parse_journal(parts[kJournal], kJournal);
    change(record);
    parts[kJournal] = to_json_line(record.header) + '\n';
    for (const Result& result : record.results) parts[kJournal] += to_json_line(result) + '\n';
    return refusal_of_statement(statement_of(parts, {kNonce, "2026-11-20T14:00:00Z", "{}", {{"/p.so", "12"}}}));
  };
  const auto ends = [&](size_t more) {
    return refusal([&](Record& record) {
      const Result end = {.name = "(end of process)", .state = State::kCrash, .reason = "signal 11"};
      record.results.insert(record.results.end(), record.results.size() + more, end);
    });
  };
  EXPECT_EQ(ends(0), "");
  EXPECT_THAT(ends(1), testing::HasSubstr("case (end of process) occurs more often than"));
  EXPECT_THAT(refusal([](Record& record) { record.results.back().name = "(other)"; }),
              testing::HasSubstr("case (other) is not in the list"));
  // With such a row, an abnormal end in a run by a laboratory would be nothing new.
  EXPECT_THAT(refusal([](Record& record) {
                record.results.push_back({"(end of process)", State::kPass});
              }),
              testing::HasSubstr("case (end of process) is no end of a process"));
  EXPECT_THAT(refusal([](Record& record) {
                record.results.push_back({"(end of process)", State::kNotSupported});
              }),
              testing::HasSubstr("case (end of process) is no end of a process"));
  EXPECT_EQ(refusal([](Record& record) { record.header.identity.device = std::string(4000, 'x'); }), "");
  EXPECT_THAT(refusal([](Record& record) { record.header.identity.device = std::string(4001, 'x'); }),
              testing::HasSubstr("too long"));
}

TEST_F(Hostile, Times) {
  const auto refusal = [&](const std::string& ended) {
    parts = bundle();
    return refusal_of_statement(statement_of(parts, {kNonce, ended, "{}", {{"/p.so", "12"}}}));
  };
  EXPECT_EQ(refusal("2026-11-20T14:00:00Z"), "");
  EXPECT_THAT(refusal("2026-11-20T12:30:00Z"), testing::HasSubstr("not after its start"));
  EXPECT_THAT(refusal("2199-01-01T00:00:00Z"), testing::HasSubstr("in the future"));
  EXPECT_THAT(refusal("yesterday"), testing::HasSubstr("not a time"));
}

TEST_F(Hostile, FilesThatWereNotCommitted) {
  parts = bundle({{"/opt/acme/lib.so", "34"}});
  const auto refusal = [&](std::vector<LoadedFile> files) {
    return refusal_of_statement(statement_of(parts, {kNonce, "2026-11-20T14:00:00Z", "{}", std::move(files)}));
  };
  const LoadedFile plugin = {"/p.so", "12"};
  EXPECT_EQ(refusal({plugin, {"/opt/acme/lib.so", "34"}, {"/opt/acme/more.so", "56"}}), "");
  EXPECT_THAT(refusal({plugin, {"/opt/acme/lib.so", "35"}}), testing::HasSubstr("/opt/acme/lib.so"));
  EXPECT_THAT(refusal({plugin}), testing::HasSubstr("/opt/acme/lib.so"));
  EXPECT_THAT(refusal({{"/opt/acme/lib.so", "34"}}), testing::HasSubstr("hid"));
}

// Text from a vendor reaches terminals and pages as plain text only.
TEST_F(Hostile, EscapesInEveryText) {
  const std::string escape =
      "\033]0;owned\007\xc2\x9b"
      "31m\n<script>alert(1)</script>\xe2\x80\xae";
  Certificate certificate;
  certificate.proof.record.header.identity = {escape, escape, escape, 0, escape, escape, escape, 0};
  certificate.proof.record.header.filter = escape;
  certificate.proof.record.results = {
      {.name = escape, .state = State::kFail, .reason = escape},
      {.name = "ops/x", .state = State::kWaived, .reason = escape, .was = State::kFail, .exception = escape}};
  certificate.proof.statement = {escape, escape, nlohmann::json{{escape, escape}}.dump(), {{escape, ""}}};
  certificate.vendor = {escape, escape, escape};
  certificate.lab = {escape, escape, escape};
  certificate.outcome = outcome(certificate.proof.record.header, certificate.proof.record.results);
  const std::string page = html_of(certificate);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find('\033'), std::string::npos);
  EXPECT_EQ(page.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(page.find("\xe2\x80\xae"), std::string::npos);
  for (const std::string& line : lines_of(certificate)) EXPECT_EQ(cli::printable(line).find('\033'), std::string::npos);
}

// The page of a certificate that passes one case of "ops", and fails none.
std::string page_of(Certificate certificate) {
  certificate.proof.record.header.cases = 1;
  certificate.proof.record.results = {{.name = "ops/Add/float/x/0", .state = State::kPass, .nodes = 1}};
  certificate.proof.statement.machine_json = R"({"memory_bytes": 25325268992})";
  certificate.outcome = outcome(certificate.proof.record.header, certificate.proof.record.results);
  return html_of(certificate);
}

TEST(CertificatePage, SaysUnderTheTitleWhatIsNotVerified) {
  const auto doubts = [](const std::string& fault, bool nonce, bool commitment) {
    const std::string page =
        page_of({.vendor = {"Acme", "aa", fault}, .is_nonce_compared = nonce, .is_commitment_compared = commitment});
    const size_t from = page.find("</h1>") + 6;
    const std::string line = page.substr(from, page.find('\n', from) - from);
    const std::string begin = "<p class=\"but\">not verified: ", end = "</p>";
    return line.starts_with(begin) ? line.substr(begin.size(), line.size() - begin.size() - end.size()) : "";
  };
  EXPECT_EQ(doubts("", true, true), "");
  EXPECT_EQ(doubts("the key is unknown", true, true), "the vendor's signature does not count: the key is unknown");
  EXPECT_EQ(doubts("", false, true), "the nonce was not compared");
  EXPECT_EQ(doubts("", true, false), "the commitment was not compared");
  EXPECT_THAT(doubts("x", false, false), testing::HasSubstr("; the nonce and the commitment were not compared"));
}

TEST(CertificatePage, MarksWhatDoesNotCount) {
  const std::string doubtful = page_of({.vendor = {"Acme", "aa", "the key is unknown"}});
  const std::string certain =
      page_of({.vendor = {"Acme", "aa", ""}, .is_nonce_compared = true, .is_commitment_compared = true});
  EXPECT_THAT(doubtful, testing::HasSubstr("<p class=\"but\">signed by Acme"));
  EXPECT_THAT(doubtful, testing::ContainsRegex("<dt>nonce</dt><dd class=\"but\">"));
  EXPECT_THAT(doubtful, testing::ContainsRegex("<dt>commitment</dt><dd class=\"but\">"));
  EXPECT_THAT(certain, testing::HasSubstr("<p>signed by Acme"));
  EXPECT_EQ(certain.find("<dd class=\"but\">"), std::string::npos);
}

TEST(CertificatePage, LeavesOutCountsThatAreZero) {
  const std::string page = page_of({});
  EXPECT_THAT(page, testing::HasSubstr("<th>group</th><th>passed</th><th>cases</th></tr>"));
  EXPECT_THAT(page, testing::HasSubstr("<th>operator</th><th>type</th><th>passed</th></tr>"));
  EXPECT_THAT(page, testing::HasSubstr("<dt>memory</dt><dd>23.6 GiB</dd>"));
  EXPECT_THAT(page, testing::HasSubstr("not reached: "));
}

TEST(Waivers, CountUntilTheirDayByTheVerifiersClockAndOnlyIfTheyAreSigned) {
  Proof proof;
  proof.exceptions.add_waivers(
      R"({"waivers": [{"device": "*", "versions": ["", ""], "case": "ops/Add/*", "reason": "r", "link": "l", "expires": "2027-06-30"}]})",
      kWaivers);
  Result failure{.name = "ops/Add/float/x/0", .state = State::kFail, .reason = "off", .nodes = 1};
  proof.record.results = {{.name = "abi/x", .state = State::kPass, .nodes = 1},
                          proof.exceptions.on({}, "2027-06-01").apply(failure)};
  ASSERT_EQ(proof.record.results[1].state, State::kWaived);
  proof.record.header.cases = 2;
  EXPECT_EQ(outcome_on(proof, "2027-06-30", true).fault, "");
  EXPECT_THAT(outcome_on(proof, "2027-06-30", false).fault, testing::HasSubstr("no certifier"));
  EXPECT_EQ(outcome_on(proof, "2027-07-01", true).fault, "1 case failed");
  EXPECT_EQ(outcome_on(proof, "2027-07-01", true).summary[State::kWaived], 0u);
  proof.record.results[1].exception = "ops/*";
  EXPECT_THAT(outcome_on(proof, "2027-06-30", true).fault, testing::HasSubstr("too wide"));
}

TEST(Waivers, TheCertificateSaysThatTheyCountOnlyIfTheyDo) {
  Certificate certificate;
  certificate.certifier = Signer{"Certifier", "aa", ""};
  Proof& proof = certificate.proof;
  proof.certifier = Signature{};
  proof.record.header.filter = "ops/*";
  const auto lines = [&](const std::string& pattern, bool accepts_waivers) {
    proof.exceptions = {};
    proof.exceptions.add_waivers(
        fmt::format(R"({{"waivers": [{{"device": "*", "versions": ["", ""], "case": "{}", "reason": "r", "link": "l",
                    "expires": "2027-06-30"}}]}})",
                    pattern),
        kWaivers);
    const Result failure{.name = "ops/Add/float/x/0", .state = State::kFail, .nodes = 1};
    proof.record.results = {proof.exceptions.on({}, "2027-06-01").apply(failure)};
    certificate.outcome = outcome_on(proof, "2027-06-30", accepts_waivers);
    return lines_of(certificate);
  };
  const auto count = testing::Contains(testing::HasSubstr("the waivers count"));
  EXPECT_THAT(lines("ops/Add/*", true), testing::Contains("the waivers count for 1 failure: signed by Certifier (aa)"));
  EXPECT_THAT(lines("ops/Add/*", false), testing::Not(count));
  EXPECT_THAT(lines("*", true), testing::Not(count));          // too wide
  EXPECT_THAT(lines("ops/Mul/*", true), testing::Not(count));  // applies to no case
}

TEST(Rerun, ComparesWithTheJournalWhatLevelsDependOn) {
  Proof proof;
  proof.record.results = {{.name = "ops/Add", .state = State::kPass},
                          {.name = "ops/Erf", .state = State::kFail, .close = true},
                          {.name = "ops/Mul", .state = State::kWaived, .was = State::kFail}};
  const Result end = {.name = "(end of process)", .state = State::kCrash, .reason = "signal 11"};
  const auto refusal = [&](const Result& seen) -> std::string {
    try {
      check_again(proof, seen);
    } catch (const Refused& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.name = "ops/Add", .state = State::kPass}), "");
  EXPECT_EQ(refusal({.name = "ops/Erf", .state = State::kFail, .close = true}), "");
  EXPECT_EQ(refusal({.name = "ops/Mul", .state = State::kFail}), "");
  EXPECT_THAT(refusal({.name = "ops/Add", .state = State::kFail}),
              testing::HasSubstr("is pass in the journal and fail"));
  EXPECT_THAT(refusal({.name = "ops/Erf", .state = State::kFail}), testing::HasSubstr("but not here"));
  EXPECT_THAT(refusal({.name = "ops/Zzz", .state = State::kPass}), testing::HasSubstr("is not in the journal"));
  EXPECT_THAT(refusal(end), testing::HasSubstr("no process ended abnormally in the journal"));
  proof.record.results.insert(proof.record.results.begin(), end);
  EXPECT_EQ(refusal(end), "");
}

TEST(LoadedFiles, DeliveredFilesAreThoseNextToThePlugin) {
  const std::vector<LoadedFile> files = {
      {"/opt/acme/a.so", "1"}, {"/opt/acme/kernels/k.bin", "2"}, {"/opt/acme2/b.so", "3"}, {"/usr/lib/libc.so", "4"}};
  EXPECT_THAT(delivered(files, "1"), testing::ElementsAre(LoadedFile{"a.so", "1"}, LoadedFile{"kernels/k.bin", "2"}));
  EXPECT_THAT(delivered(files, "9"), testing::IsEmpty());
}

TEST(LoadedFiles, AreSeenFromOutside) {
  LoadedFiles loaded;
  loaded.note(::getpid());
  const auto libc = [](const LoadedFile& file) { return file.path.find("libc.so") != std::string::npos; };
  const std::vector<LoadedFile> files = loaded.hashed();
  ASSERT_TRUE(std::ranges::any_of(files, libc));
  EXPECT_EQ(std::ranges::find_if(files, libc)->sha256.size(), 64u);
  LoadedFiles hidden;
  hidden.note(INT32_MAX);  // no such process exists
  ASSERT_EQ(hidden.hashed().size(), 1u);
  EXPECT_EQ(hidden.hashed()[0].sha256, "");
}

TEST(Nonce, MustHave128BitsAndLookDrawn) {
  for (const char* good : {kNonce, "9b1f0c3e5a7d2846e0f1c2b3a4958677"}) EXPECT_EQ(nonce_fault(good), "") << good;
  for (const char* bad :
       {"", "00000000", "20261120-5f3a", "00000000000000000000000000000000", "0123456789abcdef0123456789abcde",
        "0123456789ABCDEF0123456789ABCDEF", "01010101010101010101010101010101", "0123456789abcdef 123456789abcdef"})
    EXPECT_NE(nonce_fault(bad), "") << bad;
}

}  // namespace
}  // namespace backplane::conform
