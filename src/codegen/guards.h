#pragma once

#include "ir/dim.h"
#include "program/program.h"

#include <map>
#include <string>
#include <vector>

namespace tenon::codegen {

/// Conditions of a step on symbols: at most one range per symbol.
using Guards = std::vector<Program::Guard>;

/// A partition of guards by values of symbols: those that hold exactly for the values, and disjoint
/// ones for all other values.
struct DividedGuards {
  std::vector<Guards> inside, outside;
};
/// `values` are indexed by the program's symbols.
DividedGuards divide(const std::vector<Guards>& guards,
                     const std::map<std::size_t, std::int64_t>& values,
                     const std::vector<Program::Symbol>& symbols);

}  // namespace tenon::codegen
