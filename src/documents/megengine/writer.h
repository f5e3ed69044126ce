#pragma once

#include "documents/megengine/tables.h"
#include "documents/megengine/vocabulary.h"
#include "documents/native_node.h"
#include "ir/graph.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::documents::megengine {

/// Writes a graph without symbols as a profile.
class ProfileWriter {
 public:
  /// `is_run`: writes the profile of a run. Constants are not executed, outputs are copied to the
  /// caller, and operators that MegEngine does not count keep Tenon's name. `symbolic`: the graph
  /// before symbols were replaced; records of native nodes are taken from it.
  explicit ProfileWriter(const Graph& graph, bool is_run = false, const NativeNodes& own = {},
                         const Graph* symbolic = nullptr)
      : graph_(graph), is_run_(is_run), native_(own), symbolic_(symbolic) {}
  MegEngineProfile run();
  /// Returns the var of a value; for a constant, that of its first reader.
  std::optional<ItemId> find_var(ValueId value) const;

 private:
  // One operator to write.
  struct Plan {
    std::string type;
    /// start of the name if it differs from the type's default
    std::string start;
    std::vector<ItemId> inputs;
    frontends::JsonValue::Object param;
    /// in place of `param`
    std::optional<frontends::JsonValue::Array> param_list;
    /// results that only MegEngine has, before the node's
    std::vector<std::string> before;
    bool has_workspace = false;
    /// the result aliases the first input
    bool is_view = false;
    /// for types without a formula of MegEngine
    std::optional<std::int64_t> computation;
  };
  struct WrittenValue {
    /// empty if unknown
    Extents shape;
    std::optional<DType> dtype;
    /// Tenon's layout, or empty
    std::string format;
  };

  // Translates a node; nullopt for a node without an equivalent in MegEngine.
  std::optional<Plan> plan_of(NodeId node);
  std::optional<Plan> elemwise_plan(const Node& node);
  std::optional<Plan> convolution_plan(const Node& node);
  std::optional<Plan> pooling_plan(const Node& node);
  std::optional<Plan> matmul_plan(const Node& node);
  std::optional<Plan> reduce_plan(const Node& node);
  std::optional<Plan> batch_norm_plan(const Node& node);
  std::optional<Plan> reshape_plan(const Node& node);
  std::optional<Plan> axes_plan(const Node& node);
  std::optional<Plan> transpose_plan(const Node& node);
  std::optional<Plan> slice_plan(const Node& node);
  std::optional<Plan> other_plan(const Node& node);
  NativeNode record_of(NodeId id);
  Plan tenon_plan(const NativeNode& own, NodeId id);
  bool is_counted(const Plan& plan, const Node& node) const;

  /// Returns the extents of a value if all are known; a scalar has one axis here.
  std::optional<Extents> shape_of(ValueId value) const;
  std::size_t rank_of(ValueId value) const;
  WrittenValue made_as(ValueId value) const;
  bool is_constant(ValueId value) const { return value && graph_.constant_of(value) != nullptr; }
  bool has_only_default(const Node& node, std::initializer_list<std::string_view> allowed) const;

  ItemId var_of(ValueId value);
  /// Returns a constant in the shape that its reader expects.
  ItemId constant_as(ValueId value, const Extents& shape);
  /// Adds numbers for the host, which are not executed.
  ItemId host_constant(const Extents& values);

  void add_input(ValueId value);
  void add_node(NodeId id);
  void add_output(ValueId value, std::size_t position);
  std::size_t add_operator(const Plan& plan, const std::string& own_name, bool is_executed);
  VarNode& add_var(std::size_t opr, const std::string& suffix);
  VarNode& add_constant_var(std::size_t opr, const WrittenValue& made,
                            std::optional<std::vector<double>> elements);
  void set_made(VarNode& var, const WrittenValue& made);
  void place(VarNode& var, const WrittenValue& made, const VarNode* shows);
  void tag_results(std::size_t opr, const Plan& plan);
  void add_footprint(std::size_t opr, const Plan& plan);
  InferTag tag(std::vector<std::pair<std::string, ItemId>> deps, bool has_rule,
               std::string_view without_deps);
  void set_order();
  std::string own_name_of(const Node& node) const;

  std::uint32_t order(std::initializer_list<const char*> names);
  VarNode& var(ItemId id) { return profile_.graph_exec.vars[var_position_.at(id)]; }

  const Graph& graph_;
  bool is_run_ = false;
  const NativeNodes native_;
  const Graph* symbolic_ = nullptr;
  NodeId next_symbolic_;
  MegEngineProfile profile_;
  ItemId next_ = 0;
  std::unordered_map<ItemId, std::size_t> var_position_;
  std::unordered_map<ItemId, WrittenValue> made_;
  std::unordered_map<ValueId, ItemId> var_of_;
  std::map<std::pair<std::uint32_t, Extents>, ItemId> constants_;
};

}  // namespace tenon::documents::megengine
