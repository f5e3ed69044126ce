#pragma once

#include "frontends/chainer/shapes.h"
#include "frontends/chainer/tables.h"
#include "tenon/builder.h"

#include <limits>
#include <span>

namespace tenon::chainer {

/// One forward function with its attributes as typed values. Asking for an attribute that is
/// missing or out of range throws an Error with its place.
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

  /// and it is not null
  bool has(std::string_view attribute) const;
  std::int64_t integer(std::string_view attribute, std::int64_t low, std::int64_t high,
                       std::optional<std::int64_t> otherwise = {}) const;
  double real(std::string_view attribute, std::optional<double> otherwise = {}) const;
  bool flag(std::string_view attribute, std::optional<bool> otherwise = {}) const;
  const std::string& text(std::string_view attribute) const;
  /// An array of integers, or one integer.
  std::vector<std::int64_t> integers(std::string_view attribute) const;
  /// An axis of `rank`, counted from the front.
  std::size_t axis(std::string_view attribute, std::size_t rank) const;
  Error error(std::string_view attribute, std::string summary) const;

 private:
  const Json* find(std::string_view attribute) const;
  const Json& get(std::string_view attribute) const;

  const Tables* tables_;
  std::size_t forward_;
  std::string_view source_;
  std::vector<std::size_t> operands_;
};

/// Which inputs and outputs a function keeps for its backward, by position.
struct Retained {
  std::vector<std::int64_t> inputs, outputs;
  bool operator==(const Retained&) const = default;
};

inline std::vector<Retained> retains_nothing(const FunctionView&) { return {{}}; }
/// The first two.
inline std::vector<Retained> retains_inputs(const FunctionView&) { return {{{0, 1}, {}}}; }

/// What is known of one of Chainer's function classes.
struct FunctionRule {
  /// Which operand of Tenon's operator is a number, the attribute `value`.
  enum class Number : std::uint8_t { None, First, Second };

  std::string_view name;
  std::size_t least_inputs = 1, most_inputs = 1;
  Relation (*relate)(const FunctionView&) = nullptr;
  /// The function as nodes; gives its outputs.
  std::vector<Var> (*build)(const FunctionView&, Builder&, const std::vector<Var>&) = nullptr;
  /// What Chainer keeps; several where that depends on the device. The first is what a GPU does.
  std::vector<Retained> (*retained)(const FunctionView&) = nullptr;
  /// the input that holds class numbers
  std::size_t integer_input = kNone;
  /// Bytes that the function object keeps beside the variables of the file (masks, statistics).
  std::int64_t (*hidden_bytes)(const FunctionView&) = nullptr;
  /// Products that it sums up, from the shapes by variable.
  double (*multiply_adds)(const FunctionView&, const std::vector<Shape>&) = nullptr;
  /// Tenon's operator, where it is that one without attributes
  std::string_view op = "";
  Number number = Number::None;
};

/// Null for a name that nobody wrote a rule for.
const FunctionRule* find_rule(std::string_view name);
/// The function that is an operator, with a number for an operand or without; null where none is.
const FunctionRule* find_rule_of(std::string_view op, FunctionRule::Number number);
std::vector<std::string> known_function_names();

/// The rules of each family; `find_rule` looks through all.
std::span<const FunctionRule> window_functions();
std::span<const FunctionRule> elementwise_functions();
std::span<const FunctionRule> shape_functions();
std::span<const FunctionRule> reduction_functions();

/// Where an axis of windows of one length ends up: Chainer's rule for convolution and pooling.
struct WindowAxis {
  std::int64_t stride = 1, pad = 0, dilation = 1;
  /// a last window may hang over the end
  bool covers_all = false;
  std::int64_t reach(std::int64_t kernel) const { return (kernel - 1) * dilation + 1; }
  /// Zero or less where no window fits.
  std::int64_t count(std::int64_t extent, std::int64_t kernel) const;
};

/// One axis of a subscript, as Python writes it: `slice(4, -4, None)`, `2` or `None`.
struct Subscript {
  enum class Kind : std::uint8_t { Slice, Index, NewAxis, Ellipsis } kind = Kind::Slice;
  /// start is the index of Kind::Index
  std::optional<std::int64_t> start, stop, step;
  bool is_whole() const { return kind == Kind::Slice && !start && !stop && !step; }
  /// Elements that a slice leaves of `extent`.
  std::int64_t count(std::int64_t extent) const;
};
/// The attribute `slices` of GetItem: a Python text or a list of integers.
std::vector<Subscript> subscripts_of(const FunctionView& view);
std::string print_subscripts(const std::vector<Subscript>& subscripts);

constexpr std::int64_t kMaxWindow = 1 << 16;
constexpr std::int64_t kMaxExtentAttribute = std::int64_t{1} << 40;

}  // namespace tenon::chainer
