#include "passes/rewrite/pattern.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/lowering.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace tenon::passes::rewrite {
namespace {

constexpr int kMaxDepth = 50;

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class PatternParser {
 public:
  using Arguments = std::map<std::string, PatternTerm, std::less<>>;

  PatternParser(std::string_view text, const Definitions& definitions, Names& names,
                const Arguments& arguments, int depth)
      : text_(text),
        definitions_(definitions),
        names_(names),
        arguments_(arguments),
        depth_(depth) {
    if (depth > kMaxDepth) throw Error("a definition uses itself").got(text);
  }

  PatternTerm whole() {
    PatternTerm term = choice();
    if (peek() != '\0') fail("the text should end here");
    return term;
  }

 private:
  [[noreturn]] void fail(std::string_view why) {
    throw Error(concat("rewrite rule: ", why)).at("column ", at_ + 1, " of '", text_, "'");
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view symbol) {
    peek();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }
  void expect(std::string_view symbol) {
    if (!take(symbol)) fail(concat("expected '", symbol, "'"));
  }
  std::string word() {
    peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
    if (at_ == begin) fail("expected a name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool is_at_number() {
    const char c = peek();
    return std::isdigit(static_cast<unsigned char>(c)) || c == '-';
  }
  double number() {
    peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_word_char(text_[at_]) || text_[at_] == '.' ||
                                  ((text_[at_] == '-' || text_[at_] == '+') &&
                                   (at_ == begin || text_[at_ - 1] == 'e')))) {
      ++at_;
    }
    const auto value = parse_real(text_.substr(begin, at_ - begin));
    if (!value) fail("expected a number");
    return *value;
  }

  std::size_t slot_of(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    names_.push_back(name);
    return names_.size() - 1;
  }

  PatternTerm choice() {
    PatternTerm first = primary();
    if (peek() != '|') return first;
    PatternTerm all;
    all.kind = PatternTerm::Kind::Choice;
    all.args.push_back(std::move(first));
    while (take("|")) all.args.push_back(primary());
    return all;
  }

  PatternTerm of_kind(PatternTerm::Kind kind, std::size_t slot = 0, double value = 0) {
    PatternTerm term;
    term.kind = kind;
    term.slot = slot;
    term.number = value;
    return term;
  }

  PatternTerm primary() {
    if (take("(")) {
      PatternTerm inner = choice();
      expect(")");
      return inner;
    }
    if (take("...")) return of_kind(PatternTerm::Kind::Rest, slot_of(word()));
    if (take("$")) return of_kind(PatternTerm::Kind::NumberVariable, slot_of(word()));
    if (take("~")) return of_kind(PatternTerm::Kind::NearNumber, 0, number());
    if (is_at_number()) return of_kind(PatternTerm::Kind::Number, 0, number());
    const std::string name = word();
    if (name == "_") return {};
    if (take(":")) return labelled(name);
    const char next = peek();
    if (next == '(' || next == '/' || text_.substr(at_).starts_with("?(") ||
        text_.substr(at_).starts_with("*(")) {
      return call(name);
    }
    if (take("?")) return of_kind(PatternTerm::Kind::Optional, slot_of(name));
    const auto argument = arguments_.find(name);
    if (argument != arguments_.end()) return argument->second;
    return of_kind(PatternTerm::Kind::Variable, slot_of(name));
  }

  // Through a parameter, the label refers to the argument's variable.
  PatternTerm labelled(const std::string& name) {
    const auto argument = arguments_.find(name);
    const std::size_t slot = argument == arguments_.end() ? slot_of(name) : argument->second.slot;
    PatternTerm inner = primary();
    set_label(inner, slot);
    return inner;
  }

  static void set_label(PatternTerm& term, std::size_t slot) {
    term.label = slot;
    if (term.kind != PatternTerm::Kind::Choice) return;
    for (PatternTerm& option : term.args) set_label(option, slot);
  }

  PatternTerm call(const std::string& name) {
    const auto defined = definitions_.find(name);
    if (defined != definitions_.end()) return expanded(name, defined->second);
    PatternTerm term;
    term.kind = PatternTerm::Kind::Call;
    term.ops.push_back(&find_op(name));
    while (take("/")) term.ops.push_back(&find_op(word()));
    term.is_optional = take("?");
    term.is_chain = take("*");
    expect("(");
    if (!take(")")) {
      do operand(term);
      while (take(","));
      expect(")");
    }
    if (take("{") && !take("}")) {
      do attribute(term);
      while (take(","));
      expect("}");
    }
    return term;
  }

  void operand(PatternTerm& term) {
    const std::size_t begin = (peek(), at_);
    if (is_word_char(text_[at_]) && !is_at_number()) {
      const std::string name = word();
      if (take("=")) {
        const auto index = term.ops.front()->operand_index(name);
        if (!index) fail(concat(term.ops.front()->name, " has no operand '", name, "'"));
        while (term.args.size() < *index) term.args.push_back(of_kind(PatternTerm::Kind::Missing));
        term.args.push_back(choice());
        return;
      }
      at_ = begin;
    }
    const OpDef& op = *term.ops.front();
    const bool is_variadic = !op.operands.empty() && op.operands.back().is_variadic;
    if (!term.is_chain && !is_variadic && term.args.size() >= op.operands.size()) {
      fail(concat(op.name, " has no further operand"));
    }
    term.args.push_back(choice());
  }

  void attribute(PatternTerm& term) {
    if (take("..")) {
      term.has_other_attrs = true;
      if (is_word_char(peek())) term.other_attrs = slot_of(word());
      return;
    }
    AttrTerm attr;
    attr.name = word();
    const AttrDef* def = nullptr;
    for (const OpDef* op : term.ops) {
      def = op->find_attr(attr.name);
      if (!def) fail(concat(op->name, " has no attribute '", attr.name, "'"));
    }
    expect("=");
    attr.literal = attribute_literal(*def);
    if (!attr.literal) attr.slot = attribute_slot();
    term.attrs.push_back(std::move(attr));
  }

  std::size_t attribute_slot() {
    const std::string name = word();
    const auto argument = arguments_.find(name);
    return argument == arguments_.end() ? slot_of(name) : argument->second.slot;
  }

  std::optional<AttrValue> attribute_literal(const AttrDef& def) {
    if (take("[")) {
      Dims list;
      if (!take("]")) {
        do list.emplace_back(static_cast<std::int64_t>(number()));
        while (take(","));
        expect("]");
      }
      return list;
    }
    if (is_at_number()) {
      const double value = number();
      if (def.kind == AttrKind::Real) return value;
      return Dim(static_cast<std::int64_t>(value));
    }
    const std::size_t begin = (peek(), at_);
    const std::string text = word();
    if (text == "true" || text == "false") return text == "true";
    if (def.kind == AttrKind::Word &&
        std::find(def.words.begin(), def.words.end(), text) != def.words.end()) {
      return text;
    }
    if (def.kind == AttrKind::Element) {
      if (const auto dtype = parse_dtype(text)) return *dtype;
    }
    at_ = begin;
    return std::nullopt;
  }

  PatternTerm expanded(const std::string& name, const Definition& definition) {
    expect("(");
    Arguments given;
    for (std::size_t k = 0; k < definition.parameters.size(); ++k) {
      if (k) expect(",");
      given.emplace(definition.parameters[k], choice());
    }
    if (!take(")")) fail(concat(name, " takes ", definition.parameters.size(), " arguments"));
    return PatternParser(definition.body, definitions_, names_, given, depth_ + 1).whole();
  }

  std::string_view text_;
  const Definitions& definitions_;
  Names& names_;
  const Arguments& arguments_;
  int depth_;
  std::size_t at_ = 0;
};

bool is_symmetric(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
    case BinaryOp::Multiply:
    case BinaryOp::Minimum:
    case BinaryOp::Maximum:
    case BinaryOp::And:
    case BinaryOp::Or:
    case BinaryOp::Xor:
    case BinaryOp::Equal:
      return true;
    default:
      return false;
  }
}

// Tests the op's lowering on two small tensors.
bool is_symmetric(const OpDef& op) {
  if (op.operands.size() != 2 || op.results.size() != 1 || !op.lower) return false;
  // The expression does not depend on the element type, but not every op supports every type.
  for (const DType dtype : {DType::F32, DType::I32, DType::Bool}) {
    try {
      const TensorType type{dtype, {2}, {}};
      const std::vector<OperandFacts> facts(2, OperandFacts{type, nullptr, nullptr});
      const std::vector<Graph> no_bodies;
      const std::vector<bool> present(2, true);
      const Attributes attrs;
      const InferOutput results = op.infer(InferInput{attrs, facts, present, no_bodies, 1});
      if (!results.types.front().is_tensor()) return false;
      const Expr y = lower_op(op, attrs, {type, type}, results.types).front();
      const ExprNode& node = y.node();
      if (node.kind != ExprKind::Binary || !is_symmetric(node.binary)) return false;
      const auto is_operand = [&](std::size_t k) {
        const ExprNode& arg = node.args[k].node();
        return arg.kind == ExprKind::Operand && arg.operand == k;
      };
      return is_operand(0) && is_operand(1);
    } catch (const Error&) {
    }
  }
  return false;
}

}  // namespace

void add_definition(Definitions& definitions, std::string_view text) {
  const std::size_t open = text.find('('), close = text.find(')'), equals = text.find('=', close);
  TENON_ASSERT(open < close && close < equals && equals != std::string_view::npos,
               "a definition reads 'name(parameters) = pattern'");
  Definition definition;
  for (const std::string& parameter : split(text.substr(open + 1, close - open - 1), ',')) {
    definition.parameters.emplace_back(trim(parameter));
  }
  definition.body = trim(text.substr(equals + 1));
  definitions.emplace(trim(text.substr(0, open)), std::move(definition));
}

PatternTerm parse_term(std::string_view text, const Definitions& definitions, Names& names) {
  const PatternParser::Arguments none;
  return PatternParser(text, definitions, names, none, 0).whole();
}

bool commutes(const OpDef& op) {
  static const std::set<const OpDef*> symmetric = [] {
    std::set<const OpDef*> found;
    for (const OpDef* each : all_ops().all()) {
      if (is_symmetric(*each)) found.insert(each);
    }
    return found;
  }();
  return symmetric.contains(&op);
}

}  // namespace tenon::passes::rewrite
