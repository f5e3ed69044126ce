#pragma once

#include "frontends/json.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::chainer {

/// A tensor of the training step. The file says nothing of its shape or element type.
struct Variable {
  std::int64_t id = 0;
  std::int64_t bytes = 0;
  /// "_" for what a function makes, a path such as "/conv1/W" for a parameter, the decimal index of
  /// an input of the network.
  std::string name;

  bool is_intermediate() const { return name == "_"; }
  bool is_input() const;
  bool is_parameter() const { return !is_intermediate() && !is_input(); }
};

/// What a JSON value holds, if that is a T; null otherwise.
template <class T>
const T* held_by(const Json& json) {
  return std::get_if<T>(std::addressof(json.value));
}

/// What a function reads of a variable.
enum class Tag : std::uint8_t {
  /// "_": forward functions read values
  Value,
  /// the gradient that flows in
  Gradient,
  /// the value of an input of the forward function
  Input,
  /// the value of an output of the forward function, which was kept
  Output,
};

struct Input {
  /// its position in Tables::variables
  std::size_t variable = 0;
  Tag tag = Tag::Value;
};

/// One primitive attribute of Chainer's function object; tuples with slices are Python texts.
struct Attribute {
  std::string name;
  Json value;
  /// of the value, from 1; 0 where nobody read it from a text
  std::size_t column = 0;
};

/// One record: a forward function or the backward of one.
struct Function {
  std::vector<Input> inputs;
  /// positions in Tables::variables
  std::vector<std::size_t> outputs;
  std::string name;
  std::vector<Attribute> attributes;
  /// of the record's first line, from 1
  std::size_t line = 0;

  const Attribute* find(std::string_view attribute) const;
};

/// The whole file. Backward k belongs to forward k; the order says nothing else.
struct Tables {
  std::vector<Variable> variables;
  std::vector<Function> forward, backward;
};

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
/// The forward function that makes each variable; kNone for inputs and parameters.
std::vector<std::size_t> producers_of(const Tables& tables);
/// Forward functions in an order in which everything is made before it is read: by depth, then as
/// the file has them. Shorter than the list if there is a cycle.
std::vector<std::size_t> topological_order(const Tables& tables);
/// The values the function was called with. A variable that it reads twice stands once in the
/// forward record; the backward record, where it lists inputs at all, has them as they were given.
std::vector<std::size_t> operands_of(const Tables& tables, std::size_t forward);

/// Throws Error with line and column where the text is not of the format: wrong counts, ids that
/// come twice or name nothing, variables made twice, unknown tags, numbers out of range, cycles.
Tables parse_tables(std::string_view text, std::string_view source);
std::string print_tables(const Tables& tables);
/// A function's attributes as Python's json.dumps writes them.
std::string print_attributes(const std::vector<Attribute>& attributes);

/// The attributes on one line, an object; `position` is where it starts in `text`, for messages.
std::vector<Attribute> parse_attributes(std::string_view text, std::string_view source,
                                        std::size_t position, std::size_t end);

/// Lines of the file, from 1, and places in it for messages.
inline std::size_t line_of_variable(std::size_t variable) { return variable + 2; }
std::string place_of(std::size_t line, std::size_t column);
std::string place_of_bytes(const Tables& tables, std::size_t variable);
std::string place_of_input(const Function& function, std::size_t input);
std::string place_of_output(const Function& function, std::size_t output);
std::string place_of_name(const Function& function);
std::string place_of_attribute(const Function& function, std::string_view attribute);

}  // namespace tenon::chainer
