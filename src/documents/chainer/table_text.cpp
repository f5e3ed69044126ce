#include "base/text.h"
#include "base/text_place.h"
#include "documents/chainer/tables.h"

#include <charconv>
#include <unordered_map>

namespace tenon::documents::chainer {
namespace {

// Limits that keep sums over a whole file far below 2^63.
constexpr std::int64_t kMostVariableBytes = std::int64_t{1} << 44;
constexpr std::int64_t kMaxId = std::int64_t{1} << 40;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 18;

class TableTextParser {
 public:
  TableTextParser(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  Tables parse() {
    next_line();
    const std::int64_t variable_count = integer("the number of variables", 1, kMaxCount, ' ');
    const std::size_t function_count_at = position_;
    const std::int64_t function_count =
        integer("twice the number of functions", 2, kMaxCount, '\n');
    if (function_count % 2 != 0) {
      throw error("the header's second number is odd", function_count_at)
          .expected("twice the number of functions");
    }
    for (std::int64_t k = 0; k < variable_count; ++k) variable();
    made_at_.resize(tables_.variables.size());
    const auto half = static_cast<std::size_t>(function_count / 2);
    for (std::size_t k = 0; k < half; ++k) tables_.forward.push_back(forward());
    for (std::size_t k = 0; k < half; ++k) tables_.backward.push_back(backward());
    if (line_end_ != text_.size()) {
      next_line();
      throw error(concat("the header counts ", function_count, " functions, and here is more"),
                  position_);
    }
    refuse_cycles();
    return std::move(tables_);
  }

 private:
  Error error(std::string summary, std::size_t at) const {
    Error problem(std::move(summary));
    problem.at(text_place(source_, text_, at));
    return problem;
  }

  // Moves to the next line, which must exist and be complete.
  void next_line() {
    if (line_end_ >= text_.size()) {
      throw error("the file ends too early", text_.size()).hint("it may be cut short");
    }
    position_ = line_end_;
    const std::size_t end = text_.find('\n', position_);
    if (end == std::string_view::npos) {
      throw error("the last line has no end", text_.size()).hint("the file may be cut short");
    }
    line_end_ = end + 1;
    ++line_;
  }

  // Reads a number in canonical form and the delimiter after it.
  std::int64_t integer(std::string_view what, std::int64_t low, std::int64_t high, char trailing) {
    const std::size_t at = position_;
    std::size_t end = at;
    while (end < text_.size() &&
           ((text_[end] >= '0' && text_[end] <= '9') || (text_[end] == '-' && end == at))) {
      ++end;
    }
    const std::string_view digits = text_.substr(at, end - at);
    const std::optional<std::int64_t> value = parse_integer(digits);
    const bool is_long = !value && digits.size() > 15;
    if (is_long || (value && (*value < low || *value > high))) {
      throw error(concat(what, " is out of range"), at).expected(low, " to ", high).got(digits);
    }
    if (!value || std::to_string(*value) != digits) {
      throw error(concat(what, " belongs here"), at).got(quote(rest_of_line().substr(0, 40)));
    }
    if (end >= text_.size() || text_[end] != trailing) {
      throw error(concat(trailing == '\n' ? "the line ends after " : "a space follows ", what),
                  end);
    }
    position_ = end + 1;
    return *value;
  }

  std::string_view rest_of_line() const {
    return position_ >= line_end_ ? std::string_view()
                                  : text_.substr(position_, line_end_ - 1 - position_);
  }

  void variable() {
    next_line();
    const std::size_t id_at = position_;
    if (rest_of_line() == "forward") {
      throw error("the header counts more variables than there are", id_at);
    }
    Variable variable;
    variable.id = integer("a variable's id", 0, kMaxId, ' ');
    if (!ids_.emplace(variable.id, tables_.variables.size()).second) {
      throw error(concat("the id ", variable.id, " comes twice"), id_at);
    }
    variable.bytes = integer("a variable's size in bytes", 0, kMostVariableBytes, ' ');
    variable.name = rest_of_line();
    if (variable.name.empty()) throw error("a variable's name belongs here", position_);
    if (!variable.is_intermediate() && !names_.emplace(variable.name, line_).second) {
      throw error(concat("the name '", variable.name, "' comes twice"), position_);
    }
    tables_.variables.push_back(std::move(variable));
  }

  std::size_t known_id(char trailing) {
    const std::size_t at = position_;
    const std::int64_t id = integer("a variable's id", 0, kMaxId, trailing);
    const auto found = ids_.find(id);
    if (found == ids_.end()) throw error(concat("no variable has the id ", id), at);
    return found->second;
  }

  Tag tag() {
    const std::string_view word = rest_of_line();
    if (word == "_") return Tag::Value;
    if (word == "gradient") return Tag::Gradient;
    if (word == "input") return Tag::Input;
    if (word == "output") return Tag::Output;
    throw error("this is no tag", position_)
        .expected("_, gradient, input or output")
        .got(quote(word.substr(0, 40)));
  }

  // Reads an empty list, which Python prints as one empty line.
  void empty_line() {
    next_line();
    if (!rest_of_line().empty()) throw error("an empty list leaves an empty line", position_);
  }

  Function record(std::string_view kind) {
    next_line();
    Function function;
    function.line = line_;
    if (rest_of_line() != kind) {
      throw error(concat("a ", kind, " function belongs here"), position_)
          .expected(
              "as many functions as the header counts, half of them forward and half backward")
          .got(quote(rest_of_line().substr(0, 40)));
    }
    next_line();
    const std::size_t counts_at = position_;
    const std::int64_t input_count = integer("the number of inputs", 0, kMaxCount, ' ');
    const std::int64_t output_count = integer("the number of outputs", 0, kMaxCount, '\n');
    require_counts(counts_at, input_count, output_count);
    const bool is_forward = kind == "forward";
    if (input_count == 0) empty_line();
    for (std::int64_t k = 0; k < input_count; ++k) {
      next_line();
      Input input;
      input.variable = known_id(' ');
      const std::size_t tag_at = position_;
      input.tag = tag();
      if (is_forward != (input.tag == Tag::Value)) {
        throw error("the tag does not belong to such a function", tag_at)
            .expected(is_forward ? "_" : "gradient, input or output");
      }
      function.inputs.push_back(input);
    }
    if (output_count == 0 && is_forward) empty_line();
    for (std::int64_t k = 0; k < output_count; ++k) {
      next_line();
      function.outputs.push_back(known_id('\n'));
    }
    next_line();
    function.name = rest_of_line();
    if (function.name.empty()) throw error("a function's name belongs here", position_);
    next_line();
    function.attributes = parse_attributes(text_, source_, position_, line_end_ - 1);
    return function;
  }

  // A tagged id is an input, a plain id an output; a name, which is not a number, ends them.
  void require_counts(std::size_t at, std::int64_t says_inputs, std::int64_t says_outputs) const {
    std::int64_t inputs = 0, outputs = 0;
    std::size_t begin = line_end_;
    for (; begin < text_.size(); begin = std::min(text_.find('\n', begin), text_.size() - 1) + 1) {
      const char first = text_[begin];
      if (first == '\n') continue;
      if (first < '0' || first > '9') break;
      const std::string_view line = text_.substr(begin, text_.find('\n', begin) - begin);
      (line.find(' ') == std::string_view::npos ? outputs : inputs) += 1;
    }
    if ((inputs == says_inputs && outputs == says_outputs) || begin >= text_.size()) return;
    throw error("a record has other numbers of inputs and outputs than it says", at)
        .expected(inputs, " ", outputs)
        .got(says_inputs, " ", says_outputs);
  }

  Function forward() {
    Function function = record("forward");
    for (std::size_t k = 0; k < function.outputs.size(); ++k) {
      const std::size_t output = function.outputs[k];
      const Variable& variable = tables_.variables[output];
      if (!variable.is_intermediate()) {
        throw Error(concat("a function makes the variable ", variable.id,
                           ", which is an input or a parameter"))
            .at(source_, ", ", place_of_output(function, k));
      }
      if (!made_at_[output].empty()) {
        throw Error(concat("the variable ", variable.id, " is made twice"))
            .at(source_, ", ", place_of_output(function, k))
            .got("also made at ", made_at_[output]);
      }
      made_at_[output] = place_of_output(function, k);
    }
    return function;
  }

  Function backward() {
    Function function = record("backward");
    if (function.inputs.empty()) {
      throw Error("a backward function reads at least a gradient")
          .at(source_, ", ", place_of(function.line, 1));
    }
    return function;
  }

  void refuse_cycles() const {
    const std::vector<std::size_t> order = topological_order(tables_);
    if (order.size() == tables_.forward.size()) return;
    std::vector<bool> is_ordered(tables_.forward.size(), false);
    for (const std::size_t k : order) is_ordered[k] = true;
    // If a backward record reads another variable, the forward record's variable causes the cycle.
    for (std::size_t k = 0; k < is_ordered.size(); ++k) {
      const Function& function = tables_.forward[k];
      const std::vector<std::size_t>& backward = tables_.backward[k].outputs;
      for (std::size_t n = 0; n < std::min(function.inputs.size(), backward.size()); ++n) {
        if (is_ordered[k] || function.inputs[n].variable == backward[n]) continue;
        throw Error(concat("the function ", function.name, " needs what comes of its own outputs"))
            .at(source_, ", ", place_of_input(function, n))
            .expected(tables_.variables[backward[n]].id, ", as in its backward record")
            .got(tables_.variables[function.inputs[n].variable].id);
      }
    }
    for (std::size_t k = 0; k < is_ordered.size(); ++k) {
      if (is_ordered[k]) continue;
      throw Error(
          concat("the function ", tables_.forward[k].name, " needs what comes of its own outputs"))
          .at(source_, ", ", place_of(tables_.forward[k].line, 1));
    }
  }

  std::string_view text_, source_;
  std::size_t position_ = 0, line_end_ = 0, line_ = 0;
  Tables tables_;
  std::unordered_map<std::int64_t, std::size_t> ids_;
  std::unordered_map<std::string, std::size_t> names_;
  std::vector<std::string> made_at_;  // defining position by variable; empty: not yet defined
};

std::string_view word_of(Tag tag) {
  switch (tag) {
    case Tag::Value:
      return "_";
    case Tag::Gradient:
      return "gradient";
    case Tag::Input:
      return "input";
    case Tag::Output:
      return "output";
  }
  return "_";
}

void print_function(std::string& text, const Tables& tables, const Function& function,
                    bool is_forward) {
  text += is_forward ? "forward\n" : "backward\n";
  text += concat(function.inputs.size(), " ", function.outputs.size(), "\n");
  if (function.inputs.empty()) text += '\n';
  for (const Input& input : function.inputs) {
    text += concat(tables.variables[input.variable].id, " ", word_of(input.tag), "\n");
  }
  if (function.outputs.empty() && is_forward) text += '\n';
  for (const std::size_t output : function.outputs)
    text += concat(tables.variables[output].id, "\n");
  text += function.name;
  text += '\n';
  text += print_attributes(function.attributes);
  text += '\n';
}

}  // namespace

Tables parse_tables(std::string_view text, std::string_view source) {
  return TableTextParser(text, source).parse();
}

std::string print_tables(const Tables& tables) {
  std::string text =
      concat(tables.variables.size(), " ", tables.forward.size() + tables.backward.size(), "\n");
  for (const Variable& variable : tables.variables) {
    text += concat(variable.id, " ", variable.bytes, " ", variable.name, "\n");
  }
  for (const Function& function : tables.forward) print_function(text, tables, function, true);
  for (const Function& function : tables.backward) print_function(text, tables, function, false);
  return text;
}

}  // namespace tenon::documents::chainer
