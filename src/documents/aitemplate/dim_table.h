#pragma once

#include "documents/aitemplate/tables.h"
#include "ir/type.h"

#include <string>
#include <vector>

namespace tenon::documents::aitemplate {

/// Maps the dims of a dump to Tenon dims: one symbol with a range per dynamic dim.
class DimTable {
 public:
  explicit DimTable(const Dump& dump);

  Dim dim(const DimRow& row) const;
  Dims dims(const std::vector<DimRow>& rows) const;
  const SymbolRanges& ranges() const { return ranges_; }

 private:
  SymbolRanges ranges_;
  DimBindings symbols_;
};

/// Returns the symbol of a dim, or "" for a number or a formula. Dumps of older versions have no
/// symbols; the dim's name is used instead.
std::string symbol_of(const DimRow& row);

}  // namespace tenon::documents::aitemplate
