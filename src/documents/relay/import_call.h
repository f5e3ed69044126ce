#pragma once

#include "base/error.h"
#include "documents/relay/ast.h"
#include "ir/constant.h"
#include "ir/graph.h"
#include "tenon/builder.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::relay {

struct Frame;

/// Value of an expression in the graph: one value, several, or a function with its captures.
struct ImportedValue {
  enum class Kind : std::uint8_t { Value, Tuple, Function };
  Kind kind = Kind::Value;
  Var value;
  std::vector<ImportedValue> fields;
  ExprId function;
  Frame* frame = nullptr;
  /// nesting depth of tuples
  int depth = 0;

  ImportedValue() = default;
  ImportedValue(Var var) : value(var) {}  // NOLINT: a value is a meaning
  static ImportedValue tuple(std::vector<ImportedValue> parts);
  /// number of values and functions inside
  std::size_t size() const;
  /// Returns the same tuple structure with other values, starting at `next`.
  ImportedValue with_values(const std::vector<Var>& values, std::size_t& next) const;
};

/// Use of a constant without data, which determines its seeded numbers.
struct WeightRole {
  enum class Kind : std::uint8_t { Shift, Products, Scale, Variance };
  Kind kind = Kind::Shift;
  /// of Products: number of products per result
  std::int64_t fan_in = 0;
};

using Integers = std::vector<std::int64_t>;

/// Arguments and attributes of one operator call for its handler, with the builder for its nodes.
class CallImport {
 public:
  /// Compares a redundant number of the text with the inferred one.
  using Claim = std::function<void(std::string_view what, std::size_t position,
                                   const std::string& says, const std::string& should_be)>;
  using Materialise = std::function<Var(ExprId, const WeightRole&)>;

  CallImport(const RelayModule& module, const RelayExpr& call, std::vector<ImportedValue> arguments,
             Builder& builder, Materialise materialise, Claim claim);

  const std::string& op() const { return op_; }
  Builder& build() const { return builder_; }
  std::size_t argument_count() const { return arguments_.size(); }
  /// Returns the argument's value; a constant without data is seeded for `role` at its first use.
  Var value(std::size_t position, const WeightRole& role = {}) const;
  /// of a tuple
  std::vector<Var> values(std::size_t position) const;
  /// Returns the extents of an argument; refuses a constant without a type.
  Dims dims(std::size_t position) const;
  std::size_t rank(std::size_t position) const { return dims(position).size(); }
  const TensorType& type(Var value) const;
  /// Returns an argument that is a literal scalar, or null.
  const AttributeValue* literal(std::size_t position) const;

  /// Attributes, or their defaults. Each throws an Error with the position for another kind.
  /// Returns whether it is present and not None.
  bool has(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  /// a single number is a list of one
  Integers integers(std::string_view name) const;
  double real(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const;
  /// nullopt for ""
  std::optional<DType> dtype(std::string_view name) const;
  const AttributeValue& attribute(std::string_view name) const;
  void claim(std::string_view name, const AttributeValue& should_be) const;

  /// Returns the value with its axes interpreted as `layout`; `plain` is the default order, which
  /// needs no layout.
  Var as_layout(Var value, const std::string& layout, std::string_view plain) const;
  Var call(std::string_view op, const std::vector<Var>& operands,
           const std::vector<Attr>& attrs = {}) const {
    return builder_.call(op, operands, attrs);
  }
  /// returns the value unchanged if it has that type
  Var cast(Var value, DType to) const;
  Error error(std::string summary) const;
  Error unsupported(std::string summary) const;

 private:
  const RelayModule& module_;
  const RelayExpr& call_;
  const std::string& op_;
  std::vector<ImportedValue> arguments_;
  Builder& builder_;
  Materialise materialise_;
  Claim claim_;
};

using Handler = std::function<ImportedValue(const CallImport&)>;
using Handlers = std::map<std::string, Handler, std::less<>>;

void add_contraction_handlers(Handlers& handlers);
void add_elementwise_handlers(Handlers& handlers);
void add_loss_handlers(Handlers& handlers);
void add_normalization_handlers(Handlers& handlers);
void add_pooling_handlers(Handlers& handlers);
void add_quantized_handlers(Handlers& handlers);
void add_reduction_handlers(Handlers& handlers);
void add_shape_handlers(Handlers& handlers);
void add_selection_handlers(Handlers& handlers);

AttributeValue to_attribute(std::int64_t number);
AttributeValue to_attribute(const Integers& numbers);
AttributeValue to_attribute(double number);
AttributeValue to_attribute(bool flag);
AttributeValue to_attribute(std::string text);
inline AttributeValue to_attribute(const char* text) { return to_attribute(std::string(text)); }

}  // namespace tenon::documents::relay
