#pragma once

#include "documents/chainer/shapes.h"
#include "documents/chainer/tables.h"
#include "tenon/builder.h"

#include <limits>
#include <span>

namespace tenon::documents::chainer {

/// A forward function with typed attributes. Throws an Error with the position for a missing or
/// out-of-range attribute.
class FunctionView {
 public:
  FunctionView(const Tables& tables, std::size_t forward, std::string_view source)
      : tables_(&tables),
        forward_(forward),
        source_(source),
        operands_(operands_of(tables, forward)) {}

  const Tables& tables() const { return *tables_; }
  const Function& function() const { return tables_->forward[forward_]; }
  std::size_t position() const { return forward_; }
  std::size_t input_count() const { return operands_.size(); }
  std::size_t input(std::size_t k) const { return operands_[k]; }
  const std::vector<std::size_t>& inputs() const { return operands_; }
  std::size_t output(std::size_t k = 0) const { return function().outputs[k]; }
  std::int64_t bytes(std::size_t variable) const { return tables_->variables[variable].bytes; }

  /// Returns whether the attribute is present and not null.
  bool has(std::string_view attribute) const;
  std::int64_t integer(std::string_view attribute, std::int64_t low, std::int64_t high,
                       std::optional<std::int64_t> otherwise = {}) const;
  double real(std::string_view attribute, std::optional<double> otherwise = {}) const;
  bool flag(std::string_view attribute, std::optional<bool> otherwise = {}) const;
  const std::string& text(std::string_view attribute) const;
  /// Accepts an array of integers or one integer.
  std::vector<std::int64_t> integers(std::string_view attribute) const;
  /// Returns an axis of `rank`, counted from the front.
  std::size_t axis(std::string_view attribute, std::size_t rank) const;
  Error error(std::string_view attribute, std::string summary) const;
  /// Throws Error for an attribute that objects of the class lack.
  void refuse_unknown_attributes() const;

 private:
  const frontends::JsonValue* find(std::string_view attribute) const;
  const frontends::JsonValue& get(std::string_view attribute) const;

  const Tables* tables_;
  std::size_t forward_;
  std::string_view source_;
  std::vector<std::size_t> operands_;
};

/// Positions of the inputs and outputs that a function retains for its backward.
struct Retained {
  std::vector<std::int64_t> inputs, outputs;
  bool operator==(const Retained&) const = default;
};

inline std::vector<Retained> retains_nothing(const FunctionView&) { return {{}}; }
/// Retains the first two inputs.
inline std::vector<Retained> retains_inputs(const FunctionView&) { return {{{0, 1}, {}}}; }

/// Import rule of a Chainer function class.
struct FunctionRule {
  /// Operand of Tenon's operator that is the numeric attribute `value`.
  enum class Number : std::uint8_t { None, First, Second };

  std::string_view name;
  std::size_t least_inputs = 1, most_inputs = 1;
  Relation (*relate)(const FunctionView&) = nullptr;
  /// Builds the function's nodes and returns its outputs.
  std::vector<Var> (*build)(const FunctionView&, Builder&, const std::vector<Var>&) = nullptr;
  /// Retained variables, several alternatives if they depend on the device. The first is the GPU's.
  std::vector<Retained> (*retained)(const FunctionView&) = nullptr;
  /// Input with class indices.
  std::size_t integer_input = kNone;
  /// Bytes that the function object stores outside of the file's variables (masks, statistics).
  std::int64_t (*hidden_bytes)(const FunctionView&) = nullptr;
  /// Multiply-adds, from the shapes by variable.
  double (*multiply_adds)(const FunctionView&, const std::vector<Shape>&) = nullptr;
  /// Tenon's operator, if the function is one operator without attributes.
  std::string_view op = "";
  Number number = Number::None;
};

/// Returns null for a function without a rule.
const FunctionRule* find_rule(std::string_view name);
/// Returns the function that equals an operator, with or without a numeric operand; null if there
/// is none.
const FunctionRule* find_rule_of(std::string_view op, FunctionRule::Number number);
std::vector<std::string> known_function_names();

/// Rules of each family; `find_rule` searches all of them.
std::span<const FunctionRule> window_functions();
std::span<const FunctionRule> elementwise_functions();
std::span<const FunctionRule> shape_functions();
std::span<const FunctionRule> reduction_functions();

/// Output extent of an axis with a sliding window, by Chainer's rule for convolution and pooling.
struct WindowAxis {
  std::int64_t stride = 1, pad = 0, dilation = 1;
  /// The last window may extend past the end.
  bool covers_all = false;
  std::int64_t reach(std::int64_t kernel) const { return (kernel - 1) * dilation + 1; }
  /// Zero or less if no window fits.
  std::int64_t count(std::int64_t extent, std::int64_t kernel) const;
};

/// One axis of a subscript in Python syntax: `slice(4, -4, None)`, `2` or `None`.
struct Subscript {
  enum class Kind : std::uint8_t { Slice, Index, NewAxis, Ellipsis } kind = Kind::Slice;
  /// For Kind::Index, start is the index.
  std::optional<std::int64_t> start, stop, step;
  bool is_whole() const { return kind == Kind::Slice && !start && !stop && !step; }
  /// Returns the number of elements of a slice of `extent`.
  std::int64_t count(std::int64_t extent) const;
};
/// Parses the attribute `slices` of GetItem: a Python text or a list of integers.
std::vector<Subscript> subscripts_of(const FunctionView& view);
std::string print_subscripts(const std::vector<Subscript>& subscripts);

constexpr std::int64_t kMaxWindow = 1 << 16;
constexpr std::int64_t kMaxExtentAttribute = std::int64_t{1} << 40;

}  // namespace tenon::documents::chainer
