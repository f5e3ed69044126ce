#include "ir/op_def.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>

namespace tenon::inline ir {

OpDef::OpDef() = default;
OpDef::OpDef(const OpDef&) = default;
OpDef::OpDef(OpDef&&) noexcept = default;
OpDef& OpDef::operator=(const OpDef&) = default;
OpDef& OpDef::operator=(OpDef&&) noexcept = default;
OpDef::~OpDef() = default;

namespace {

template <class Def>
std::optional<std::size_t> index_of(const std::vector<Def>& defs, std::string_view name) {
  for (std::size_t i = 0; i < defs.size(); ++i) {
    if (defs[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace

const AttrDef* OpDef::find_attr(std::string_view attr) const {
  const auto index = index_of(attrs, attr);
  return index ? &attrs[*index] : nullptr;
}

std::optional<std::size_t> OpDef::operand_index(std::string_view operand) const {
  return index_of(operands, operand);
}

std::optional<std::size_t> OpDef::result_index(std::string_view result) const {
  return index_of(results, result);
}

OpTable::OpTable(std::vector<const OpDef*> ops) : ops_(std::move(ops)) {
  std::sort(ops_.begin(), ops_.end(),
            [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  for (std::size_t i = 1; i < ops_.size(); ++i) {
    TENON_ASSERT(ops_[i - 1]->name != ops_[i]->name,
                 concat("op '", ops_[i]->name, "' is in the table once"));
  }
}

const OpDef* OpTable::find(std::string_view name) const {
  const auto place =
      std::lower_bound(ops_.begin(), ops_.end(), name,
                       [](const OpDef* op, std::string_view key) { return op->name < key; });
  return place != ops_.end() && (*place)->name == name ? *place : nullptr;
}

const OpDef& OpTable::get(std::string_view name) const {
  if (const OpDef* op = find(name)) return *op;
  std::vector<std::string> known;
  for (const OpDef* op : ops_) known.push_back(op->name);
  throw Error(concat("there is no op '", name, "'")).hint(suggest_name(name, known));
}

}  // namespace tenon::inline ir
