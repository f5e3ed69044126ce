#pragma once

#include "frontends/json.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::chainer {

/// A tensor of the training step. The file lacks its shape and element type.
struct Variable {
  std::int64_t id = 0;
  std::int64_t bytes = 0;
  /// "_" for a function's result, a path such as "/conv1/W" for a parameter, the decimal index of
  /// an input of the network.
  std::string name;

  bool is_intermediate() const { return name == "_"; }
  bool is_input() const;
  bool is_parameter() const { return !is_intermediate() && !is_input(); }
};

/// Returns the contents of a JSON value if it is a T; null otherwise.
template <class T>
const T* held_by(const frontends::JsonValue& json) {
  return std::get_if<T>(std::addressof(json.value));
}

/// Aspect of a variable that a function reads.
enum class Tag : std::uint8_t {
  /// "_": the value, in forward functions.
  Value,
  /// The upstream gradient.
  Gradient,
  /// The value of an input of the forward function.
  Input,
  /// The retained value of an output of the forward function.
  Output,
};

struct Input {
  /// Position in Tables::variables.
  std::size_t variable = 0;
  Tag tag = Tag::Value;
};

/// A primitive attribute of Chainer's function object; tuples with slices are Python texts.
struct ChainerAttribute {
  std::string name;
  frontends::JsonValue value;
  /// Column of the value, from 1; 0 if it was not read from a text.
  std::size_t column = 0;
};

/// One record: a forward function or its backward.
struct Function {
  std::vector<Input> inputs;
  /// Positions in Tables::variables.
  std::vector<std::size_t> outputs;
  std::string name;
  std::vector<ChainerAttribute> attributes;
  /// First line of the record, from 1.
  std::size_t line = 0;

  const ChainerAttribute* find(std::string_view attribute) const;
};

/// The whole file. Backward record k belongs to forward record k; the order has no other meaning.
struct Tables {
  std::vector<Variable> variables;
  std::vector<Function> forward, backward;
};

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
/// Returns the forward function that produces each variable; kNone for inputs and parameters.
std::vector<std::size_t> producers_of(const Tables& tables);
/// Returns the forward functions in topological order: by depth, then by file order. Shorter than
/// the list if there is a cycle.
std::vector<std::size_t> topological_order(const Tables& tables);
/// Returns the operands of the function's call. The forward record lists a variable once even if it
/// is read twice; the backward record, if it lists inputs, has all of them in call order.
std::vector<std::size_t> operands_of(const Tables& tables, std::size_t forward);

/// Throws Error with line and column for text that is not of the format: wrong counts, duplicate or
/// dangling ids, several producers, unknown tags, numbers out of range, cycles.
Tables parse_tables(std::string_view text, std::string_view source);
std::string print_tables(const Tables& tables);
/// Prints a function's attributes like Python's json.dumps.
std::string print_attributes(const std::vector<ChainerAttribute>& attributes);

/// Parses the attributes on one line, an object that starts at `position` in `text`.
std::vector<ChainerAttribute> parse_attributes(std::string_view text, std::string_view source,
                                               std::size_t position, std::size_t end);

/// Lines of the file, from 1, and positions in it for messages.
inline std::size_t line_of_variable(std::size_t variable) { return variable + 2; }
std::string place_of(std::size_t line, std::size_t column);
std::string place_of_bytes(const Tables& tables, std::size_t variable);
std::string place_of_input(const Function& function, std::size_t input);
std::string place_of_output(const Function& function, std::size_t output);
std::string place_of_name(const Function& function);
std::string place_of_attribute(const Function& function, std::string_view attribute);

}  // namespace tenon::documents::chainer
