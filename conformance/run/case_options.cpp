// SPDX-License-Identifier: Apache-2.0
#include "run/case_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cases/model_cut.h"
#include "checks/group.h"
#include "cli/printable.h"
#include "journal/digest.h"

namespace backplane::conform {
namespace {

void check_profiles(const std::vector<std::string>& names) {
  std::string known;
  for (const Profile& profile : profiles()) known += fmt::format("{}{}", known.empty() ? "" : ", ", profile.name);
  std::map<std::string_view, int> times;
  for (const std::string& name : names) {
    const bool is_known =
        std::any_of(profiles().begin(), profiles().end(), [&](const Profile& one) { return one.name == name; });
    if (!is_known) throw Usage(fmt::format("--profile '{}' is not known: there are {}", name, known));
    if (++times[name] > 1) throw Usage(fmt::format("--profile names '{}' twice", name));
  }
}

}  // namespace

void declare_case_options(cli::Command command, CaseOptions& case_options) {
  command
      .add_option("--profile", case_options.profiles,
                  "Profiles that the backend claims: run only their cases, and fail those that are not supported")
      .separated_by(',')
      .shown_as("NAME");
  command.add_flag("--quick", case_options.quick, "One draw of each case's inputs (the default)");
  command.add_flag("--full", case_options.full, "Ten draws, more graphs, and longer loops");
  command.add_option("--filter", case_options.filter, "Run only cases whose name matches this glob").shown_as("GLOB");
  command.add_option("--shard", case_options.shard, "Run only part i of n, given as i/n").shown_as("I/N");
}

void declare_models(cli::Command command, CaseOptions& case_options) {
  command
      .add_option("--models", case_options.models,
                  "Folder of *.onnx files from which cases graph/models/* are cut; repeatable")
      .one_each()
      .shown_as("FOLDER");
}

namespace {

// Returns the models from which graphs can be cut. Prints the models and nodes that are left out to standard error.
std::vector<ModelFile> usable_models(const std::vector<std::string>& folders) {
  std::vector<ModelFile> files;
  try {
    files = find_models(folders);
  } catch (const std::runtime_error& error) {
    throw Usage(error.what());
  }
  std::erase_if(files, [](const ModelFile& file) {
    try {
      const Model model = read_model(file.path);
      std::string why;
      for (const auto& [reason, nodes] : model.left_out)
        why += fmt::format("{}{} {}", why.empty() ? "; left out: " : ", ", nodes, reason);
      fmt::print(stderr, "graph/models/{}: {} of {} nodes can be cut{}\n", cli::printable(file.name), model.usable,
                 model.nodes.size(), cli::printable(why));
      Random random(1, file.name);
      if (cut_from(model, random, UINT32_MAX)) return false;
      fmt::print(stderr,
                 "graph/models/{}: left out: no graph with known shapes and useful error bounds was found in it\n",
                 cli::printable(file.name));
      return true;
    } catch (const std::runtime_error& error) {
      fmt::print(stderr, "graph/models/{}: left out: {}\n", cli::printable(file.name), cli::printable(error.what()));
      return true;
    }
  });
  if (files.empty() && !folders.empty())
    throw Usage(fmt::format("--models: no model in '{}' could be cut", fmt::join(folders, "', '")));
  return files;
}

}  // namespace

Plan plan(const CaseOptions& case_options) {
  if (case_options.quick && case_options.full) throw Usage("--quick and --full exclude each other");
  check_profiles(case_options.profiles);
  if (!case_options.models.empty() && !case_options.profiles.empty())
    throw Usage("--models and --profile exclude each other: what a profile claims does not depend on files");
  const std::vector<ModelFile> models = usable_models(case_options.models);
  Plan plan;
  if (!models.empty()) {
    std::vector<std::string> files;
    for (const ModelFile& model : models) files.push_back(fmt::format("{} {}", sha256_of_file(model.path), model.name));
    plan.models = sha256_of_list(std::move(files));
  }
  for (Case& one : all_cases({.full = case_options.full, .models = models})) {
    const bool is_claimed = one.profile.empty() || case_options.profiles.empty() ||
                            std::find(case_options.profiles.begin(), case_options.profiles.end(), one.profile) !=
                                case_options.profiles.end();
    if (is_claimed) plan.cases.push_back(std::move(one));
  }
  if (!case_options.filter.empty()) plan.cases = filter(std::move(plan.cases), case_options.filter);
  std::vector<std::string> names;
  for (const Case& one : plan.cases) names.push_back(one.name);
  plan.total = names.size();
  plan.list = sha256_of_list(std::move(names));
  if (!case_options.shard.empty()) {
    plan.shard = parse_shard(case_options.shard);
    plan.cases = select(std::move(plan.cases), plan.shard);
  }
  if (plan.cases.empty()) throw Usage("--filter and --shard leave no case; `backplane-conform list` prints all");
  return plan;
}

}  // namespace backplane::conform
