#include "documents/aitemplate/dim_table.h"

#include "base/error.h"
#include "documents/aitemplate/vocabulary.h"

#include <algorithm>

namespace tenon::documents::aitemplate {
namespace {

bool is_identifier(std::string_view text) { return !text.empty() && c_safe(text) == text; }

}  // namespace

std::string symbol_of(const DimRow& row) {
  if (row.is_static()) return "";
  if (const auto* formula = std::get_if<std::string>(&row.symbolic_value)) {
    return is_identifier(*formula) ? *formula : "";
  }
  return row.name.value_or("");
}

DimTable::DimTable(const Dump& dump) {
  const auto note = [&](const std::vector<DimRow>& rows) {
    for (const DimRow& row : rows) {
      const std::string symbol = symbol_of(row);
      if (symbol.empty() || row.least() > row.greatest() || row.greatest() > kMaxExtent) continue;
      if (ranges_.try_emplace(symbol, Range{row.least(), row.greatest()}).second) {
        symbols_.emplace(symbol, Dim::symbol(symbol, {row.least(), row.greatest()}));
      }
    }
  };
  for (const TensorRow& tensor : dump.tensors) note(tensor.shape);
  for (const OperatorRow& row : dump.operators) {
    for (const auto* accessors : {&row.input_accessors, &row.output_accessors}) {
      if (!*accessors) continue;
      for (const AccessorRow& accessor : **accessors) note(accessor.original_shapes);
    }
  }
}

Dim DimTable::dim(const DimRow& row) const {
  if (row.is_static()) {
    if (row.values[0] > kMaxExtent) throw Error("an extent is too large").got(row.values[0]);
    return row.values[0];
  }
  const std::string symbol = symbol_of(row);
  if (const auto known = symbols_.find(symbol); known != symbols_.end()) return known->second;
  if (const auto* formula = std::get_if<std::string>(&row.symbolic_value);
      formula && symbol.empty()) {
    return parse_formula(*formula, ranges_);
  }
  throw Error("a dim that varies has no symbol and no name, or no range")
      .got(row.name.value_or("no name"), " from ", row.least(), " to ", row.greatest());
}

Dims DimTable::dims(const std::vector<DimRow>& rows) const {
  Dims all;
  for (const DimRow& row : rows) all.push_back(dim(row));
  return all;
}

}  // namespace tenon::documents::aitemplate
