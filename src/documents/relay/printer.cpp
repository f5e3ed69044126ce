#include "documents/relay/printer.h"

#include "base/text.h"
#include "documents/relay/metadata.h"
#include "documents/relay/op_table.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::documents::relay {
namespace {

std::string indented(const std::string& lines) {
  std::string text = "  ";
  for (const char c : lines) {
    text += c;
    if (c == '\n') text += "  ";
  }
  return text;
}

bool is_alphabetic(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class RelayPrinter {
 public:
  RelayPrinter(const RelayModule& module, CommentStyle style)
      : module_(module), style_(style), states_(module.exprs.size()), docs_(module.block_count) {}

  std::string run() {
    count_uses();
    std::string text;
    if (module_.version.starts_with("v")) {
      text += module_.version + "\n";
    } else if (!module_.version.empty()) {
      text += concat("#[version = ", quote(module_.version), "]\n");
    }
    bool is_first = true;
    for (const GlobalFunction& function : module_.functions) {
      if (!is_first) text += "\n";
      is_first = false;
      std::string head = function.name.empty() ? "fn " : "def @" + function.name;
      if (!function.id_comment.empty()) head += concat(" /* id=", function.id_comment, " */");
      text += print_function(std::move(head), module_.at(function.function)) + "\n";
    }
    if (module_.metadata)
      text += "\n#[metadata]\n" + print_metadata(*module_.metadata, original_indices()) + "\n";
    return text;
  }

  Numbering numbering() && { return std::move(numbering_); }

 private:
  struct State {
    std::uint32_t uses = 0;
    bool is_visited = false;
    std::string text;  // text of its line until the first use; afterwards its name
    bool is_named = false;
  };
  State& state(ExprId id) { return states_[id.index()]; }

  // Counts uses from the functions; unreachable lines are not printed.
  void count_uses() {
    std::vector<bool> is_seen(module_.exprs.size());
    std::vector<ExprId> open;
    const auto use = [&](ExprId id) {
      ++state(id).uses;
      if (is_seen[id.index()]) return;
      is_seen[id.index()] = true;
      open.push_back(id);
    };
    for (const GlobalFunction& function : module_.functions) use(function.function);
    while (!open.empty()) {
      const ExprId id = open.back();
      open.pop_back();
      for (const ExprId part : module_.at(id).parts) use(part);
    }
  }

  std::string print_function(std::string head, const RelayExpr& function) {
    if (!function.type_parameters.empty()) {
      head += "[" + join(function.type_parameters, ", ") + "]";
    }
    std::vector<std::string> parameters;
    for (const ExprId parameter : function.parameters) parameters.push_back(declare(parameter));
    for (const RelayAttribute& attribute : function.attributes) {
      parameters.push_back(attribute.name + "=" + attribute_text(attribute.value));
    }
    head += "(" + join(parameters, ", ") + ") ";
    if (function.annotation) head += "-> " + to_string(*function.annotation) + " ";
    return head + braced(function.blocks.front(), function.parts.front());
  }

  std::string braced(BlockId block, ExprId body) {
    return "{\n" + indented(print_block(block, body)) + "\n}";
  }

  // Names a variable; returns the text that declares it.
  std::string declare(ExprId id) {
    const RelayExpr& variable = module_.at(id);
    std::string name = "%";
    if (variable.name.empty() || !is_alphabetic(variable.name.front())) name += "v";
    name = unique_name(name + variable.name);
    state(id).text = name;
    state(id).is_named = true;
    state(id).is_visited = true;
    if (!variable.device.empty()) name += " " + variable.device;
    if (variable.annotation) {
      name += ": " + to_string(*variable.annotation);
    } else if (variable.type) {
      name += ": " + to_string(*variable.type);
    }
    return name + comment(id);
  }

  std::string unique_name(const std::string& base) {
    std::string name = base;
    if (const auto known = taken_names_.find(base); known != taken_names_.end()) {
      do {
        name = base + std::to_string(++known->second);
      } while (taken_names_.contains(name));
    }
    taken_names_[name] = 0;
    return name;
  }

  std::string print_block(BlockId block, ExprId body) {
    const RelayExpr* expr = &module_.at(body);
    while (expr->kind == RelayExpr::Kind::Let && expr->blocks.empty()) {
      print_let(block, *expr);
      body = expr->parts[2];
      expr = &module_.at(body);
    }
    visit(body);
    const std::string last = inlined(body, block);
    return docs_[block.index()] + last;
  }

  void print_let(BlockId block, const RelayExpr& let) {
    visit(let.parts[1]);
    const std::string variable = declare(let.parts[0]);
    const std::string value = inlined(let.parts[1], block);
    docs_[block.index()] += concat("let ", variable, " = ", value, ";\n");
  }

  void visit(ExprId root) {
    visit_upwards(
        module_, root, [&](ExprId id) { return state(id).is_visited; },
        [&](ExprId id) {
          state(id).text = render(id);
          state(id).is_visited = true;
        });
  }

  std::string render(ExprId id) {
    const RelayExpr& expr = module_.at(id);
    switch (expr.kind) {
      case RelayExpr::Kind::Variable:
        return "";  // free variable; see `reference`
      case RelayExpr::Kind::Constant:
        numbering_.constants.push_back(id);
        return concat("meta[relay.Constant][", numbering_.constants.size() - 1, "]");
      case RelayExpr::Kind::Scalar:
        return to_string(expr.literal);
      case RelayExpr::Kind::Operator:
        return expr.name;
      case RelayExpr::Kind::Global:
        return "@" + expr.name;
      case RelayExpr::Kind::Call:
        return render_call(expr);
      case RelayExpr::Kind::Tuple: {
        std::string text = "(";
        for (std::size_t k = 0; k < expr.parts.size(); ++k)
          text += (k > 0 ? ", " : "") + reference(expr.parts[k]);
        return text + (expr.parts.size() == 1 ? ",)" : ")");
      }
      case RelayExpr::Kind::Projection:
        return concat(reference(expr.parts[0]), ".", expr.index);
      case RelayExpr::Kind::Function:
        return print_function("fn ", expr);
      case RelayExpr::Kind::If: {
        const std::string head = "if (" + reference(expr.parts[0]) + ") ";
        const std::string then = braced(expr.blocks[0], expr.parts[1]);
        return head + then + " else " + braced(expr.blocks[1], expr.parts[2]);
      }
      case RelayExpr::Kind::Let:
        return render_bracketed_let(expr);
    }
    return "";
  }

  std::string render_bracketed_let(const RelayExpr& let) {
    const std::string variable = declare(let.parts[0]);
    const std::string first =
        concat("let ", variable, " = ", inlined(let.parts[1], let.block), ";\n");
    BlockId block = let.blocks.empty() ? let.block : let.blocks.front();
    return "(\n" + indented(first + print_block(block, let.parts[2])) + "\n)";
  }

  std::string render_call(const RelayExpr& call) {
    std::vector<std::string> arguments;
    for (std::size_t k = 1; k < call.parts.size(); ++k)
      arguments.push_back(reference(call.parts[k]));
    const RelayExpr& callee = module_.at(call.parts[0]);
    for (const RelayAttribute& attribute : printed_attributes(call, callee)) {
      arguments.push_back(attribute.name + "=" + attribute_text(attribute.value));
    }
    std::string text = reference(call.parts[0]) + "(" + join(arguments, ", ") + ")";
    if (style_ == CommentStyle::Document && !call.span.is_empty())
      text += concat(" /* ", call.span.name, " */");
    return text;
  }

  // Returns attributes that differ from their defaults, in declaration order.
  static std::vector<RelayAttribute> printed_attributes(const RelayExpr& call,
                                                        const RelayExpr& callee) {
    const OperatorDef* def =
        callee.kind == RelayExpr::Kind::Operator ? find_operator(callee.name) : nullptr;
    if (def == nullptr) return call.attributes;
    std::vector<RelayAttribute> printed;
    for (const AttributeDef& declared : def->attributes) {
      for (const RelayAttribute& attribute : call.attributes) {
        if (attribute.name != declared.name) continue;
        const bool is_default = declared.default_value && attribute_text(*declared.default_value) ==
                                                              attribute_text(attribute.value);
        if (!is_default) printed.push_back(attribute);
      }
    }
    return printed;
  }

  // Returns the text by which other nodes refer to this one. At the first use, prints the node's
  // line.
  std::string reference(ExprId id) {
    const RelayExpr& expr = module_.at(id);
    State& known = state(id);
    if (!has_line(expr.kind) && expr.kind != RelayExpr::Kind::Variable)
      return known.text + comment(id);
    if (!known.is_named) {
      if (expr.kind == RelayExpr::Kind::Variable) {
        const std::string declaration = declare(id);
        docs_[expr.block.index()] += "free_var " + declaration + ";\n";
      } else {
        const std::string name = concat("%", numbering_.lines.size());
        numbering_.lines.push_back(id);
        docs_[expr.block.index()] += concat(name, " = ", known.text, comment(id), ";\n");
        known.text = name;
        known.is_named = true;
      }
    }
    return state(id).text;
  }

  // Returns the node's expression if it has a single use in this block, else its reference.
  std::string inlined(ExprId id, BlockId block) {
    const RelayExpr& expr = module_.at(id);
    const bool may_stand_here =
        has_line(expr.kind) && expr.block == block && state(id).uses <= 1 && !state(id).is_named;
    return may_stand_here ? state(id).text + comment(id) : reference(id);
  }

  std::string comment(ExprId id) const {
    const RelayExpr& expr = module_.at(id);
    if (expr.kind == RelayExpr::Kind::Operator || expr.kind == RelayExpr::Kind::Global) return "";
    if (style_ == CommentStyle::Document) {
      const bool has_comment = expr.kind == RelayExpr::Kind::Constant ||
                               expr.kind == RelayExpr::Kind::Scalar ||
                               expr.kind == RelayExpr::Kind::Call;
      return has_comment && expr.type ? concat(" /* ty=", to_string(*expr.type), " */") : "";
    }
    std::string text;
    if (const std::optional<RelayType> type = type_of(expr)) text += " ty=" + to_string(*type);
    if (!expr.span.is_empty()) {
      text += concat(" span=", expr.span.name, ":", expr.span.line, ":", expr.span.column);
    }
    return text.empty() ? "" : concat(" /*", text, " */");
  }

  // Returns the stated type, or the type inferred from direct operands.
  std::optional<RelayType> type_of(const RelayExpr& expr) const {
    if (expr.type) return expr.type;
    if (expr.kind == RelayExpr::Kind::Variable) return expr.annotation;
    if (expr.kind == RelayExpr::Kind::Projection) {
      const RelayExpr& tuple = module_.at(expr.parts[0]);
      const std::optional<RelayType>& type =
          tuple.kind == RelayExpr::Kind::Variable ? tuple.annotation : tuple.type;
      if (!type || type->kind != RelayType::Kind::Tuple) return std::nullopt;
      const auto field = static_cast<std::size_t>(expr.index);
      return field < type->parts.size() ? std::optional<RelayType>(type->parts[field])
                                        : std::nullopt;
    }
    if (expr.kind != RelayExpr::Kind::Tuple) return std::nullopt;
    std::vector<RelayType> parts;
    for (const ExprId part : expr.parts) {
      const RelayExpr& field = module_.at(part);
      const bool is_direct = field.type || field.kind == RelayExpr::Kind::Variable ||
                             field.kind == RelayExpr::Kind::Projection;
      const std::optional<RelayType> type = is_direct ? type_of(field) : std::nullopt;
      if (!type) return std::nullopt;
      parts.push_back(*type);
    }
    return RelayType::tuple(std::move(parts));
  }

  // Metadata entry of each printed constant.
  std::vector<std::int64_t> original_indices() const {
    std::vector<std::int64_t> indices;
    for (const ExprId id : numbering_.constants) indices.push_back(module_.at(id).index);
    return indices;
  }

  const RelayModule& module_;
  const CommentStyle style_;
  std::vector<State> states_;
  std::vector<std::string> docs_;
  Numbering numbering_;
  std::unordered_map<std::string, int> taken_names_;
};

}  // namespace

std::string print_module(const RelayModule& module, CommentStyle style, Numbering* numbering) {
  RelayPrinter printer(module, style);
  std::string text = printer.run();
  if (numbering != nullptr) *numbering = std::move(printer).numbering();
  return text;
}

}  // namespace tenon::documents::relay
