#pragma once

#include "ir/dim.h"
#include "program/program.h"

#include <map>
#include <string>
#include <vector>

namespace tenon::codegen {

/// What a step asks of the symbols, all of it: a range for each that is mentioned, once.
using Guards = std::vector<Program::Guard>;

/// Guards divided by values of symbols: those that hold for just these values and those that hold
/// for all others, between them the same as before and no two at once.
struct DividedGuards {
  std::vector<Guards> inside, outside;
};
/// `values` by symbol of the program.
DividedGuards divide(const std::vector<Guards>& guards,
                     const std::map<std::size_t, std::int64_t>& values,
                     const std::vector<Program::Symbol>& symbols);

}  // namespace tenon::codegen
