#pragma once

#include "documents/relay/ast.h"
#include "documents/relay/import_call.h"
#include "ir/graph.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::relay {

/// Creates expressions in one block of a module.
class ExprBuilder {
 public:
  ExprBuilder(RelayModule& module, BlockId block) : module_(&module), block_(block) {}

  struct Named {
    std::string name;
    AttributeValue value;

    Named(std::string attribute, AttributeValue given)
        : name(std::move(attribute)), value(std::move(given)) {}
    template <class T>
    requires requires(T given) { to_attribute(given); }
    Named(std::string attribute, T given)
        : name(std::move(attribute)), value(to_attribute(std::move(given))) {}
  };
  ExprId call(std::string_view op, const std::vector<ExprId>& arguments,
              const std::vector<Named>& attributes = {}) const;
  ExprId call(ExprId function, const std::vector<ExprId>& arguments) const;
  ExprId tuple(const std::vector<ExprId>& fields) const;
  ExprId field(ExprId tuple, std::size_t index) const;
  ExprId variable(const std::string& name, const RelayType& type) const;
  ExprId real(double value, DType dtype) const;
  ExprId integer(std::int64_t value, DType dtype = DType::I32) const;

  // Arithmetic for decompositions.
  ExprId add(ExprId a, ExprId b) const { return call("add", {a, b}); }
  ExprId subtract(ExprId a, ExprId b) const { return call("subtract", {a, b}); }
  ExprId multiply(ExprId a, ExprId b) const { return call("multiply", {a, b}); }
  ExprId divide(ExprId a, ExprId b) const { return call("divide", {a, b}); }

  RelayModule& module() const { return *module_; }
  BlockId block() const { return block_; }

 private:
  RelayModule* module_;
  BlockId block_;
};

/// Thrown by a rule that maps most nodes to one call but needs several for this one: they go into a
/// composite function.
struct NeedsComposite {};

/// One node of the graph for export rules, and the destination of its expressions.
class ExportNode {
 public:
  ExportNode(const Graph& graph, NodeId id, ExprBuilder builder, std::vector<ExprId> operands,
             bool is_grouped);

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  const ExprBuilder& build() const { return build_; }
  /// Requires a composite function, in which several calls are permitted. Throws NeedsComposite
  /// otherwise.
  void need_group() const;
  bool has(std::string_view operand) const;
  ExprId operand(std::string_view name) const;
  ValueId value(std::string_view operand) const;
  const std::vector<ExprId>& operands() const { return operands_; }
  const TensorType& type(std::string_view operand) const;
  const TensorType& type(std::size_t position) const;
  const TensorType& result_type(std::size_t position = 0) const;
  bool wants(std::size_t result) const;

  std::int64_t integer(std::string_view attr) const;
  Integers integers(std::string_view attr) const;
  double real(std::string_view attr) const;
  bool flag(std::string_view attr) const;
  std::string text(std::string_view attr) const;
  std::optional<DType> dtype(std::string_view attr) const;
  /// Refuses dynamic attributes as operands, which Relay's operators lack.
  void refuse_dynamic() const;
  /// Returns extents that are all numbers, or throws Unsupported.
  Integers numbers(const Dims& dims) const;

  Error unsupported(std::string why) const;

 private:
  const Graph& graph_;
  const Node& node_;
  ExprBuilder build_;
  std::vector<ExprId> operands_;
  bool is_grouped_ = false;
};

/// The results' expressions, one for each result of the node.
using ExportRule = std::function<std::vector<ExprId>(const ExportNode&)>;
struct ExportEntry {
  ExportRule rule;
  /// The rule emits several calls, grouped in a function marked with the op.
  bool is_composite = false;
};
using ExportRules = std::map<std::string, ExportEntry, std::less<>>;

void add_contraction_exports(ExportRules& rules);
void add_elementwise_exports(ExportRules& rules);
void add_normalization_exports(ExportRules& rules);
void add_pooling_exports(ExportRules& rules);
void add_selection_exports(ExportRules& rules);
void add_shape_exports(ExportRules& rules);

}  // namespace tenon::documents::relay
