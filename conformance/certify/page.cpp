// SPDX-License-Identifier: Apache-2.0
#include "certify/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/printable.h"
#include "cli/xml.h"
#include "journal/record.h"
#include "report/run.h"
#include "report/tally.h"

namespace backplane::conform {
namespace {

constexpr size_t kMaxRows = 500;  // in the table of failures
constexpr size_t kOpenRows = 20;  // a longer table of coverage is folded

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

std::string line_of(const char* does, const Signer& signer) {
  return fmt::format("{} {} ({}){}", does, signer.name, signer.key,
                     signer.fault.empty() ? "" : "; it does not count: " + signer.fault);
}

constexpr const char* kObserved =
    "judged apart from the plugin: the groups ops, graph, coverage and determinism; the others, and writes out of "
    "bounds, "
    "are observed in its own process, where a plugin that attacks the harness could falsify them";

struct Line {
  std::string text;
  bool is_doubt = false;  // the text names something that does not count
};

std::vector<Line> signers_of(const Certificate& certificate) {
  const auto line = [](const char* does, const Signer& signer) {
    return Line{line_of(does, signer), !signer.fault.empty()};
  };
  std::vector<Line> lines = {line("signed by", certificate.vendor)};
  if (!certificate.lab) {
    lines.push_back({"not countersigned"});
  } else if (!certificate.lab->fault.empty()) {
    lines.push_back(line("not countersigned: there is a signature by", *certificate.lab));
  } else {
    lines.push_back({line_of("countersigned by", *certificate.lab) + ": " + certificate.proof.lab_report});
  }
  if (certificate.certifier) lines.push_back(line("waivers signed by", *certificate.certifier));
  return lines;
}

// What the verifier did not establish, in one line; empty if the level is verified.
std::string doubts_of(const Certificate& certificate) {
  std::vector<std::string> doubts;
  if (!certificate.vendor.fault.empty())
    doubts.push_back("the vendor's signature does not count: " + certificate.vendor.fault);
  if (!certificate.is_nonce_compared || !certificate.is_commitment_compared)
    doubts.emplace_back(certificate.is_nonce_compared        ? "the commitment was not compared"
                        : certificate.is_commitment_compared ? "the nonce was not compared"
                                                             : "the nonce and the commitment were not compared");
  return doubts.empty() ? "" : fmt::format("not verified: {}", fmt::join(doubts, "; "));
}

std::string level_of(const Certificate& certificate) {
  const std::vector<std::string> reached = certificate.outcome.reached();
  return reached.empty() ? "no level" : reached.back();
}

const char* nonce_note(const Certificate& certificate) {
  return certificate.is_nonce_compared ? "the one that was drawn"
                                       : "not compared: pass the one that you drew as --nonce";
}
const char* commitment_note(const Certificate& certificate) {
  return certificate.is_commitment_compared ? "the one that was sent"
                                            : "not compared: pass the one that you were sent as --commitment";
}

size_t unhashed(const Certificate& certificate) {
  return static_cast<size_t>(std::ranges::count_if(certificate.proof.statement.files,
                                                   [](const LoadedFile& file) { return file.sha256.empty(); }));
}

// --- The page ---

struct Property {
  std::string name, value;
  bool is_doubt = false;
};

// Escapes or replaces characters that could change the page or mislead its reader.
std::string html(std::string_view text) {
  return cli::xml(cli::printable(text));
}

// Lets a browser break a line after each '/', as in names of cases and files.
std::string breakable(const std::string& markup) {
  std::string text;
  for (const char c : markup) text += c == '/' ? "/<wbr>" : std::string(1, c);
  return text;
}

class Page {
 public:
  void heading(std::string_view text) { body_ += fmt::format("<h2>{}</h2>\n", html(text)); }
  void paragraph(std::string_view text, std::string_view kind = "") {
    body_ += kind.empty() ? fmt::format("<p>{}</p>\n", html(text))
                          : fmt::format("<p class=\"{}\">{}</p>\n", kind, html(text));
  }
  void raw(std::string_view markup) { body_ += markup; }
  void properties(const std::vector<Property>& rows) {
    body_ += "<dl>\n";
    for (const auto& [name, value, is_doubt] : rows) {
      if (!value.empty())
        body_ += fmt::format("<dt>{}</dt><dd{}>{}</dd>\n", html(name), is_doubt ? " class=\"but\"" : "", html(value));
    }
    body_ += "</dl>\n";
  }
  void table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
    body_ += "<div class=\"scroll\"><table><thead><tr>";
    for (const std::string& cell : head) body_ += fmt::format("<th>{}</th>", html(cell));
    body_ += "</tr></thead>\n<tbody>\n";
    for (const auto& row : rows) {
      body_ += "<tr>";
      for (const std::string& cell : row) body_ += fmt::format("<td>{}</td>", breakable(html(cell)));
      body_ += "</tr>\n";
    }
    body_ += "</tbody></table></div>\n";
  }
  const std::string& body() const { return body_; }

 private:
  std::string body_;
};

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --soft: #666; --line: #ccc; --good: #1a7f37; --bad: #b42318; --card: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --soft: #9aa; --line: #444; --good: #3fb950; --bad: #ff7b72; --card: #1c2128; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 16px; max-width: 60rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
p { margin: .25rem 0; overflow-wrap: anywhere; }
.but, .bad { color: var(--bad); font-weight: 600; }
.levels { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.level { background: var(--card); border-left: 5px solid var(--bad); padding: .5rem .7rem; overflow-wrap: anywhere; }
.level.reached { border-color: var(--good); }
.level b { display: block; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .2rem 1rem; margin: .5rem 0; font-size: .9rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; width: 100%; }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td:last-child { overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--soft); }
@media (max-width: 36rem) { th, td { padding-right: .4rem; } dl { grid-template-columns: 1fr; } dt { margin-top: .3rem; } }
@media print { body { max-width: none; } }
)";

constexpr std::pair<std::string_view, std::string_view> kMeanings[] = {
    {"L0", "loadable"}, {"L1", "functional"}, {"L2", "accurate"}, {"L3", "robust"}};

void add_levels(Page& page, const Certificate& certificate) {
  page.raw("<div class=\"levels\">\n");
  for (size_t i = 0; i < certificate.outcome.levels.size(); ++i) {
    const Level& level = certificate.outcome.levels[i];
    page.raw(fmt::format("<div class=\"level{}\"><b>{} {}</b>{}</div>\n", level.reached ? " reached" : "", level.name,
                         i < std::size(kMeanings) ? kMeanings[i].second : "",
                         html(level.reached ? "reached" : "not reached: " + level.reason)));
  }
  page.raw("</div>\n");
}

void add_machine(Page& page, const Certificate& certificate) {
  const Proof& proof = certificate.proof;
  const Identity& who = proof.record.header.identity;
  std::vector<Property> properties = {
      {"device", who.device}, {"driver", or_unknown(who.driver)}, {"architecture", who.arch}};
  const nlohmann::ordered_json machine = parse_record(proof.statement.machine_json);
  for (const auto& [key, value] : machine.items()) {
    if (key == "memory_bytes" && value.is_number())
      properties.push_back({"memory", fmt::format("{:.1f} GiB", value.get<double>() / (1 << 30))});
    else
      properties.push_back({key, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  page.properties(properties);
}

void add_exceptions(Page& page, const Certificate& certificate) {
  std::map<std::pair<std::string, std::string>, std::pair<size_t, std::string>> rows;
  for (const Result& result : certificate.proof.record.results) {
    if (!result.was) continue;
    auto& [count, reason] = rows[{std::string(name_of(result.state)), result.exception}];
    if (count++ == 0) reason = result.reason;
  }
  page.heading("Filters, waivers, expected failures");
  if (const std::string& filter = certificate.proof.record.header.filter; !filter.empty())
    page.paragraph(fmt::format("The filter '{}' leaves cases out.", filter), "but");
  if (rows.empty()) {
    page.paragraph("No failure is waived or declared beforehand.");
    return;
  }
  std::vector<std::vector<std::string>> cells;
  for (const auto& [what, found] : rows)
    cells.push_back({what.first, what.second, std::to_string(found.first), found.second});
  page.table({"state", "pattern", "cases", "first reason"}, cells);
}

// Adds a table without the columns of counts that are 0 in every row.
void add_counts(Page& page, const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> kept_head;
  std::vector<std::vector<std::string>> kept(rows.size());
  for (size_t column = 0; column < head.size(); ++column) {
    const bool is_shown = head[column] == "passed" || std::ranges::any_of(rows, [&](const auto& row) {
                            return !row[column].empty() && row[column] != "0";
                          });
    if (!is_shown) continue;
    kept_head.push_back(head[column]);
    for (size_t i = 0; i < rows.size(); ++i) kept[i].push_back(rows[i][column]);
  }
  page.table(kept_head, kept);
}

void add_results(Page& page, const Run& run) {
  page.heading("Groups");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [group, tally] : tally_groups(run)) {
    rows.push_back({group, std::to_string(tally[State::kPass]), std::to_string(tally.bad),
                    std::to_string(tally[State::kNotSupported]), std::to_string(tally[State::kWaived]),
                    std::to_string(tally[State::kExpectedFail]), std::to_string(tally.total())});
  }
  add_counts(page, {"group", "passed", "failed", "not supported", "waived", "expected to fail", "cases"}, rows);

  page.heading("Failures");
  rows.clear();
  size_t left_out = 0;
  for (const Result& result : run.results) {
    const bool is_set_apart = result.state == State::kWaived || result.state == State::kExpectedFail;
    if (!run.is_bad(result) && !is_set_apart) continue;
    if (rows.size() == kMaxRows)
      ++left_out;
    else
      rows.push_back({result.name, std::string(name_of(result.state)), result.reason});
  }
  if (rows.empty())
    page.paragraph("None.");
  else
    page.table({"case", "state", "reason"}, rows);
  if (left_out != 0) page.paragraph(fmt::format("And {} more, in the journal.", left_out), "but");

  page.heading("Coverage");
  rows.clear();
  for (const CoverageRow& row : tally_coverage(run)) {
    rows.push_back({row.op, row.dtype, row.opset == 0 ? "" : std::to_string(row.opset),
                    std::to_string(row.tally[State::kPass]), std::to_string(row.tally.bad),
                    std::to_string(row.tally[State::kNotSupported]),
                    row.tally.worst == 0 ? "" : fmt::format("{:.2g}", row.tally.worst)});
  }
  page.raw(fmt::format("<details{}><summary>{} rows: operator, type, opset</summary>\n",
                       rows.size() <= kOpenRows ? " open" : "", rows.size()));
  add_counts(page, {"operator", "type", "opset", "passed", "failed", "not supported", "largest error / bound"}, rows);
  page.raw("</details>\n");
}

void add_files(Page& page, const Certificate& certificate) {
  const Proof& proof = certificate.proof;
  page.heading("Files");
  page.properties({{"plugin", proof.commitment.plugin},
                   {"manifest", proof.commitment.manifest},
                   {"loader", proof.commitment.loader},
                   {"harness", proof.commitment.harness},
                   {"case list", proof.commitment.list}});
  std::vector<std::vector<std::string>> rows;
  for (const LoadedFile& file : proof.statement.files)
    rows.push_back({file.path, file.sha256.empty() ? "could not be read" : file.sha256});
  page.raw("<details><summary>Files that the plugin loaded into its process</summary>\n");
  page.table({"file", "SHA-256"}, rows);
  page.raw("</details>\n");
}

}  // namespace

std::vector<std::string> lines_of(const Certificate& certificate) {
  const Proof& proof = certificate.proof;
  const Header& header = proof.record.header;
  const Identity& who = header.identity;
  std::vector<std::string> lines = scope_of(header, certificate.outcome);
  if (const size_t excused = certificate.outcome.excused; certificate.certifier && excused != 0)
    lines.push_back(fmt::format("the waivers count for {} {}: {}", excused, excused == 1 ? "failure" : "failures",
                                line_of("signed by", *certificate.certifier)));
  lines.push_back(fmt::format("backend {} {} on {}, driver {}", in_quotes(who.backend), in_quotes(who.version),
                              in_quotes(who.device), who.driver.empty() ? "unknown" : in_quotes(who.driver)));
  lines.push_back(certificate.outcome.summary.to_text());
  for (const Level& level : certificate.outcome.levels)
    lines.push_back(fmt::format("{} {}", level.name, level.reached ? "reached" : "not reached: " + level.reason));
  lines.emplace_back(kObserved);
  lines.push_back(fmt::format(
      "plugin with the SHA-256 {}: {}", proof.commitment.plugin,
      certificate.again ? "the one given with --plugin" : "not compared: pass the one that you have as --plugin"));
  for (Line& line : signers_of(certificate)) lines.push_back(std::move(line.text));
  lines.push_back(fmt::format("nonce {}: {}", proof.statement.nonce, nonce_note(certificate)));
  lines.push_back(fmt::format("commitment of {}: {}", proof.commitment.made, commitment_note(certificate)));
  lines.push_back(fmt::format(
      "{} files that the plugin loaded are hashed{}", proof.statement.files.size(),
      unhashed(certificate) == 0 ? "" : fmt::format(", except {} that could not be read", unhashed(certificate))));
  if (certificate.again)
    lines.push_back(fmt::format("{} cases drawn at random were run again on {} and had the results in the journal",
                                certificate.again->cases, in_quotes(certificate.again->device)));
  return lines;
}

std::string json_of(const Certificate& certificate) {
  using Json = nlohmann::ordered_json;
  const Proof& proof = certificate.proof;
  const auto signer = [](const std::optional<Signer>& who) {
    return who ? Json{{"name", who->name}, {"key", who->key}, {"counts", who->fault.empty()}, {"fault", who->fault}}
               : Json();
  };
  const Json json = {
      {"judged", scope_of(proof.record.header, certificate.outcome)},
      {"levels", certificate.outcome.reached()},
      {"observed", kObserved},
      {"fault", certificate.outcome.fault},
      {"vendor", signer(certificate.vendor)},
      {"lab", signer(certificate.lab)},
      {"lab_report", proof.lab_report},
      {"certifier", signer(certificate.certifier)},
      {"nonce", {{"value", proof.statement.nonce}, {"compared", certificate.is_nonce_compared}}},
      {"commitment", {{"made", proof.commitment.made}, {"compared", certificate.is_commitment_compared}}},
      {"plugin_sha256", proof.commitment.plugin},
      {"again", certificate.again ? Json(certificate.again->cases) : Json()},
      {"summary", parse_record(certificate.outcome.summary.to_json(certificate.outcome.reached(),
                                                                   certificate.outcome.conditions))}};
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

std::string html_of(const Certificate& certificate) {
  const Proof& proof = certificate.proof;
  const Header& header = proof.record.header;
  const Identity& who = header.identity;
  const Run run = {header, proof.record.results};
  const std::string title = fmt::format("{} on {}: {}", run.title(), who.device, level_of(certificate));

  Page page;
  page.raw(fmt::format("<h1>{}</h1>\n", html(title)));
  if (const std::string doubts = doubts_of(certificate); !doubts.empty()) page.paragraph(doubts, "but");
  for (const std::string& line : scope_of(header, certificate.outcome))
    page.paragraph(line, line.starts_with("but ") ? "but" : "");
  if (!certificate.outcome.fault.empty()) page.paragraph(certificate.outcome.fault, "bad");
  page.paragraph(certificate.outcome.summary.to_text());
  add_levels(page, certificate);

  page.heading("Who signed");
  for (const auto& [text, is_doubt] : signers_of(certificate)) page.paragraph(text, is_doubt ? "but" : "");
  page.properties({{"nonce", fmt::format("{} ({})", proof.statement.nonce, nonce_note(certificate)),
                    !certificate.is_nonce_compared},
                   {"commitment", fmt::format("{} ({})", proof.commitment.made, commitment_note(certificate)),
                    !certificate.is_commitment_compared},
                   {"started", header.started},
                   {"ended", proof.statement.ended},
                   {"verified", utc_now()},
                   {"run again", certificate.again ? fmt::format("{} cases, on {}", certificate.again->cases,
                                                                 certificate.again->device)
                                                   : "no case, by the verifier"}});
  page.heading("What this proves");
  page.paragraph(
      "The files hashed below ran these cases with inputs that follow from the nonce, and the results are those in the "
      "journal, if those who signed can be trusted. The groups ops, graph, coverage and determinism were judged by a "
      "process that never loads the plugin. The other groups, and writes out of bounds, are observed in the plugin's "
      "process, where a plugin that attacks the harness could falsify them. Files that a plugin reads without mapping "
      "them, its hardware and its firmware are not hashed.");
  page.heading("Where");
  add_machine(page, certificate);
  add_exceptions(page, certificate);
  add_results(page, run);
  add_files(page, certificate);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body>\n{}</body></html>\n",
      html(title), kStyle, page.body());
}

}  // namespace backplane::conform
