#include "documents/relay/parser.h"

#include "base/text.h"
#include "base/text_place.h"
#include "documents/relay/comments.h"
#include "documents/relay/op_table.h"
#include "documents/relay/scopes.h"
#include "documents/relay/token_cursor.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace tenon::documents::relay {
namespace {

constexpr std::array<std::string_view, 7> kUnsupportedWords = {
    "match", "ref", "ref_read", "ref_write", "type", "extern", "match?"};

struct BinaryOperator {
  std::string_view sign, op;
  int precedence;
};
constexpr std::array<BinaryOperator, 10> kBinaryOperators = {{
    {"*", "multiply", 12},
    {"/", "divide", 12},
    {"+", "add", 10},
    {"-", "subtract", 10},
    {"<", "less", 8},
    {"<=", "less_equal", 8},
    {">", "greater", 8},
    {">=", "greater_equal", 8},
    {"==", "equal", 7},
    {"!=", "not_equal", 7},
}};

class RelayParser {
 public:
  RelayParser(const std::vector<Token>& tokens, std::string_view text, std::string_view source)
      : cursor_(tokens, text, source) {}

  RelayModule run() {
    parse_header();
    if (cursor_.is_word("def")) {
      while (cursor_.is_word("def")) parse_definition();
    } else if (cursor_.is_word("fn")) {
      const std::size_t position = cursor_.position();
      cursor_.next();
      module_.functions.push_back({"", "", parse_function(position)});
    } else if (cursor_.is_word("free_var")) {
      module_.functions.push_back({"", "", parse_open_expression()});
    } else {
      refuse_unsupported();
      throw cursor_.error("expected 'def @name(…)' or 'fn (…)'");
    }
    parse_metadata();
    refuse_unsupported();
    if (cursor_.peek().kind != Token::Kind::End)
      throw cursor_.error("expected 'def' or the end of the text");
    refuse_unknown_globals();
    return std::move(module_);
  }

 private:
  void parse_header() {
    if (!cursor_.take("#[")) return;
    if (!cursor_.take_word("version")) throw cursor_.error("expected 'version'");
    cursor_.expect("=", "after 'version'");
    const Token token = cursor_.next();
    const std::optional<std::string> version =
        token.kind == Token::Kind::Text ? unquote(token.text) : std::nullopt;
    if (!version) throw cursor_.error_at(token.position, "expected the version as a text");
    module_.version = *version;
    cursor_.expect("]", "after the version");
  }

  void parse_definition() {
    cursor_.next();
    const Token name = cursor_.peek();
    if (name.kind != Token::Kind::Global)
      throw cursor_.error("expected the name of a function, as @main");
    cursor_.next();
    GlobalFunction function{std::string(name.text), "", {}};
    if (!function_names_.insert(function.name).second) {
      throw cursor_.error_at(name.position,
                             concat("the function @", function.name, " is defined twice"));
    }
    if (const Token* comment = cursor_.take_comment()) {
      const std::string_view inside = trim(comment->text);
      if (inside.starts_with("id=")) function.id_comment = single_spaced(inside.substr(3));
    }
    function.function = parse_function(name.position);
    module_.functions.push_back(std::move(function));
  }

  void parse_metadata() {
    const Token token = cursor_.peek();
    if (token.kind != Token::Kind::Metadata) return;
    // The JSON is parsed as part of the whole text, so that error positions count lines from its
    // start.
    module_.metadata_position = static_cast<std::size_t>(token.text.data() - cursor_.text().data());
    try {
      module_.metadata = frontends::parse_json(token.text, cursor_.source());
    } catch (Error& error) {
      throw cursor_.error_at(module_.metadata_position, concat("the metadata: ", error.summary()))
          .got(error.place());
    }
    cursor_.next();
  }

  // Parses after the name, or after `fn`.
  ExprId parse_function(std::size_t position) {
    const TokenCursor::Level level(cursor_);
    RelayExpr function = named(RelayExpr::Kind::Function, "", position);
    if (cursor_.take("[")) {
      do {
        if (cursor_.peek().kind != Token::Kind::Word)
          throw cursor_.error("expected a type parameter");
        function.type_parameters.emplace_back(cursor_.next().text);
      } while (cursor_.take(","));
      cursor_.expect("]", "after the type parameters");
    }
    scopes_.open_owner();
    function.blocks = {module_.add_block()};
    scopes_.open(function.blocks.front());
    parse_parameters(function);
    if (cursor_.take("->")) function.annotation = parse_type(cursor_);
    function.parts = {parse_braces()};
    scopes_.close();
    function.captures = scopes_.close_owner();
    return module_.add(std::move(function));
  }

  // Parses an expression outside of a function, whose free variables become parameters.
  ExprId parse_open_expression() {
    RelayExpr function = named(RelayExpr::Kind::Function, "", cursor_.position());
    scopes_.open_owner();
    function.blocks = {module_.add_block()};
    scopes_.open(function.blocks.front());
    while (cursor_.take_word("free_var")) {
      function.parameters.push_back(parse_variable());
      attach_comments(function.parameters.back());
      cursor_.take(";");
    }
    function.parts = {parse_block("")};
    scopes_.close();
    function.captures = scopes_.close_owner();
    return module_.add(std::move(function));
  }

  void parse_parameters(RelayExpr& function) {
    cursor_.expect("(", "before parameters");
    std::unordered_set<std::string> names;
    while (!cursor_.is_sign(")")) {
      if (cursor_.peek().kind == Token::Kind::Local) {
        if (!function.attributes.empty()) throw cursor_.error("parameters come before attributes");
        const std::size_t position = cursor_.position();
        const ExprId parameter = parse_variable();
        if (!names.insert(module_.at(parameter).name).second) {
          throw cursor_.error_at(
              position, concat("the parameter %", module_.at(parameter).name, " comes twice"));
        }
        function.parameters.push_back(parameter);
        attach_comments(parameter);
      } else {
        parse_attribute(function, nullptr);
      }
      if (!cursor_.take(",")) break;
    }
    cursor_.expect(")", "after parameters");
  }

  // Parses the declaration of a variable: its name and type.
  ExprId parse_variable() {
    if (cursor_.peek().kind != Token::Kind::Local)
      throw cursor_.error("expected a variable, as %x");
    RelayExpr variable = named(RelayExpr::Kind::Variable, cursor_.peek().text, cursor_.position());
    cursor_.next();
    std::vector<Token> comments;  // without a type in between
    while (const Token* comment = cursor_.take_comment()) comments.push_back(*comment);
    variable.device = parse_device();
    if (cursor_.take(":")) variable.annotation = parse_type(cursor_);
    const ExprId id = module_.add(std::move(variable));
    for (const Token& comment : comments) attach_comment(module_, id, comment, cursor_);
    scopes_.declare(module_.at(id).name, id);
    return id;
  }

  // Keeps a planner's device annotation verbatim, which does not affect the graph.
  std::string parse_device() { return cursor_.is_sign("{") ? take_balanced(cursor_) : ""; }

  ExprId parse_braces() {
    cursor_.expect("{", "before a body");
    const ExprId body = parse_block("}");
    cursor_.expect("}", "after a body");
    return body;
  }

  struct PendingLet {
    ExprId variable, value;
    std::size_t position;
  };

  // Parses from the word `let`. The variable is not visible in its value; the caller declares it
  // afterwards.
  PendingLet parse_let() {
    PendingLet let;
    let.position = cursor_.position();
    cursor_.next();
    RelayExpr variable = named(RelayExpr::Kind::Variable, cursor_.peek().text, cursor_.position());
    if (cursor_.peek().kind != Token::Kind::Local)
      throw cursor_.error("expected a variable, as %x");
    cursor_.next();
    if (cursor_.take(":")) variable.annotation = parse_type(cursor_);
    let.variable = module_.add(std::move(variable));
    attach_comments(let.variable);
    cursor_.expect("=", "after the variable of a let");
    let.value = parse_expr();
    cursor_.expect(";", "after the value of a let");
    return let;
  }

  void declare(const PendingLet& let) {
    module_.at(let.variable).block = scopes_.block();
    scopes_.declare(module_.at(let.variable).name, let.variable);
  }

  // Parses lines and the final expression in the open scope, up to the closing bracket. An
  // expression with a semicolon is an unnamed line.
  ExprId parse_block(std::string_view close) {
    const TokenCursor::Level level(cursor_);
    std::vector<PendingLet> lets;
    ExprId body;
    for (;;) {
      if (cursor_.peek().kind == Token::Kind::Graph && is_sign(cursor_.peek_second(), "=")) {
        parse_binding();
      } else if (cursor_.is_word("let")) {
        lets.push_back(parse_let());
        declare(lets.back());
      } else if (cursor_.take_word("free_var")) {
        module_.at(parse_variable()).is_free = true;
        cursor_.expect(";", "after a free variable");
      } else {
        const std::size_t position = cursor_.position();
        body = parse_expr();
        if (!cursor_.take(";")) break;
        const ExprId unnamed = module_.add(named(RelayExpr::Kind::Variable, "_", position));
        lets.push_back({unnamed, body, position});
      }
    }
    if (!close.empty() && !cursor_.is_sign(close))
      throw cursor_.error(concat("expected '", close, "' after the last expression"));
    for (auto let = lets.rbegin(); let != lets.rend(); ++let) body = make_let(*let, body);
    return body;
  }

  ExprId make_let(const PendingLet& let, ExprId body) {
    RelayExpr expr = named(RelayExpr::Kind::Let, "", let.position);
    expr.parts = {let.variable, let.value, body};
    return module_.add(std::move(expr));
  }

  void parse_binding() {
    const Token token = cursor_.next();
    const std::int64_t number = graph_number(token);
    cursor_.expect("=", "after a number");
    if (const auto* known = scopes_.find_number(number)) {
      throw cursor_.error_at(token.position, concat("%", number, " is bound twice"))
          .got("the first is at ", cursor_.place(known->position));
    }
    const ExprId value = parse_expr();
    cursor_.expect(";", concat("after the value of %", number));
    scopes_.bind(number, {value, token.position, scopes_.depth()});
    module_.bindings.push_back({number, value, token.position});
  }

  std::int64_t graph_number(const Token& token) {
    const std::optional<std::int64_t> number = parse_integer(token.text);
    if (!number) throw cursor_.error_at(token.position, "a line's number is out of range");
    return *number;
  }

  ExprId parse_expr(int least_precedence = 0) {
    const TokenCursor::Level level(cursor_);
    ExprId left = parse_postfix();
    for (;;) {
      const BinaryOperator* binary = nullptr;
      for (const BinaryOperator& candidate : kBinaryOperators) {
        if (cursor_.is_sign(candidate.sign)) binary = &candidate;
      }
      if (binary == nullptr || binary->precedence < least_precedence) return left;
      const std::size_t position = cursor_.position();
      cursor_.next();
      const ExprId right = parse_expr(binary->precedence + 1);
      const ExprId op = module_.add(named(RelayExpr::Kind::Operator, binary->op, position));
      RelayExpr call = named(RelayExpr::Kind::Call, "", position);
      call.parts = {op, left, right};
      left = module_.add(std::move(call));
      attach_comments(left);
    }
  }

  ExprId parse_postfix() {
    // A comment after a reference does not belong to the referenced line.
    const Token::Kind first = cursor_.peek().kind;
    bool is_reference = first == Token::Kind::Graph || first == Token::Kind::Local;
    ExprId expr = parse_atom();
    for (;;) {
      if (!is_reference) attach_comments(expr);
      is_reference = false;
      if (cursor_.is_sign("(")) {
        expr = parse_call(expr);
      } else if (cursor_.peek().kind == Token::Kind::Projection) {
        const Token token = cursor_.next();
        const std::optional<std::int64_t> index = parse_integer(token.text);
        if (!index) throw cursor_.error_at(token.position, "a field's number is out of range");
        expr = project(expr, *index, token.position);
      } else {
        return expr;
      }
    }
  }

  ExprId parse_call(ExprId callee) {
    const TokenCursor::Level level(cursor_);
    RelayExpr call = named(RelayExpr::Kind::Call, "", module_.at(callee).position);
    call.parts = {callee};
    const bool is_operator = module_.at(callee).kind == RelayExpr::Kind::Operator;
    const OperatorDef* def = is_operator ? find_operator(module_.at(callee).name) : nullptr;
    cursor_.expect("(", "before arguments");
    while (!cursor_.is_sign(")")) {
      if (cursor_.peek().kind == Token::Kind::Word && is_sign(cursor_.peek_second(), "=")) {
        parse_attribute(call, def);
      } else {
        if (!call.attributes.empty()) throw cursor_.error("arguments come before attributes");
        call.parts.push_back(parse_expr());
      }
      if (!cursor_.take(",")) break;
    }
    cursor_.expect(")", "after arguments");
    const std::size_t count = call.parts.size() - 1;
    if (def && (count < def->least_arguments || count > def->most_arguments)) {
      throw cursor_.error_at(call.position, concat(def->name, " has another number of arguments"))
          .expected(def->least_arguments == def->most_arguments
                        ? concat(def->least_arguments)
                        : concat(def->least_arguments, " to ", def->most_arguments))
          .got(count);
    }
    return module_.add(std::move(call));
  }

  void parse_attribute(RelayExpr& owner, const OperatorDef* def) {
    RelayAttribute attribute;
    attribute.position = cursor_.position();
    if (cursor_.peek().kind != Token::Kind::Word) throw cursor_.error("expected a name");
    attribute.name = cursor_.next().text;
    cursor_.expect("=", "after the name of an attribute");
    attribute.value = parse_attribute_value(cursor_);
    for (const RelayAttribute& other : owner.attributes) {
      if (other.name == attribute.name) {
        throw cursor_.error_at(attribute.position,
                               concat("the attribute '", attribute.name, "' is given twice"));
      }
    }
    if (def && !def->find_attribute(attribute.name)) {
      std::vector<std::string> known;
      for (const AttributeDef& candidate : def->attributes) known.push_back(candidate.name);
      throw cursor_
          .error_at(attribute.position,
                    concat(def->name, " has no attribute '", attribute.name, "'"))
          .hint(suggest_name(attribute.name, known));
    }
    owner.attributes.push_back(std::move(attribute));
  }

  static bool is_sign(const Token& token, std::string_view sign) {
    return token.kind == Token::Kind::Sign && token.text == sign;
  }

  RelayExpr named(RelayExpr::Kind kind, std::string_view name, std::size_t position) const {
    return RelayExpr::of(kind, scopes_.block(), name, position);
  }

  ExprId parse_atom() {
    refuse_unsupported();
    const Token token = cursor_.peek();
    const std::size_t position = token.position;
    switch (token.kind) {
      case Token::Kind::Local:
        cursor_.next();
        return parse_local(token);
      case Token::Kind::Graph:
        return parse_reference();
      case Token::Kind::Global: {
        cursor_.next();
        globals_.push_back(module_.add(named(RelayExpr::Kind::Global, token.text, position)));
        return globals_.back();
      }
      case Token::Kind::Number:
        return parse_scalar();
      case Token::Kind::Word:
        return parse_word(token);
      default:
        break;
    }
    if (cursor_.is_sign("-")) return parse_scalar();
    if (cursor_.is_sign("(")) return parse_brackets();
    throw cursor_.error("expected an expression");
  }

  // A numeric suffix of an unknown name is a tuple field.
  ExprId parse_local(const Token& token) {
    std::string name(token.text);
    std::vector<std::int64_t> fields;
    ExprId found = scopes_.find_variable(name);
    while (!found) {
      const std::size_t dot = name.rfind('.');
      const auto field =
          dot == std::string::npos ? std::nullopt : parse_integer(name.substr(dot + 1));
      if (!field)
        throw cursor_.error_at(token.position, concat("nothing is called %", token.text, " here"));
      fields.insert(fields.begin(), *field);
      name.resize(dot);
      found = scopes_.find_variable(name);
    }
    for (const std::int64_t field : fields) found = project(found, field, token.position);
    return found;
  }

  ExprId project(ExprId tuple, std::int64_t field, std::size_t position) {
    RelayExpr projection = named(RelayExpr::Kind::Projection, "", position);
    projection.parts = {tuple};
    projection.index = field;
    return module_.add(std::move(projection));
  }

  ExprId parse_word(const Token& token) {
    if (token.text == "True" || token.text == "False" || is_special_real(token.text))
      return parse_scalar();
    if (token.text == "meta" && is_sign(cursor_.peek_second(), "[")) return parse_constant();
    cursor_.next();
    if (token.text == "fn") return parse_function(token.position);
    if (token.text == "if") return parse_if(token.position);
    if (token.text == "let" || token.text == "free_var" || token.text == "def" ||
        token.text == "else") {
      throw cursor_.error_at(token.position, concat("'", token.text, "' cannot stand here"));
    }
    return module_.add(named(RelayExpr::Kind::Operator, token.text, token.position));
  }

  ExprId parse_reference() {
    const Token token = cursor_.next();
    const std::int64_t number = graph_number(token);
    const auto* bound = scopes_.find_number(number);
    if (bound == nullptr)
      throw cursor_.error_at(token.position, concat("%", number, " is read before it is bound"));
    scopes_.note_use(*bound);
    return bound->expr;
  }

  ExprId parse_scalar() {
    RelayExpr scalar = named(RelayExpr::Kind::Scalar, "", cursor_.position());
    if (cursor_.take_word("True")) {
      scalar.literal = {true};
    } else if (cursor_.take_word("False")) {
      scalar.literal = {false};
    } else {
      scalar.literal = parse_number(cursor_);
    }
    return module_.add(std::move(scalar));
  }

  ExprId parse_constant() {
    const std::size_t position = cursor_.position();
    const MetaReference reference = parse_meta_reference(cursor_);
    if (reference.key != "relay.Constant") {
      Error error("only constants of the metadata are read", ErrorKind::Unsupported);
      error.at(cursor_.place(position)).got(reference.key);
      throw error;
    }
    ExprId& constant = constants_[reference.index];
    if (!constant) {
      RelayExpr expr = named(RelayExpr::Kind::Constant, "", position);
      expr.index = reference.index;
      constant = module_.add(std::move(expr));
    }
    return constant;
  }

  ExprId parse_brackets() {
    const std::size_t position = cursor_.position();
    cursor_.next();
    if (cursor_.is_word("let")) return parse_bracketed_let();
    RelayExpr tuple = named(RelayExpr::Kind::Tuple, "", position);
    bool is_tuple = cursor_.is_sign(")");
    while (!cursor_.is_sign(")")) {
      tuple.parts.push_back(parse_expr());
      if (!cursor_.take(",")) break;
      is_tuple = true;
    }
    cursor_.expect(")", "after the fields of a tuple");
    if (!is_tuple) return tuple.parts.front();
    return module_.add(std::move(tuple));
  }

  // The first value is parsed outside of the bracketed block: its lines precede the block.
  ExprId parse_bracketed_let() {
    const TokenCursor::Level level(cursor_);
    const PendingLet let = parse_let();
    const BlockId block = module_.add_block();
    scopes_.open_owner();
    scopes_.open(block);
    declare(let);
    const ExprId body = parse_block(")");
    scopes_.close();
    std::vector<ExprId> captures = scopes_.close_owner();
    cursor_.expect(")", "after a let in brackets");
    const ExprId id = make_let(let, body);
    module_.at(id).blocks = {block};
    module_.at(id).captures = std::move(captures);
    return id;
  }

  ExprId parse_if(std::size_t position) {
    RelayExpr expr = named(RelayExpr::Kind::If, "", position);
    cursor_.expect("(", "before the condition");
    expr.parts.push_back(parse_expr());
    cursor_.expect(")", "after the condition");
    scopes_.open_owner();
    for (const bool is_then : {true, false}) {
      if (!is_then && !cursor_.take_word("else")) throw cursor_.error("expected 'else'");
      expr.blocks.push_back(module_.add_block());
      scopes_.open(expr.blocks.back());
      expr.parts.push_back(parse_braces());
      scopes_.close();
    }
    expr.captures = scopes_.close_owner();
    return module_.add(std::move(expr));
  }

  // Comments directly after an expression state its type and source.
  void attach_comments(ExprId id) {
    while (const Token* comment = cursor_.take_comment())
      attach_comment(module_, id, *comment, cursor_);
  }

  void refuse_unsupported() {
    const Token& token = cursor_.peek();
    if (token.kind != Token::Kind::Word) return;
    const bool is_listed = std::find(kUnsupportedWords.begin(), kUnsupportedWords.end(),
                                     token.text) != kUnsupportedWords.end();
    if (!is_listed) return;
    Error error(concat("'", token.text, "' has no tensors in it that a graph could hold"),
                ErrorKind::Unsupported);
    error.at(cursor_.place(token.position));
    throw error;
  }

  void refuse_unknown_globals() {
    for (const ExprId id : globals_) {
      const RelayExpr& global = module_.at(id);
      if (function_names_.contains(global.name)) continue;
      std::vector<std::string> known(function_names_.begin(), function_names_.end());
      std::sort(known.begin(), known.end());
      throw cursor_.error_at(global.position, concat("no function is called @", global.name))
          .hint(suggest_name(global.name, known));
    }
  }

  TokenCursor cursor_;
  RelayModule module_;
  Scopes scopes_;
  std::unordered_map<std::int64_t, ExprId> constants_;
  std::vector<ExprId> globals_;
  std::unordered_set<std::string> function_names_;
};

}  // namespace

RelayModule parse_module(std::string_view text, std::string_view source) {
  // Before `#[version = …]`, the first line was only the version.
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (!text.substr(begin).starts_with("v0.0.")) {
    const std::vector<Token> tokens = tokenize(text, source);
    return RelayParser(tokens, text, source).run();
  }
  const std::size_t end = std::min(text.find_first_of(" \t\r\n", begin), text.size());
  std::string body(text);
  std::fill(body.begin() + static_cast<std::ptrdiff_t>(begin),
            body.begin() + static_cast<std::ptrdiff_t>(end), ' ');
  const std::vector<Token> tokens = tokenize(body, source);
  RelayModule module = RelayParser(tokens, body, source).run();
  module.version = text.substr(begin, end - begin);
  return module;
}

}  // namespace tenon::documents::relay
