// SPDX-License-Identifier: Apache-2.0
#include "ops/schema/schema.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <unordered_map>

#include "base/dtype.h"
#include "ops/schema/schema_text.h"

namespace backplane::ops {
namespace {

struct Key {
  std::string_view domain, name;
  bool operator==(const Key&) const = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    std::hash<std::string_view> hash;
    return hash(key.name) * 31 + hash(key.domain);
  }
};

struct TypeSet {
  std::string_view parameter;
  bp_dtype_set_t dtypes = 0;
  uint32_t kinds = 0;
};

constexpr std::string_view kAttributeTypes[] = {
    "",        "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
    "strings", "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type",  "types"};

constexpr std::string_view kKinds[] = {"", "tensor", "sparse", "sequence", "optional", "map"};

template <size_t kCount>
uint32_t position(const std::string_view (&table)[kCount], std::string_view word) {
  return static_cast<uint32_t>(std::find(table, table + kCount, word) - table) % kCount;
}

// Removes the text up to and including the first `separator` from `rest`, and returns it without the separator.
std::string_view cut(std::string_view& rest, char separator) {
  size_t end = std::min(rest.find(separator), rest.size());
  std::string_view head = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return head;
}

template <class T>
T number(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Parses schemas.txt, which is built into the library. A malformed line is a defect of the build; the test parses all
// lines.
class Reader {
 public:
  void read(std::string_view text) {
    forms.reserve(std::count(text.begin(), text.end(), '\n') / 6);
    while (!text.empty()) {
      std::string_view line = cut(text, '\n');
      if (line.empty() || line.front() == '#') continue;
      std::string_view word = cut(line, ' ');
      if (word == "domain") {
        domain(line);
      } else if (word == "op") {
        finish();
        form(line);
      } else if (word == "in") {
        forms.back().inputs.push_back(formal(line));
      } else if (word == "out") {
        forms.back().outputs.push_back(formal(line));
      } else if (word == "type") {
        types_.push_back(type_set(line));
      } else {
        forms.back().attributes.push_back(attribute(line));
      }
    }
    finish();
  }

  std::vector<Schema> forms;
  std::vector<std::pair<std::string_view, uint32_t>> domains;

 private:
  void domain(std::string_view line) {
    std::string_view name = cut(line, ' ');
    domains.emplace_back(name == "ai.onnx" ? std::string_view() : name, number<uint32_t>(line));
  }

  void form(std::string_view line) {
    Schema& schema = forms.emplace_back();
    schema.domain = domains.back().first;
    schema.name = cut(line, ' ');
    schema.since_version = number<uint32_t>(cut(line, ' '));
    range(cut(line, ' '), schema.min_inputs, schema.max_inputs);
    range(cut(line, ' '), schema.min_outputs, schema.max_outputs);
    while (!line.empty()) {
      std::string_view word = cut(line, ' ');
      if (word == "deprecated") schema.deprecated = true;
      if (word == "function") schema.function = true;
      if (word == "random") schema.deterministic = false;
    }
  }

  static void range(std::string_view text, uint32_t& min, uint32_t& max) {
    min = number<uint32_t>(cut(text, '-'));
    max = text == "*" ? UINT32_MAX : number<uint32_t>(text);
  }

  static Formal formal(std::string_view line) {
    Formal formal;
    formal.name = cut(line, ' ');
    formal.type = line;
    switch (formal.name.back()) {
      case '?':
        formal.option = Formal::kOptional;
        break;
      case '*':
        formal.option = Formal::kVariadic;
        break;
      case '+':
        formal.option = Formal::kVariadic;
        formal.homogeneous = false;
        break;
      default:
        return formal;
    }
    formal.name.remove_suffix(1);
    return formal;
  }

  static TypeSet type_set(std::string_view line) {
    TypeSet set;
    set.parameter = cut(line, ' ');
    while (!line.empty()) add(set, cut(line, ' '));
    return set;
  }

  static void add(TypeSet& set, std::string_view word) {
    if (bp_dtype_t dtype = dtype_of(word); dtype != BP_DTYPE_UNDEFINED) {
      set.dtypes |= uint64_t{1} << dtype;
      set.kinds |= 1u << BP_KIND_TENSOR;
    } else {
      set.kinds |= 1u << position(kKinds, word);
    }
  }

  static AttributeRule attribute(std::string_view line) {
    AttributeRule rule;
    rule.name = cut(line, ' ');
    rule.required = rule.name.back() == '!';
    if (rule.required) rule.name.remove_suffix(1);
    rule.type = position(kAttributeTypes, cut(line, ' '));
    rule.has_default = !line.empty();
    if (!rule.has_default) return rule;
    line.remove_prefix(1);  // '='
    rule.fallback.name = rule.name;
    rule.fallback.type = rule.type;
    switch (rule.type) {
      case BP_ATTR_INT:
      case BP_ATTR_INTS:
        rule.fallback.data = list<int64_t>(line, number<int64_t>);
        break;
      case BP_ATTR_FLOAT:
      case BP_ATTR_FLOATS:
        rule.fallback.data = list<float>(line, number<float>);
        break;
      default:
        rule.fallback.data = list<std::string>(line, [](std::string_view text) { return std::string(text); });
    }
    return rule;
  }

  template <class T, class F>
  static std::vector<T> list(std::string_view line, F&& convert) {
    std::vector<T> values;
    do {
      values.push_back(convert(cut(line, ',')));
    } while (!line.empty());
    return values;
  }

  // Sets the types of a form's inputs and outputs. They are known only after the form's last line.
  void finish() {
    if (forms.empty()) return;
    for (auto* formals : {&forms.back().inputs, &forms.back().outputs}) {
      for (Formal& formal : *formals) {
        auto found =
            std::find_if(types_.begin(), types_.end(), [&](const TypeSet& s) { return s.parameter == formal.type; });
        TypeSet set;
        if (found != types_.end()) {
          set = *found;
        } else {
          add(set, formal.type);
        }
        formal.dtypes = set.dtypes;
        formal.kinds = set.kinds;
      }
    }
    types_.clear();
  }

  std::vector<TypeSet> types_;
};

struct Table {
  std::vector<Schema> forms;
  std::vector<std::pair<std::string_view, uint32_t>> domains;
  std::unordered_map<Key, Schema*, KeyHash> newest;

  Table() {
    Reader reader;
    reader.read(schema_text());
    forms = std::move(reader.forms);
    domains = std::move(reader.domains);
    newest.reserve(forms.size());
    for (Schema& form : forms) {
      Schema*& last = newest[{form.domain, form.name}];
      if (last) {
        form.older = last;
        last->newer = &form;
      }
      last = &form;
    }
  }
};

const Table& table() {
  static const Table kTable;
  return kTable;
}

}  // namespace

std::string_view attribute_type_name(uint32_t type) {
  return type < std::size(kAttributeTypes) && type != 0 ? kAttributeTypes[type] : "unknown";
}

const AttributeRule* Schema::attribute(std::string_view name) const {
  auto found = std::lower_bound(attributes.begin(), attributes.end(), name,
                                [](const AttributeRule& rule, std::string_view name) { return rule.name < name; });
  return found != attributes.end() && found->name == name ? &*found : nullptr;
}

const Schema* newest_schema(std::string_view domain, std::string_view name) {
  auto found = table().newest.find({domain, name});
  return found == table().newest.end() ? nullptr : found->second;
}

const Schema* find_schema(std::string_view domain, std::string_view name, uint32_t opset) {
  const Schema* form = newest_schema(domain, name);
  while (form && form->since_version > opset) form = form->older;
  return form;
}

uint32_t newest_opset(std::string_view domain) {
  for (const auto& [name, version] : table().domains) {
    if (name == domain) return version;
  }
  return 0;
}

std::span<const Schema> all_schemas() {
  return table().forms;
}

}  // namespace backplane::ops
