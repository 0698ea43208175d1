// SPDX-License-Identifier: Apache-2.0
#include "kernels/ml/trees.h"

#include <array>
#include <cmath>
#include <map>

#include "backplane/sdk/fence.hpp"

namespace backplane::cpu::ml {

namespace {

bool passes(const Forest& forest, const Branch& branch, double x) {
  if (branch.missing_is_true && std::isnan(x)) return true;
  switch (branch.test) {
    case Test::kLessEqual:
      return x <= branch.value;
    case Test::kLess:
      return x < branch.value;
    case Test::kGreaterEqual:
      return x >= branch.value;
    case Test::kGreater:
      return x > branch.value;
    case Test::kEqual:
      return x == branch.value;
    case Test::kNotEqual:
      return x != branch.value;
    case Test::kMember:
      break;
  }
  return std::ranges::binary_search(forest.members[branch.members], x);
}

[[noreturn]] void mismatch(const std::string& what) {
  throw sdk::Error(BP_INVALID_MODEL, what);
}

// Returns entry i of an attribute's list. An optional list may be empty; all entries are then `fallback`.
template <class T>
T entry(const std::vector<T>& list, size_t i, T fallback) {
  return i < list.size() ? list[i] : fallback;
}
void expect_length(std::string_view name, size_t seen, size_t expected, bool may_miss = false) {
  if (seen == expected || (may_miss && seen == 0)) return;
  mismatch(std::string(name) + " has " + std::to_string(seen) + " entries instead of " + std::to_string(expected));
}

}  // namespace

std::string Forest::check(int64_t targets) {
  auto count = static_cast<int64_t>(branches.size()), last_leaf = static_cast<int64_t>(leaves.size());
  auto exists = [&](int64_t child) { return child >= 0 ? child < count : ~child < last_leaf; };
  for (const Branch& branch : branches) {
    for (int64_t child : {branch.yes, branch.no})
      if (!exists(child))
        return "a node of a tree has the child " + std::to_string(child < 0 ? ~child : child) + ", but there are " +
               std::to_string(child < 0 ? last_leaf : count) + (child < 0 ? " leaves" : " nodes");
    if (branch.feature < 0 || branch.feature > INT32_MAX)
      return "nodes_featureids contains " + std::to_string(branch.feature) + "; it must be 0 to 2^31 - 1";
    features = std::max(features, branch.feature + 1);
  }
  for (const auto& leaf : leaves) {
    for (const LeafWeight& weight : leaf) {
      if (weight.target < 0 || weight.target >= targets)
        return "a leaf has target " + std::to_string(weight.target) + ", but the number of targets is " +
               std::to_string(targets);
    }
  }
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> states(branches.size(), kNew);
  std::vector<int64_t> path;
  for (int64_t root : roots) {
    if (!exists(root))
      return "a tree has the root " + std::to_string(root) + ", but there are " + std::to_string(count) + " nodes";
    path.push_back(root);
    while (!path.empty()) {
      int64_t at = path.back();
      if (at < 0 || states[static_cast<size_t>(at)] != kNew) {
        if (at >= 0) states[static_cast<size_t>(at)] = kDone;
        path.pop_back();
        continue;
      }
      states[static_cast<size_t>(at)] = kOpen;
      for (int64_t child : {branches[static_cast<size_t>(at)].yes, branches[static_cast<size_t>(at)].no}) {
        if (child >= 0 && states[static_cast<size_t>(child)] == kOpen) return "the nodes of a tree form a cycle";
        path.push_back(child);
      }
    }
  }
  return {};
}

const std::vector<LeafWeight>& Forest::leaf(int64_t at, std::span<const double> row) const {
  while (at >= 0) {
    const Branch& branch = branches[static_cast<size_t>(at)];
    at = passes(*this, branch, row[static_cast<size_t>(branch.feature)]) ? branch.yes : branch.no;
  }
  return leaves[static_cast<size_t>(~at)];
}

void aggregate(const Forest& forest, Aggregate how, std::span<const double> row, std::span<Score> scores) {
  for (int64_t root : forest.roots) {
    for (const auto& [target, weight] : forest.leaf(root, row)) {
      Score& score = scores[static_cast<size_t>(target)];
      bool replaces = !score.has || (how == Aggregate::kMin && weight < score.value) ||
                      (how == Aggregate::kMax && weight > score.value);
      if (how == Aggregate::kMin || how == Aggregate::kMax)
        score.value = replaces ? weight : score.value;
      else
        score.value += weight;
      score.has = true;
    }
  }
  if (how != Aggregate::kAverage) return;
  for (Score& score : scores) score.value /= static_cast<double>(forest.roots.size());
}

Forest read_forest(const Node& node) {
  Forest forest;
  std::vector<int64_t> features = node.ints("nodes_featureids"), yes = node.ints("nodes_truenodeids"),
                       no = node.ints("nodes_falsenodeids"), yes_is_leaf = node.ints("nodes_trueleafs"),
                       no_is_leaf = node.ints("nodes_falseleafs"), targets = node.ints("leaf_targetids"),
                       missing = node.ints("nodes_missing_value_tracks_true");
  std::vector<double> modes = numbers_of(node, "", "nodes_modes"), splits = numbers_of(node, "", "nodes_splits"),
                      weights = numbers_of(node, "", "leaf_weights"),
                      members = numbers_of(node, "", "membership_values");
  expect_length("nodes_modes", modes.size(), features.size());
  expect_length("nodes_splits", splits.size(), features.size());
  expect_length("nodes_truenodeids", yes.size(), features.size());
  expect_length("nodes_falsenodeids", no.size(), features.size());
  expect_length("nodes_trueleafs", yes_is_leaf.size(), features.size());
  expect_length("nodes_falseleafs", no_is_leaf.size(), features.size());
  expect_length("nodes_missing_value_tracks_true", missing.size(), features.size(), true);
  expect_length("leaf_weights", weights.size(), targets.size());
  forest.roots = node.ints("tree_roots");
  for (size_t i = 0; i < targets.size(); ++i) forest.leaves.push_back({{targets[i], weights[i]}});
  auto child = [](int64_t id, int64_t is_leaf) {
    if (id < 0)
      mismatch("nodes_truenodeids or nodes_falsenodeids contains " + std::to_string(id) + "; ids must not be negative");
    return is_leaf != 0 ? ~id : id;
  };
  // membership_values holds the set of each node that tests for membership, in the order of the nodes and each followed
  // by a NaN.
  auto next = members.begin();
  for (size_t i = 0; i < features.size(); ++i) {
    if (!(modes[i] >= 0 && modes[i] <= 6))
      mismatch("nodes_modes contains " + std::to_string(modes[i]) + "; modes are 0 to 6");
    Branch branch{static_cast<Test>(modes[i]),   entry(missing, i, int64_t{0}) != 0, features[i], splits[i], 0,
                  child(yes[i], yes_is_leaf[i]), child(no[i], no_is_leaf[i])};
    if (branch.test == Test::kMember) {
      auto end = std::find_if(next, members.end(), [](double x) { return std::isnan(x); });
      if (end == members.end())
        mismatch("membership_values has fewer sets than there are nodes with a membership test");
      branch.members = static_cast<uint32_t>(forest.members.size());
      forest.members.emplace_back(next, end);
      std::ranges::sort(forest.members.back());
      next = end + 1;
    }
    forest.branches.push_back(branch);
  }
  return forest;
}

Forest read_old_forest(const Node& node, std::string_view leaf_prefix) {
  constexpr std::array<std::string_view, 7> kModes = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                                      "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
  std::string prefix(leaf_prefix);
  std::vector<int64_t> trees = node.ints("nodes_treeids"), ids = node.ints("nodes_nodeids"),
                       features = node.ints("nodes_featureids"), yes = node.ints("nodes_truenodeids"),
                       no = node.ints("nodes_falsenodeids"), missing = node.ints("nodes_missing_value_tracks_true"),
                       leaf_trees = node.ints(prefix + "_treeids"), leaf_nodes = node.ints(prefix + "_nodeids"),
                       targets = node.ints(prefix + "_ids");
  std::vector<std::string> modes = node.texts("nodes_modes");
  std::vector<double> values = numbers_of(node, "nodes_values", "nodes_values_as_tensor"),
                      weights = numbers_of(node, prefix + "_weights", prefix + "_weights_as_tensor");
  size_t count = ids.size();
  expect_length("nodes_treeids", trees.size(), count);
  expect_length("nodes_featureids", features.size(), count);
  expect_length("nodes_truenodeids", yes.size(), count);
  expect_length("nodes_falsenodeids", no.size(), count);
  expect_length("nodes_modes", modes.size(), count);
  expect_length("nodes_values", values.size(), count);
  expect_length("nodes_missing_value_tracks_true", missing.size(), count, true);
  expect_length(prefix + "_nodeids", leaf_nodes.size(), leaf_trees.size());
  expect_length(prefix + "_ids", targets.size(), leaf_trees.size());
  expect_length(prefix + "_weights", weights.size(), leaf_trees.size());

  Forest forest;
  std::map<std::pair<int64_t, int64_t>, int64_t>
      indices;                  // by (tree, node): the index of a branch, or ~index of a leaf
  std::vector<size_t> sources;  // by branch: its index in the attributes' lists
  for (size_t i = 0; i < count; ++i) {
    bool is_leaf = modes[i] == kModes.back();
    int64_t index = is_leaf ? ~static_cast<int64_t>(forest.leaves.size()) : static_cast<int64_t>(sources.size());
    if (is_leaf)
      forest.leaves.emplace_back();
    else
      sources.push_back(i);
    if (!indices.emplace(std::pair(trees[i], ids[i]), index).second)
      mismatch("tree " + std::to_string(trees[i]) + " has node " + std::to_string(ids[i]) + " twice");
  }
  auto find = [&](int64_t tree, int64_t id) {
    auto found = indices.find({tree, id});
    if (found == indices.end()) mismatch("tree " + std::to_string(tree) + " has no node " + std::to_string(id));
    return found->second;
  };
  std::vector<bool> is_child_branch(sources.size()), is_child_leaf(forest.leaves.size());
  auto adopt = [&](int64_t index) {
    if (index >= 0)
      is_child_branch[static_cast<size_t>(index)] = true;
    else
      is_child_leaf[static_cast<size_t>(~index)] = true;
    return index;
  };
  for (size_t i : sources) {
    auto mode = std::ranges::find(kModes, modes[i]);
    if (mode == kModes.end()) mismatch("nodes_modes contains the unknown mode '" + modes[i] + "'");
    forest.branches.push_back({static_cast<Test>(mode - kModes.begin()), entry(missing, i, int64_t{0}) != 0,
                               features[i], values[i], 0, adopt(find(trees[i], yes[i])), adopt(find(trees[i], no[i]))});
  }
  // Roots are the nodes that are not children of another node, in the order of the attributes' lists.
  for (size_t i = 0; i < count; ++i) {
    int64_t index = find(trees[i], ids[i]);
    if (index >= 0 ? !is_child_branch[static_cast<size_t>(index)] : !is_child_leaf[static_cast<size_t>(~index)])
      forest.roots.push_back(index);
  }
  for (size_t i = 0; i < leaf_trees.size(); ++i) {
    int64_t index = find(leaf_trees[i], leaf_nodes[i]);
    if (index < 0) forest.leaves[static_cast<size_t>(~index)].push_back({targets[i], weights[i]});
  }
  return forest;
}

}  // namespace backplane::cpu::ml
