// SPDX-License-Identifier: Apache-2.0
// uncovered.txt must list exactly the operators that have a kernel in the CPU backend but no oracle in the harness.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "cases/cases.h"
#include "host/program.h"
#include "judge/control.h"
#include "judge/estimate.h"

namespace backplane::conform {
namespace {

const std::string kFolder = BACKPLANE_SOURCE_DIR;

// One version of an operator, from the loader's schemas.
struct Form {
  std::string domain, name;
  uint32_t version = 0;
  size_t inputs = 0, outputs = 0;

  std::string full_name() const { return domain.empty() ? name : domain + "." + name; }
};

std::vector<Form> all_forms() {
  std::vector<Form> forms;
  std::ifstream file(kFolder + "/loader/ops/schema/schemas.txt");
  EXPECT_TRUE(file.is_open()) << "the loader's schemas have moved";
  std::string line, domain;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind, name, inputs, outputs, flag;
    uint32_t version = 0;
    words >> kind >> name;
    if (kind == "domain") domain = name == "ai.onnx" ? "" : name;
    if (kind != "op") continue;
    words >> version >> inputs >> outputs >> flag;
    if (flag == "deprecated") continue;
    // The file has counts as MIN-MAX, and stoul reads MIN. A graph has at least one output.
    forms.push_back({domain, name, version, std::stoul(inputs), std::max<size_t>(1, std::stoul(outputs))});
  }
  return forms;
}

// True if the device knows the operator. It may refuse this call because of types or shapes, but not because of the
// operator.
bool has_kernel(const Device& device, const Form& form) {
  GraphSpec spec{.opset = device.newest_opset()};
  NodeSpec node{.op_type = form.name, .domain = form.domain, .since_version = form.version};
  for (size_t i = 0; i < form.inputs + form.outputs; ++i) {
    const auto value = static_cast<uint32_t>(i);
    spec.values.push_back({BP_DTYPE_FLOAT, {1, 1}, {}});
    (i < form.inputs ? spec.inputs : spec.outputs).push_back(value);
    (i < form.inputs ? node.inputs : node.outputs).push_back(value);
  }
  spec.nodes.push_back(std::move(node));
  std::vector<Claim> claims;
  const Answer answer = device.coverage(Graph(std::move(spec)), claims);
  EXPECT_TRUE(answer.ok()) << form.full_name() << ": " << answer.describe();
  return answer.ok() && (claims[0].answer != BP_ANSWER_NO ||
                         (claims[0].reason != BP_REASON_OPERATOR && claims[0].reason != BP_REASON_OPSET));
}

// Operators of com.microsoft have no schemas. The reference lists those that the CPU backend has, in the first column
// of its table, each in backquotes; the test of the backend's own table compares it with the rows.
std::set<std::string> operators_of_microsoft() {
  std::ifstream page(kFolder + "/docs/reference/microsoft.md");
  EXPECT_TRUE(page.is_open()) << "the reference of com.microsoft has moved";
  std::set<std::string> names;
  std::string line;
  while (std::getline(page, line)) {
    if (!line.starts_with("| `")) continue;
    std::istringstream column(line.substr(0, line.find('|', 1)));
    std::string between, name;
    while (std::getline(column, between, '`') && std::getline(column, name, '`')) names.insert("com.microsoft." + name);
  }
  EXPECT_GE(names.size(), 28u);
  return names;
}

std::set<std::string> operators_with_kernel() {
  Host host;
  const Library library(std::string(BACKPLANE_BUILD_DIR) + "/lib/backplane/libbackplane_cpu.so");
  const Backend backend(library, host);
  const Device device(backend, 0);
  std::set<std::string> names;
  for (const Form& form : all_forms()) {
    if (has_kernel(device, form)) names.insert(form.full_name());
  }
  names.merge(operators_of_microsoft());
  return names;
}

std::set<std::string> operators_with_oracle() {
  std::set<std::string> names;
  for (const Operator* op : all_operators()) {
    const std::string type(op->op_type());
    names.insert(op->domain.empty() ? type : std::string(op->domain) + "." + type);
  }
  for (const ControlOperator& op : control_operators()) names.emplace(op.name);
  return names;
}

// The listed operators, each with its reason.
std::map<std::string, std::string> listed() {
  std::map<std::string, std::string> reasons;
  std::ifstream file(kFolder + "/conformance/uncovered.txt");
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    const size_t end = line.find(' ');
    const bool is_new =
        reasons.emplace(line.substr(0, end), end == std::string::npos ? "" : line.substr(end + 1)).second;
    EXPECT_TRUE(is_new) << "conformance/uncovered.txt has two lines for " << line.substr(0, end);
  }
  return reasons;
}

TEST(Uncovered, ListsTheOperatorsWithAKernelAndNoOracle) {
  const std::set<std::string> kernels = operators_with_kernel(), oracles = operators_with_oracle();
  const std::map<std::string, std::string> reasons = listed();
  size_t uncovered = 0;
  for (const std::string& name : kernels) {
    if (oracles.contains(name)) continue;
    ++uncovered;
    EXPECT_TRUE(reasons.contains(name))
        << name << " has a kernel but no oracle: add a family or a row, or list it in conformance/uncovered.txt";
  }
  for (const auto& [name, reason] : reasons) {
    EXPECT_FALSE(oracles.contains(name)) << name << " has an oracle: delete its line in conformance/uncovered.txt";
    EXPECT_TRUE(kernels.contains(name)) << name << " has no kernel: delete its line in conformance/uncovered.txt";
    EXPECT_GE(reason.size(), 10u) << name << " needs a reason in conformance/uncovered.txt";
  }
  std::printf("%zu operators with a kernel, %zu without an oracle\n", kernels.size(), uncovered);
  EXPECT_GE(kernels.size(), 150u);
  EXPECT_LE(uncovered, 40u);
}

}  // namespace
}  // namespace backplane::conform
