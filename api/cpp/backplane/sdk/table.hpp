// SPDX-License-Identifier: Apache-2.0
// The operator table of a backend. It reports coverage and decides which nodes the compiler accepts.
#pragma once

#include <initializer_list>
#include <unordered_map>

#include "backplane/sdk/coverage.hpp"

namespace backplane::sdk {

// In addition to the node, a verdict may depend on the device's capabilities and on what the session allows.
template <class Caps>
struct Query {
  const Caps& caps;
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed
  Options options = {};        // settings passed with this query or compilation
};
template <>
struct Query<void> {
  uint32_t compute_types = 0;
  Options options = {};
};

// A row: one form of an operator, valid from `since_version` until the version of the operator's next row. `supports`
// decides coverage and is also checked before `create`, so a node that coverage accepts can be compiled with the same
// query.
template <class Kernel, class Caps = void>
struct Op {
  std::string_view domain;  // "" is ai.onnx
  std::string_view type;
  uint32_t since_version;
  Verdict (*supports)(const Node& node, const Query<Caps>& query);
  std::unique_ptr<Kernel> (*create)(const Node& node);

  Verdict judge(const Node& node, const Query<Caps>& query) const { return supports(node, query); }
};
template <class Kernel>
struct Op<Kernel, void> {
  std::string_view domain;
  std::string_view type;
  uint32_t since_version;
  Verdict (*supports)(const Node& node);
  std::unique_ptr<Kernel> (*create)(const Node& node);

  Verdict judge(const Node& node, const Query<void>&) const { return supports(node); }
};

// A row that only reports coverage, for devices whose compiler takes whole islands.
struct Claim {
  std::string_view domain;
  std::string_view type;
  uint32_t since_version;
  Verdict (*supports)(const Node& node);

  Verdict judge(const Node& node, const Query<void>&) const { return supports(node); }
};

// A table of rows from one array or several (one per family of operators). A Row has `domain`, `type`, `since_version`
// and `judge`, like Op. The rows must outlive the table.
template <class Row, class Caps = void>
class RowTable {
 public:
  struct Rows {
    template <size_t kCount>
    Rows(const Row (&rows)[kCount]) : first(rows), count(kCount) {}  // NOLINT(google-explicit-constructor)
    template <class Span>
    Rows(const Span& rows) : first(rows.data()), count(rows.size()) {}  // NOLINT(google-explicit-constructor)
    const Row* first;
    size_t count;
  };

  // Creates a table in which an operator's last row has no upper version. The host ignores verdicts on forms that are
  // newer than the backend's opsets.
  explicit RowTable(std::initializer_list<Rows> families) {
    for (const Rows& family : families) {
      for (size_t i = 0; i < family.count; ++i) add(family.first[i]);
    }
  }
  // Creates a table in which an operator's last row is valid up to its domain's version in `newest`, which must outlive
  // the table. Later forms are refused.
  template <size_t kCount>
  RowTable(std::initializer_list<Rows> families, const bp_opset_t (&newest)[kCount]) : RowTable(families) {
    newest_ = newest;
    newest_count_ = kCount;
  }

  // The row for the node's form of its operator, or NULL.
  const Row* find(const Node& node) const {
    const uint32_t version = node.since_version();
    if (version > newest(node.domain())) return nullptr;
    const Row* best = nullptr;
    for (const Row* row : rows_of(node)) {
      if (row->since_version <= version) best = row;
    }
    return best;
  }

  // The table's verdict on a node.
  Verdict ask(const Node& node, const Query<Caps>& query) const {
    const Row* row = find(node);
    return row != nullptr ? row->judge(node, query) : unknown(node);
  }

  // Returns the node's row. If the node is not supported, throws BP_UNSUPPORTED with the node and the reason.
  const Row& require(const Node& node, const Query<Caps>& query) const {
    const Verdict verdict = ask(node, query);
    if (verdict.answer == BP_ANSWER_NO)
      throw Error(BP_UNSUPPORTED,
                  std::string(node.op_type()) + " '" + std::string(node.name()) + "': " + verdict.detail, node.id());
    return *find(node);
  }

  // Reports a verdict for every node of the query.
  void answer(Coverage& coverage, const Query<Caps>& query) const {
    for (uint32_t i = 0; i < coverage.node_count(); ++i) {
      if (i % 256 == 0) coverage.check_cancelled();
      coverage.answer(coverage.node(i), ask(coverage.node(i), query));
    }
  }

 private:
  struct Name {
    std::string_view domain, type;
    bool operator==(const Name& other) const { return type == other.type && domain == other.domain; }
  };
  struct Hash {
    size_t operator()(const Name& name) const {
      const std::hash<std::string_view> hash;
      return hash(name.type) * 31 + hash(name.domain);
    }
  };
  using Forms = std::vector<const Row*>;  // of one operator, by version

  void add(const Row& row) {
    Forms& forms = forms_[{row.domain, row.type}];
    const auto at = std::find_if(forms.begin(), forms.end(),
                                 [&](const Row* other) { return other->since_version > row.since_version; });
    forms.insert(at, &row);
  }
  const Forms& rows_of(const Node& node) const {
    static const Forms kNone;
    const auto at = forms_.find({node.domain(), node.op_type()});
    return at == forms_.end() ? kNone : at->second;
  }
  uint32_t newest(std::string_view domain) const {
    for (size_t i = 0; i < newest_count_; ++i) {
      if (text(newest_[i].domain) == domain) return newest_[i].version;
    }
    return UINT32_MAX;
  }
  Verdict unknown(const Node& node) const {
    const std::string op(node.op_type());
    const Forms& forms = rows_of(node);
    if (forms.empty()) return no(BP_REASON_OPERATOR, "operator " + op + " is not known");
    std::string known;
    for (const Row* row : forms) known += (known.empty() ? "" : ", ") + std::to_string(row->since_version);
    const uint32_t last = newest(node.domain());
    return no(BP_REASON_OPSET, op + " is in its form of opset " + std::to_string(node.since_version()) +
                                   "; known forms: " + known + " and later" +
                                   (last == UINT32_MAX ? "" : ", up to opset " + std::to_string(last)));
  }

  const bp_opset_t* newest_ = nullptr;
  size_t newest_count_ = 0;
  std::unordered_map<Name, Forms, Hash> forms_;
};

// A table of Op rows, for backends that create a kernel object for each node.
template <class Kernel, class Caps = void>
class OpTable : public RowTable<Op<Kernel, Caps>, Caps> {
 public:
  using Base = RowTable<Op<Kernel, Caps>, Caps>;
  using Base::answer;
  using Base::ask;

  template <size_t kCount>
  explicit OpTable(const Op<Kernel, Caps> (&rows)[kCount]) : Base({rows}) {}
  template <size_t kCount, size_t kOpsets>
  OpTable(const Op<Kernel, Caps> (&rows)[kCount], const bp_opset_t (&newest)[kOpsets]) : Base({rows}, newest) {}

  // For tables whose verdicts depend on nothing but the node (Caps is void).
  Verdict ask(const Node& node) const { return ask(node, {}); }
  void answer(Coverage& coverage) const { answer(coverage, {coverage.compute_types(), coverage.options()}); }

  // Creates the node's kernel. Throws BP_UNSUPPORTED with the node and the reason.
  std::unique_ptr<Kernel> create(const Node& node, const Query<Caps>& query) const {
    return this->require(node, query).create(node);
  }
  std::unique_ptr<Kernel> create(const Node& node) const { return create(node, {}); }
};

}  // namespace backplane::sdk
