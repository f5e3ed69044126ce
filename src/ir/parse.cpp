#include "base/error.h"
#include "base/text.h"
#include "ir/constant_text.h"
#include "ir/lexer.h"
#include "ir/node_rules.h"
#include "ir/text.h"

#include <algorithm>

namespace tenon::inline ir {
namespace {

constexpr int kMaxBodyDepth = 64;
constexpr std::size_t kMaxErrors = 100;
constexpr std::size_t kMaxSuggested = 10'000;  // values searched for spelling suggestions

/// Runs `read` and prepends the position in the text to the location of an Error that it throws.
template <class Read>
auto placed(const Lexer& lexer, std::size_t position, Read read) {
  try {
    return read();
  } catch (Error& error) {
    const std::string own = error.place();
    error.at(lexer.place(position), own.empty() ? "" : ", ", own);
    throw;
  }
}

class AttributeParser {
 public:
  AttributeParser(Lexer& lexer, const OpDef& op, const SymbolRanges& ranges)
      : lexer_(lexer), op_(op), ranges_(ranges) {}

  Attributes read() {
    Attributes attrs;
    lexer_.expect('{', "before the attributes");
    if (lexer_.take('}')) return attrs;
    do {
      const std::size_t start = lexer_.position();
      const std::string name = lexer_.name("an attribute's name");
      const AttrDef* def = op_.find_attr(name);
      if (!def) throw unknown_attribute(start, name);
      if (attrs.find(name)) {
        throw lexer_.error_at(start, concat("attribute '", name, "' is given twice"));
      }
      lexer_.expect('=', "after the attribute's name");
      attrs.set(name, value(*def));
    } while (lexer_.take(','));
    lexer_.expect('}', "or ',' after an attribute");
    return attrs;
  }

 private:
  Error unknown_attribute(std::size_t start, const std::string& name) const {
    std::vector<std::string> known;
    for (const AttrDef& def : op_.attrs) known.push_back(def.name);
    Error error = lexer_.error_at(start, concat(op_.name, " has no attribute '", name, "'"));
    if (!known.empty()) error.hint(suggest_name(name, known));
    return error;
  }

  AttrValue value(const AttrDef& def) {
    switch (def.kind) {
      case AttrKind::Bool:
        return boolean();
      case AttrKind::Integer:
        return lexer_.dim(ranges_);
      case AttrKind::Real:
        return lexer_.real("a number");
      case AttrKind::Text:
        return lexer_.text("a text");
      case AttrKind::Element:
        return element();
      case AttrKind::Integers:
        return list<Dim>([&] { return lexer_.dim(ranges_); });
      case AttrKind::Reals:
        return list<double>([&] { return lexer_.real("a number"); });
      case AttrKind::Texts:
        return list<std::string>([&] { return lexer_.text("a text"); });
      case AttrKind::Constant:
        return read_constant(lexer_);
      case AttrKind::Type:
        return lexer_.type(ranges_);
      case AttrKind::Word:
        return word(def);
    }
    throw InternalError("def.kind", "an attribute's kind is one of those", __FILE__, __LINE__);
  }

  bool boolean() {
    if (lexer_.take_word("true")) return true;
    if (lexer_.take_word("false")) return false;
    throw lexer_.error_here("expected true or false");
  }

  DType element() {
    const std::size_t start = lexer_.position();
    if (const auto dtype = parse_dtype(lexer_.word())) return *dtype;
    lexer_.seek(start);
    throw lexer_.error_here("expected a dtype like f32");
  }

  std::string word(const AttrDef& def) {
    const std::size_t start = lexer_.position();
    std::string found = lexer_.name("a word");
    for (const std::string& known : def.words) {
      if (found == known) return found;
    }
    if (def.words.empty()) return found;
    throw lexer_.error_at(start, concat(op_.name, ": '", def.name, "' cannot be '", found, "'"))
        .hint(suggest_name(found, def.words));
  }

  template <class T, class ReadOne>
  std::vector<T> list(ReadOne read_one) {
    std::vector<T> items;
    lexer_.expect('[', "before a list");
    if (lexer_.take(']')) return items;
    do {
      items.push_back(read_one());
    } while (lexer_.take(','));
    lexer_.expect(']', "or ',' in a list");
    return items;
  }

  Lexer& lexer_;
  const OpDef& op_;
  const SymbolRanges& ranges_;
};

/// Parses one graph. A body has a parser of its own with the same lexer.
class GraphParser {
 public:
  GraphParser(Lexer& lexer, const OpTable& ops, SymbolRanges ranges, int depth)
      : lexer_(lexer), ops_(ops), ranges_(std::move(ranges)), depth_(depth) {}

  Graph read() {
    if (depth_ > kMaxBodyDepth) throw lexer_.error_here("bodies are nested too deeply");
    if (!lexer_.take_word("graph")) throw lexer_.error_here("expected 'graph'");
    if (lexer_.peek() != '<' && lexer_.peek() != '(') graph_.name = lexer_.name("the graph's name");
    if (lexer_.take('<')) read_symbols();
    read_inputs();
    lexer_.expect('{', "after the inputs");
    try {
      while (!read_statement()) {
      }
      lexer_.expect('}', "after the outputs");
    } catch (const Error& error) {
      errors_.push_back(error);
    }
    raise_errors();
    return std::move(graph_);
  }

 private:
  struct NamedResult {
    std::string name;
    std::optional<Type> type;
    std::size_t position = 0;
  };

  struct StateText {
    std::size_t start = 0;
    Graph::State state;
    std::string next;  // output's name, and its position if stated
    std::optional<std::int64_t> position;
  };

  void read_symbols() {
    do {
      const std::size_t start = lexer_.position();
      const std::string name = lexer_.symbol();
      Range range{0, kMaxExtent};
      if (lexer_.take_word("in")) {
        lexer_.expect('[', "before the range");
        range.lo = lexer_.integer("the least value");
        lexer_.expect(',', "in the range");
        range.hi = lexer_.integer("the greatest value");
        lexer_.expect(']', "after the range");
      }
      if (range.lo > range.hi || range.lo < -kMaxExtent || range.hi > kMaxExtent) {
        throw lexer_.error_at(start, concat("the range of '", name, "' holds no extent"));
      }
      const auto [known, is_new] = ranges_.emplace(name, range);
      if (!is_new && known->second != range) {
        throw lexer_.error_at(start, concat("'", name, "' is given two ranges"));
      }
    } while (lexer_.take(','));
    lexer_.expect('>', "or ',' after a symbol");
  }

  void read_inputs() {
    lexer_.expect('(', "before the inputs");
    if (lexer_.take(')')) return;
    do {
      const std::size_t start = lexer_.position();
      std::string name = lexer_.name("an input's name");
      lexer_.expect(':', "after the input's name");
      Type type = lexer_.type(ranges_);
      placed(lexer_, start, [&] { return graph_.add_input(std::move(name), std::move(type)); });
    } while (lexer_.take(','));
    lexer_.expect(')', "or ',' after an input");
  }

  // Returns true at the `return` that ends the graph.
  bool read_statement() {
    const std::size_t start = lexer_.position();
    const bool is_quoted = lexer_.peek() == '"';
    std::string first = lexer_.name("a statement or 'return'");
    if (!is_quoted && first == "return") {
      read_outputs();
      return true;
    }
    if (!is_quoted && first == "metadata" && lexer_.peek() == '"') {
      std::string key = lexer_.text("a key");
      lexer_.expect('=', "after the key");
      if (!graph_.metadata.emplace(key, lexer_.text("a text")).second) {
        throw lexer_.error_at(start, concat("metadata \"", key, "\" is given twice"));
      }
      return false;
    }
    if (!is_quoted && first == "state" && (is_name_char(lexer_.peek()) || lexer_.peek() == '"')) {
      read_state(start);
      return false;
    }
    if (lexer_.peek() == '(') {  // a node without results starts with its op
      read_node_or_skip(start, start, {});
      return false;
    }
    std::vector<NamedResult> results;
    results.push_back(result_named(start, std::move(first), is_quoted));
    while (lexer_.take(',')) {
      const std::size_t position = lexer_.position();
      const bool is_text = lexer_.peek() == '"';
      results.push_back(result_named(position, lexer_.name("a result's name"), is_text));
    }
    lexer_.expect('=', "after the results");
    read_node_or_skip(start, lexer_.position(), std::move(results));
    return false;
  }

  // An error of the outermost graph's node is recorded; the nodes after it are read with
  // placeholders for its results.
  void read_node_or_skip(std::size_t start, std::size_t op_position,
                         std::vector<NamedResult> results) {
    lexer_.seek(op_position);
    try {
      const std::string_view op_name = lexer_.word();
      if (op_name.empty()) throw lexer_.error_here("expected an op");
      read_node(start, results, op_named(op_position, op_name));
    } catch (const Error& error) {
      if (depth_ > 0 || errors_.size() >= kMaxErrors || !skip_node(op_position)) throw;
      errors_.push_back(error);
      for (NamedResult& result : results) {
        if (result.name == "_" || graph_.find(result.name)) continue;
        graph_.add_input(std::move(result.name), std::move(result.type).value_or(Type()));
      }
    }
  }

  bool skip_node(std::size_t op_position) try {
    lexer_.seek(op_position);
    lexer_.word();
    if (lexer_.peek() != '(' || !lexer_.skip_group()) return false;
    if (lexer_.peek() == '{' && !lexer_.skip_group()) return false;
    std::string ignored;
    if (lexer_.peek() == '@') read_source_name(ignored);
    while (starts_body()) {
      lexer_.word();
      lexer_.take('=');
      lexer_.take_word("graph");
      if (lexer_.peek() != '<' && lexer_.peek() != '(') lexer_.name("the graph's name");
      if (lexer_.take('<')) read_symbols();
      if (!lexer_.skip_group() || !lexer_.skip_group()) return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  }

  // A body starts like a statement up to the keyword `graph`, which is not an op.
  bool starts_body() {
    const std::size_t start = lexer_.position();
    const bool is_body = !lexer_.word().empty() && lexer_.take('=') && lexer_.take_word("graph");
    lexer_.seek(start);
    return is_body;
  }

  void raise_errors() {
    if (errors_.empty()) return;
    Error first = errors_.front();
    first.set_further({errors_.begin() + 1, errors_.end()});
    throw first;
  }

  NamedResult result_named(std::size_t position, std::string name, bool is_quoted) {
    if (name.empty() || (is_quoted && name == "_")) {
      throw lexer_.error_at(position, "a value's name cannot be empty or '_'");
    }
    NamedResult result{std::move(name), std::nullopt, position};
    if (lexer_.take(':')) result.type = lexer_.type(ranges_);
    return result;
  }

  const OpDef& op_named(std::size_t position, std::string_view name) const {
    if (const OpDef* op = ops_.find(name)) return *op;
    return *placed(lexer_, position, [&] { return &ops_.get(name); });
  }

  void read_outputs() {
    while (lexer_.peek() != '}') {
      const std::size_t start = lexer_.position();
      const std::string name = lexer_.name("a value's name");
      try {
        graph_.add_output(value_named(start, name));
      } catch (const Error& error) {
        errors_.push_back(error);
      }
      if (!lexer_.take(',')) break;
    }
    if (errors_.empty()) find_next_values();
  }

  // state INPUT to OUTPUT [at POSITION] [double_buffered] [= zeros | = CONSTANT]
  void read_state(std::size_t start) {
    StateText& text = states_.emplace_back();
    text.start = start;
    const std::size_t input_at = lexer_.position();
    const ValueId input = value_named(input_at, lexer_.name("an input's name"));
    const auto& inputs = graph_.inputs();
    const auto found = std::ranges::find(inputs, input);
    if (found == inputs.end())
      throw lexer_.error_at(input_at, concat("'", graph_.value(input).name, "' is no input"));
    text.state.input = static_cast<std::size_t>(found - inputs.begin());
    if (!lexer_.take_word("to")) throw lexer_.error_here("expected 'to' before the next value");
    text.next = lexer_.name("an output's name");
    if (lexer_.take_word("at")) text.position = lexer_.integer("an output's position");
    text.state.may_overwrite = !lexer_.take_word("double_buffered");
    if (!lexer_.take('=')) return;
    if (lexer_.take_word("zeros")) {
      text.state.starts_with_zeros = true;
    } else {
      text.state.initial = read_constant(lexer_);
    }
  }

  void find_next_values() {
    const auto& outputs = graph_.outputs();
    std::vector<bool> is_taken(outputs.size(), false);
    for (StateText& text : states_) {
      std::size_t k = 0;
      const auto is_next = [&](std::size_t at) {
        return graph_.value(outputs[at]).name == text.next &&
               (text.position ? static_cast<std::int64_t>(at) == *text.position : !is_taken[at]);
      };
      while (k < outputs.size() && !is_next(k)) ++k;
      if (k == outputs.size())
        throw lexer_.error_at(text.start,
                              concat("no output '", text.next, "' is left for the state"));
      is_taken[k] = true;
      text.state.output = k;
      graph_.states.push_back(std::move(text.state));
    }
  }

  void read_node(std::size_t start, std::vector<NamedResult>& results, const OpDef& op) {
    Graph::NewNode node;
    node.op = &op;
    require_result_count(start, op, results.size());
    if (op.name == "constant") {  // op-name: has a syntax of its own
      node.attrs.set("value", read_constant(lexer_));
    } else {
      node.operands = read_operands(op);
      if (lexer_.peek() == '{') node.attrs = AttributeParser(lexer_, op, ranges_).read();
    }
    if (lexer_.peek() == '@') read_source_name(node.name);
    if (!op.bodies.empty()) node.bodies = read_bodies(op);
    for (NamedResult& result : results) node.results.push_back(result.name);
    const NodeId id = placed(lexer_, start, [&] { return graph_.add_node(std::move(node)); });
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].type) state_type(id, i, results[i]);
    }
  }

  // A generated name for an omitted result could collide with a name further down.
  void require_result_count(std::size_t start, const OpDef& op, std::size_t count) const {
    for (std::size_t i = count; i < op.results.size(); ++i) {
      const ResultDef& result = op.results[i];
      if (result.is_optional || result.is_variadic) continue;
      throw lexer_.error_at(start, concat(op.name, ": result '", result.name, "' needs a name"));
    }
  }

  void state_type(NodeId id, std::size_t index, NamedResult& result) {
    const std::vector<ValueId>& made = graph_.node(id).results;
    if (index >= made.size() || !made[index]) {
      throw lexer_.error_at(result.position, "a result that is left out has no type");
    }
    const Type& inferred = graph_.value(made[index]).type;
    if (!types_agree(*result.type, inferred)) {
      throw lexer_.error_at(result.position, concat("'", result.name, "' has another type"))
          .expected(inferred)
          .got(*result.type);
    }
    graph_.set_type(made[index], std::move(*result.type));
  }

  ValueId read_value() {
    const std::size_t start = lexer_.position();
    return value_named(start, lexer_.name("a value's name"));
  }

  ValueId value_named(std::size_t position, const std::string& name) const {
    if (const ValueId id = graph_.find(name)) return id;
    Error error = lexer_.error_at(position, concat("there is no value '", name, "' here"));
    std::vector<std::string> known;
    for (std::size_t i = 0; i < std::min(graph_.value_id_bound(), kMaxSuggested); ++i) {
      known.push_back(graph_.value(ValueId(i)).name);
    }
    if (const auto meant = nearest_name(name, known)) error.hint("did you mean '", *meant, "'?");
    throw error;
  }

  std::vector<ValueId> read_operands(const OpDef& op) {
    std::vector<ValueId> operands;
    lexer_.expect('(', "after the op");
    if (lexer_.take(')')) return operands;
    bool is_named = false;
    do {
      const std::size_t start = lexer_.position();
      const std::string name = lexer_.name("an operand");
      if (lexer_.take('=')) {
        is_named = true;
        place_operand(op, start, name, operands);
      } else if (is_named) {
        throw lexer_.error_at(start, "an operand by position follows one by name");
      } else {
        operands.push_back(value_named(start, name));
      }
    } while (lexer_.take(','));
    lexer_.expect(')', "or ',' after an operand");
    return operands;
  }

  void place_operand(const OpDef& op, std::size_t start, const std::string& name,
                     std::vector<ValueId>& operands) {
    const auto index = op.operand_index(name);
    if (!index) {
      std::vector<std::string> known;
      for (const OperandDef& def : op.operands) known.push_back(def.name);
      Error error = lexer_.error_at(start, concat(op.name, " has no operand '", name, "'"));
      if (!known.empty()) error.hint(suggest_name(name, known));
      throw error;
    }
    const bool is_variadic = op.operands[*index].is_variadic;
    const std::size_t position = is_variadic ? std::max(*index, operands.size()) : *index;
    if (position >= operands.size()) operands.resize(position + 1);
    if (operands[position]) {
      throw lexer_.error_at(start, concat("operand '", name, "' is given twice"));
    }
    operands[position] = read_value();
  }

  void read_source_name(std::string& name) {
    const std::size_t start = lexer_.position();
    if (lexer_.word() == "@" && lexer_.peek() == '"') {
      name = lexer_.text("the node's name");
    } else {
      lexer_.seek(start);  // start of the next statement
    }
  }

  std::vector<Graph> read_bodies(const OpDef& op) {
    std::vector<Graph> bodies;
    while (starts_body()) {
      const std::size_t start = lexer_.position();
      const std::string_view label = lexer_.word();
      const std::string& def = op.bodies[std::min(bodies.size(), op.bodies.size() - 1)];
      const bool is_any = def.ends_with('*');
      const std::string_view wanted =
          std::string_view(def).substr(0, def.size() - (is_any ? 1 : 0));
      if (label != wanted || (bodies.size() >= op.bodies.size() && !is_any)) {
        throw lexer_.error_at(start, concat(op.name, " has no body '", label, "' here"));
      }
      lexer_.take('=');
      bodies.push_back(GraphParser(lexer_, ops_, ranges_, depth_ + 1).read());
    }
    return bodies;
  }

  Lexer& lexer_;
  const OpTable& ops_;
  SymbolRanges ranges_;
  int depth_;
  Graph graph_;
  std::vector<StateText> states_;
  std::vector<Error> errors_;
};

}  // namespace

Graph parse_graph(std::string_view text, const OpTable& ops, std::string_view source_name) {
  Lexer lexer(text, source_name);
  Graph graph = GraphParser(lexer, ops, {}, 0).read();
  if (!lexer.is_at_end()) throw lexer.error_here("expected nothing after the graph");
  return graph;
}

Attributes parse_attributes(std::string_view text, const OpDef& op) {
  Lexer lexer(text, "attributes");
  if (lexer.is_at_end()) return {};
  const SymbolRanges no_ranges;
  Attributes attrs = AttributeParser(lexer, op, no_ranges).read();
  if (!lexer.is_at_end()) throw lexer.error_here("expected nothing after the attributes");
  return attrs;
}

}  // namespace tenon::inline ir
