#pragma once

#include "host/kernels/kernel.h"
#include "ir/graph.h"
#include "program/program.h"

#include <vector>

namespace tenon::inline host {

/// A resolved operator of a program.
struct ReadyOperator {
  const OpDef* op = nullptr;
  /// Null: the reference executes it.
  HostKernel kernel = nullptr;
  /// May contain symbols of the program.
  Attributes attributes;
  bool has_symbols = false;
  /// By operand.
  std::vector<Layout> layouts;

  /// Returns the attributes with symbols replaced by their values in a run.
  Attributes bound_attributes(const DimBindings& symbols) const;
};
/// Throws Error if the operator is unknown, or does not accept the operands or attributes.
ReadyOperator ready_operator(const HostOperator& from, const Program& program);

}  // namespace tenon::inline host
