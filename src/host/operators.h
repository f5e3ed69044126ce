#pragma once

#include "host/kernels/kernel.h"
#include "ir/graph.h"
#include "program/program.h"

#include <vector>

namespace tenon {

/// An operator of a program, looked up.
struct ReadyOperator {
  const OpDef* op = nullptr;
  /// null: the reference
  HostKernel kernel = nullptr;
  /// with the program's symbols in them
  Attributes attributes;
  bool has_symbols = false;
  /// by operand
  std::vector<Layout> layouts;

  /// With the numbers that symbols have in a run in their place.
  Attributes bound_attributes(const DimBindings& symbols) const;
};
/// Throws Error where there is no such operator, or it does not take such operands or attributes.
ReadyOperator ready_operator(const HostOperator& from, const Program& program);

}  // namespace tenon
