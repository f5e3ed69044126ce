#pragma once

#include "frontends/aitemplate/tables.h"
#include "ir/type.h"

#include <string>
#include <vector>

namespace tenon::aitemplate {

/// The dims of a dump as Tenon's: one symbol with a range for each that varies.
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

/// The symbol that a dim is, or "" for a number or a formula. Dumps of older versions have no
/// symbols; a dim's name is one there.
std::string symbol_of(const DimRow& row);

}  // namespace tenon::aitemplate
