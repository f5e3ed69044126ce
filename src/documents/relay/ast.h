#pragma once

#include "base/ids.h"
#include "frontends/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::documents::relay {

using ExprId = Id<struct ExprTag>;
/// A body in braces (or a bracketed `let`): its lines are visible until its end.
using BlockId = Id<struct BlockTag>;

/// A type in the text. A tensor without dims is a scalar and prints as its bare dtype.
struct RelayType {
  enum class Kind : std::uint8_t { Tensor, Tuple, Function, Incomplete, Named };
  Kind kind = Kind::Tensor;
  /// of a tensor; kAnyExtent for `?`
  std::vector<std::int64_t> dims;
  /// of a tensor: "float32"
  std::string dtype;
  /// of a tuple; of a function: arguments, then the result
  std::vector<RelayType> parts;
  /// of a type that is only named, as a type parameter
  std::string name;

  static constexpr std::int64_t kAnyExtent = -1;
  static RelayType tuple(std::vector<RelayType> parts);
  /// a single type, or a tuple
  static RelayType of_results(std::vector<RelayType> parts);
  bool operator==(const RelayType&) const = default;
};
std::string to_string(const RelayType& type);
RelayType tensor_type(std::vector<std::int64_t> dims, std::string dtype);

struct AttributeValue;
using AttributeList = std::vector<AttributeValue>;
/// A number with a suffix or a fraction; `dtype` is the suffix.
struct RealLiteral {
  double value = 0;
  std::string dtype = "float32";
  bool operator==(const RealLiteral&) const = default;
};
struct IntegerLiteral {
  std::int64_t value = 0;
  std::string dtype = "int32";
  bool operator==(const IntegerLiteral&) const = default;
};
/// `meta[relay.Constant][3]`
struct MetaReference {
  std::string key;
  std::int64_t index = 0;
  bool operator==(const MetaReference&) const = default;
};
struct NoneLiteral {
  bool operator==(const NoneLiteral&) const = default;
};
/// `VirtualDevice(device_type=1, …)`: a device annotation, kept verbatim and ignored by the graph.
struct OpaqueText {
  std::string text;
  bool operator==(const OpaqueText&) const = default;
};

/// The value of an attribute, and of a literal scalar.
struct AttributeValue {
  std::variant<NoneLiteral, bool, IntegerLiteral, RealLiteral, std::string, AttributeList,
               MetaReference, OpaqueText>
      value;
  bool operator==(const AttributeValue& other) const { return value == other.value; }
};
std::string to_string(const AttributeValue& value);
/// Numbers in an attribute print without their integer type.
std::string attribute_text(const AttributeValue& value);

struct RelayAttribute {
  std::string name;
  AttributeValue value;
  std::size_t position = 0;
};

/// Source of an expression in the framework's model: its name, with line and column in the later
/// comment style.
struct SourceSpan {
  std::string name;
  std::int64_t line = 0, column = 0;
  bool is_empty() const { return name.empty(); }
};

/// A node of the program. Nodes have identity: equal nodes are distinct.
struct RelayExpr {
  enum class Kind : std::uint8_t {
    /// name, annotation
    Variable,
    /// index into the metadata
    Constant,
    /// literal
    Scalar,
    /// name; only as a callee or an argument
    Operator,
    /// name
    Global,
    /// parts: callee, arguments; attributes
    Call,
    /// parts
    Tuple,
    /// parts: the tuple; index
    Projection,
    /// parts: body; parameters; attributes; annotation of the result
    Function,
    /// parts: condition, then, else
    If,
    /// parts: variable, value, body
    Let,
  };
  Kind kind = Kind::Variable;
  std::string name;
  std::vector<ExprId> parts;
  std::vector<ExprId> parameters;
  std::vector<std::string> type_parameters;
  std::vector<RelayAttribute> attributes;
  std::int64_t index = 0;
  AttributeValue literal;
  std::optional<RelayType> annotation;
  /// type stated by the comment
  std::optional<RelayType> type;
  SourceSpan span;
  /// a variable that `free_var` introduced
  bool is_free = false;
  /// of a variable: the text "{virtual_device=…}" after its name
  std::string device;
  /// block of its line
  BlockId block;
  /// Blocks of its bodies: one for a function, two for an if, one for a bracketed let.
  std::vector<BlockId> blocks;
  /// Captured nodes of enclosing blocks, for nodes that open blocks.
  std::vector<ExprId> captures;
  /// in the source text
  std::size_t position = 0;
  /// of its comment
  std::size_t type_position = 0;

  static RelayExpr of(Kind kind, BlockId block, std::string_view name = "",
                      std::size_t position = 0);
};

/// Comment style: that of the document (types of constants and calls, bare names), or that of later
/// versions (types and spans of everything).
enum class CommentStyle : std::uint8_t { Document, Later };

struct GlobalFunction {
  /// empty for a text that is one `fn`
  std::string name;
  /// address that debug builds print after the name; may be empty
  std::string id_comment;
  ExprId function;
};

/// A line `%n = …;` of the text.
struct LetBinding {
  std::int64_t number = 0;
  ExprId expr;
  std::size_t position = 0;
};

/// A whole text.
struct RelayModule {
  /// of the header; empty without one
  std::string version;
  std::vector<RelayExpr> exprs;
  std::size_t block_count = 0;
  std::vector<GlobalFunction> functions;
  std::optional<frontends::JsonValue> metadata;
  std::size_t metadata_position = 0;
  CommentStyle style = CommentStyle::Document;

  /// with the numbers of the text
  std::vector<LetBinding> bindings;
  /// positions of type comments
  std::vector<std::size_t> type_comments;

  const RelayExpr& at(ExprId id) const { return exprs[id.index()]; }
  RelayExpr& at(ExprId id) { return exprs[id.index()]; }
  ExprId add(RelayExpr expr) {
    exprs.push_back(std::move(expr));
    return ExprId(exprs.size() - 1);
  }
  BlockId add_block() { return BlockId(block_count++); }
  /// Returns the entry function of a program: `main`, or the only one. Null if it is ambiguous.
  const GlobalFunction* entry() const;
};

/// Returns whether a node gets its own line at its first use.
bool has_line(RelayExpr::Kind kind);

/// Returns an expression's operands in the same or an outer block; bodies belong to their owner.
std::vector<ExprId> children_of(const RelayExpr& expr);
/// Post-order walk over unfinished nodes below a node, left to right; recursion is bounded by the
/// nesting of the text.
template <class IsDone, class Visit>
void visit_upwards(const RelayModule& module, ExprId root, const IsDone& is_done,
                   const Visit& visit) {
  std::vector<std::pair<ExprId, bool>> stack{{root, false}};
  while (!stack.empty()) {
    auto& [id, is_open] = stack.back();
    if (is_done(id)) {
      stack.pop_back();
    } else if (is_open) {
      const ExprId whole = id;
      stack.pop_back();
      visit(whole);
    } else {
      is_open = true;
      const std::vector<ExprId> below = children_of(module.at(id));
      for (auto child = below.rbegin(); child != below.rend(); ++child)
        stack.emplace_back(*child, false);
    }
  }
}

}  // namespace tenon::documents::relay
