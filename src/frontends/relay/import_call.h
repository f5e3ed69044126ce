#pragma once

#include "base/error.h"
#include "frontends/relay/ast.h"
#include "ir/constant.h"
#include "ir/graph.h"
#include "tenon/builder.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::relay {

struct Frame;

/// What an expression means in the graph: a value, several, or a function and what it has seen.
struct Meaning {
  enum class Kind : std::uint8_t { Value, Tuple, Function };
  Kind kind = Kind::Value;
  Var value;
  std::vector<Meaning> fields;
  ExprId function;
  Frame* frame = nullptr;
  /// of tuples in tuples
  int depth = 0;

  Meaning() = default;
  Meaning(Var var) : value(var) {}  // NOLINT: a value is a meaning
  static Meaning tuple(std::vector<Meaning> parts);
  /// how many values and functions it has in it
  std::size_t size() const;
  /// The same tuples of other values, from `next` on.
  Meaning with_values(const std::vector<Var>& values, std::size_t& next) const;
};

/// What a constant without data is for, which decides what numbers stand in for it.
struct WeightRole {
  enum class Kind : std::uint8_t { Shift, Products, Scale, Variance };
  Kind kind = Kind::Shift;
  /// of Products: how many each result sums
  std::int64_t fan_in = 0;
};

using Integers = std::vector<std::int64_t>;

/// What a handler talks to: the arguments and attributes of one call of an operator, and the
/// builder that takes its nodes.
class CallImport {
 public:
  /// Compares a number that the text repeats with what it follows from.
  using Claim = std::function<void(std::string_view what, std::size_t position,
                                   const std::string& says, const std::string& should_be)>;
  using Materialise = std::function<Var(ExprId, const WeightRole&)>;

  CallImport(const Module& module, const Expr& call, std::vector<Meaning> arguments,
             Builder& builder, Materialise materialise, Claim claim);

  const std::string& op() const { return op_; }
  Builder& build() const { return builder_; }
  std::size_t argument_count() const { return arguments_.size(); }
  /// The argument's value; a constant that nobody has asked for yet becomes one for `role`.
  Var value(std::size_t position, const WeightRole& role = {}) const;
  /// of a tuple
  std::vector<Var> values(std::size_t position) const;
  /// The extents of an argument; refuses a constant whose type nothing says.
  Dims dims(std::size_t position) const;
  std::size_t rank(std::size_t position) const { return dims(position).size(); }
  const TensorType& type(Var value) const;
  /// The literal scalar that an argument is, if it is one.
  const AttributeValue* literal(std::size_t position) const;

  /// Attributes, or their defaults. Each throws an Error with the place if the kind is another.
  /// and is not None
  bool has(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  /// a single number is a list of one
  Integers integers(std::string_view name) const;
  double real(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const;
  /// none where it is ""
  std::optional<DType> dtype(std::string_view name) const;
  const AttributeValue& attribute(std::string_view name) const;
  void claim(std::string_view name, const AttributeValue& should_be) const;

  /// The value with its axes read as `layout`, which is the plain order where it equals `plain`.
  Var as_layout(Var value, const std::string& layout, std::string_view plain) const;
  Var call(std::string_view op, const std::vector<Var>& operands,
           const std::vector<Attr>& attrs = {}) const {
    return builder_.call(op, operands, attrs);
  }
  /// the value itself if it is that already
  Var cast(Var value, DType to) const;
  Error error(std::string summary) const;
  Error unsupported(std::string summary) const;

 private:
  const Module& module_;
  const Expr& call_;
  const std::string& op_;
  std::vector<Meaning> arguments_;
  Builder& builder_;
  Materialise materialise_;
  Claim claim_;
};

using Handler = std::function<Meaning(const CallImport&)>;
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

}  // namespace tenon::relay
