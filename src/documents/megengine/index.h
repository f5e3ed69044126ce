#pragma once

#include "base/ready_order.h"
#include "documents/megengine/tables.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::documents::megengine {

/// Cross-references of a profile by positions in its tables. Refers to the profile it was made
/// from.
struct Index {
  /// by operator: positions of vars
  std::vector<std::vector<std::size_t>> inputs;
  std::vector<std::vector<std::size_t>> outputs;
  /// by operator: its place in comp_seq
  std::vector<std::optional<std::size_t>> step;
  /// comp_seq as positions of operators
  std::vector<std::size_t> sequence;
  /// by operator; may be null
  std::vector<const OprFootprint*> footprint;
  std::vector<const Measured*> host, device;
  /// by var: the operator
  std::vector<std::size_t> producer;
  /// by var: operators, once per use
  std::vector<std::vector<std::size_t>> readers;
  /// parallel to `readers`: the input position
  std::vector<std::vector<std::size_t>> read_as;
  /// by var: the chunk its plan is in
  std::vector<std::optional<std::size_t>> chunk;
  /// all operators in topological order
  std::vector<std::size_t> order;

  std::unordered_map<ItemId, std::size_t> operators, vars;
  std::unordered_map<std::string, std::size_t> chunks;

  bool is_executed(std::size_t opr) const { return step[opr].has_value(); }
};

/// Throws Error with the JSON path for dangling references, duplicate owners and cycles.
Index index_of(const MegEngineProfile& profile, std::string_view source);

/// Returns the operators as tasks for `ready_order`. Operators that are not executed take no step,
/// but dependencies through them count. An in-place update of a var waits for all its readers.
std::vector<ReadyTask> tasks_of(const MegEngineProfile& profile, const Index& index);

/// "$.graph_exec.operator.12"
std::string operator_path(const Operator& opr);
/// "$.graph_exec.var.13"
std::string var_path(const VarNode& var);
/// "$.profiler.opr_footprint.12"
std::string footprint_path(const Operator& opr);

bool has_flag(const VarNode& var, std::string_view flag);
/// Returns whether the var is memory that is private to one operator.
inline bool is_workspace(const VarNode& var) { return has_flag(var, "VOLATILE_CONTENT"); }

}  // namespace tenon::documents::megengine
