#include "documents/relay/importer.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/native_node.h"
#include "documents/relay/argument_types.h"
#include "documents/relay/claims.h"
#include "documents/relay/import_call.h"
#include "documents/relay/op_table.h"
#include "documents/relay/plain_calls.h"
#include "documents/relay/region.h"
#include "documents/relay/seeded_constant.h"
#include "documents/relay/token_cursor.h"
#include "documents/relay/types.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

namespace tenon::documents::relay {

/// Values of the expressions in one function call or branch.
struct Frame {
  /// frame of the enclosing block
  Frame* parent = nullptr;
  Region* region = nullptr;
  std::unordered_map<ExprId, ImportedValue> meanings;
};

namespace {

// Limits programs that expand exponentially, by functions that call functions twice or by nested
// tuples.
constexpr std::size_t kMostNodes = 20000, kMostNodesPerExpr = 50;
constexpr std::size_t kMostFields = 100000;
constexpr int kMostTupleDepth = 100;

const Handlers& handlers() {
  static const Handlers all = [] {
    Handlers list;
    add_contraction_handlers(list);
    add_plain_handlers(list);
    add_elementwise_handlers(list);
    add_loss_handlers(list);
    add_normalization_handlers(list);
    add_pooling_handlers(list);
    add_quantized_handlers(list);
    add_reduction_handlers(list);
    add_selection_handlers(list);
    add_shape_handlers(list);
    return list;
  }();
  return all;
}

// Inferred types of parameters without a stated type, from their operators.
using FoundTypes = std::map<ExprId, RelayType>;
// Thrown when a new type was inferred; the import restarts with it.
struct TypeFound {
  ExprId parameter;
  RelayType type;
};

class RelayImporter {
 public:
  RelayImporter(const RelayModule& module, std::string_view text, std::string_view source,
                Findings* findings, const FoundTypes& found_types)
      : module_(module),
        source_(source),
        claims_(text, source, findings),
        found_types_(found_types) {
    for (const LetBinding& binding : module.bindings)
      numbers_.try_emplace(binding.expr, binding.number);
    for (const GlobalFunction& function : module.functions)
      functions_[function.name] = function.function;
  }

  Graph import(const GlobalFunction& entry) {
    const RelayExpr& function = module_.at(entry.function);
    Builder builder("main");
    if (!module_.version.empty())
      builder.graph().metadata[std::string(kVersionKey)] = module_.version;
    if (!entry.id_comment.empty()) builder.graph().metadata[std::string(kIdKey)] = entry.id_comment;
    if (!entry.name.empty() && entry.name != "main")
      builder.graph().metadata[std::string(kFunctionKey)] = entry.name;
    Region region(builder);
    Frame& frame = new_frame(nullptr, region);
    if (const std::string* text = native_text(function))
      signature_ = parse_graph(*text, all_ops(), "signature");
    for (const ExprId parameter : function.parameters) {
      const RelayExpr& variable = module_.at(parameter);
      std::optional<RelayType> said = variable.annotation ? variable.annotation : variable.type;
      if (const auto found = found_types_.find(parameter); found != found_types_.end())
        said = found->second;
      if (!said || said->kind == RelayType::Kind::Incomplete) {
        untyped_.push_back(parameter);
        continue;
      }
      frame.meanings[parameter] = add_inputs(builder, variable, *said, variable.name);
      claims_.expr(variable, frame.meanings[parameter]);
    }
    active_.push_back(entry.name);
    const ImportedValue result = import_block(function.parts[0], frame);
    if (!untyped_.empty()) throw untyped(module_.at(untyped_.front()));  // unread
    claim_result(function, result);
    add_outputs(builder, function, result);
    throw_unsupported();
    builder.graph().erase_dead();  // literals that a handler replaced
    return builder.take();
  }

 private:
  Error at(std::size_t position, Error error) const {
    return claims_.at(position, std::move(error));
  }

  Error unsupported(std::size_t position, std::string what) const {
    return at(position, Error(std::move(what), ErrorKind::Unsupported));
  }
  Error untyped(const RelayExpr& variable) const {
    return unsupported(variable.position, concat("nothing says the type of %", variable.name))
        .hint("give it: %", variable.name, ": Tensor[(1, 3), float32]");
  }
  bool is_untyped(ExprId id) const { return std::ranges::find(untyped_, id) != untyped_.end(); }

  // Parameters without a type must be arguments of operators that determine it.
  void require_types(const RelayExpr& expr, Frame& frame) {
    if (untyped_.empty()) return;
    for (std::size_t k = 0; k < expr.parts.size(); ++k) {
      if (!is_untyped(expr.parts[k])) continue;
      const RelayExpr& variable = module_.at(expr.parts[k]);
      const bool is_call = expr.kind == RelayExpr::Kind::Call && k > 0 &&
                           module_.at(expr.parts[0]).kind == RelayExpr::Kind::Operator;
      if (!is_call || is_untyped(expr.parts[1])) throw untyped(variable);
      const CallImport import = call_import(expr, frame);
      if (const auto type = argument_type(import, k - 1)) throw TypeFound{expr.parts[k], *type};
      throw untyped(variable);
    }
  }

  void claim_result(const RelayExpr& function, const ImportedValue& result) {
    if (function.annotation)
      claims_.type("type annotation", function.position, *function.annotation, result);
  }

  void enter(const RelayExpr& expr) {
    if (++depth_ <= kMaxDepth) return;
    throw unsupported(expr.position,
                      concat("calls and bodies nest more than ", kMaxDepth, " deep"));
  }

  Frame& new_frame(Frame* parent, Region& region) {
    frames_.push_back({parent, &region, {}});
    return frames_.back();
  }

  ImportedValue add_inputs(Builder& builder, const RelayExpr& variable, const RelayType& type,
                           const std::string& name) {
    if (type.kind == RelayType::Kind::Tensor) {
      const std::size_t position = builder.graph().inputs().size();
      Type stated(from_relay(type, name));
      if (signature_ && position < signature_->inputs().size())
        stated = signature_->value(signature_->inputs()[position]).type;
      return builder.input(builder.graph().free_name(name), stated);
    }
    if (type.kind != RelayType::Kind::Tuple) {
      throw unsupported(variable.position, concat("%", variable.name, " is no tensor"));
    }
    std::vector<ImportedValue> fields;
    for (std::size_t k = 0; k < type.parts.size(); ++k) {
      fields.push_back(add_inputs(builder, variable, type.parts[k], concat(name, ".", k)));
    }
    return ImportedValue::tuple(std::move(fields));
  }

  void add_outputs(Builder& builder, const RelayExpr& function, const ImportedValue& result) {
    std::vector<Var> values;
    flatten(result, function.position, values);
    if (values.empty()) throw at(function.position, Error("the function gives no tensor"));
    for (Var value : values) {
      // An input that is also an output, and a duplicate output, need an identity node.
      builder.output(value);
    }
  }

  void flatten(const ImportedValue& meaning, std::size_t position, std::vector<Var>& values) const {
    if (meaning.kind == ImportedValue::Kind::Function) {
      throw unsupported(position, "a function is given where a tensor is needed");
    }
    if (meaning.kind == ImportedValue::Kind::Value) values.push_back(meaning.value);
    for (const ImportedValue& field : meaning.fields) flatten(field, position, values);
  }

  ImportedValue import_block(ExprId body, Frame& frame) {
    const RelayExpr* expr = &module_.at(body);
    while (expr->kind == RelayExpr::Kind::Let && expr->blocks.empty()) {
      import_expr(expr->parts[1], frame);
      bind_let(*expr, frame);
      body = expr->parts[2];
      expr = &module_.at(body);
    }
    import_expr(body, frame);
    return meaning(body, frame);
  }

  void bind_let(const RelayExpr& let, Frame& frame) {
    ImportedValue value = meaning(let.parts[1], frame);
    const RelayExpr& variable = module_.at(let.parts[0]);
    if (variable.annotation)
      claims_.type("type annotation", variable.position, *variable.annotation, value);
    if (variable.type) claims_.type("type comment", variable.type_position, *variable.type, value);
    frame.meanings[let.parts[0]] = std::move(value);
  }

  const ImportedValue* find(ExprId id, const Frame& frame) const {
    for (const Frame* at = &frame; at != nullptr; at = at->parent) {
      const auto found = at->meanings.find(id);
      if (found != at->meanings.end()) return &found->second;
    }
    return nullptr;
  }

  // Returns the value of an expression; outer values of a branch become its inputs.
  ImportedValue meaning(ExprId id, Frame& frame) {
    const RelayExpr& expr = module_.at(id);
    if (expr.kind == RelayExpr::Kind::Constant) return constant(id, frame, {});
    const ImportedValue* found = find(id, frame);
    if (found == nullptr && is_untyped(id)) throw untyped(expr);
    if (found == nullptr) throw at(expr.position, Error("an expression has no meaning here"));
    return localized(*found, frame);
  }

  ImportedValue localized(const ImportedValue& meaning, Frame& frame) {
    ImportedValue local = meaning;
    if (local.kind == ImportedValue::Kind::Value) local.value = frame.region->local(local.value);
    for (ImportedValue& field : local.fields) field = localized(field, frame);
    return local;
  }

  void import_expr(ExprId root, Frame& frame) {
    const auto is_done = [&](ExprId id) {
      const RelayExpr::Kind kind = module_.at(id).kind;
      return kind == RelayExpr::Kind::Constant || kind == RelayExpr::Kind::Operator ||
             kind == RelayExpr::Kind::Global || find(id, frame) != nullptr || is_untyped(id);
    };
    visit_upwards(module_, root, is_done, [&](ExprId id) {
      const RelayExpr& expr = module_.at(id);
      if (++node_count_ > kMostNodes + kMostNodesPerExpr * module_.exprs.size())
        throw unsupported(expr.position,
                          "the program grows too large when its functions are inlined");
      require_types(expr, frame);
      ImportedValue made = import_node(id, expr, frame);
      claims_.expr(expr, made);
      frame.meanings[id] = std::move(made);
    });
  }

  ImportedValue import_node(ExprId id, const RelayExpr& expr, Frame& frame) {
    switch (expr.kind) {
      case RelayExpr::Kind::Variable:
        throw unsupported(expr.position, concat("%", expr.name, " is a free variable"));
      case RelayExpr::Kind::Scalar:
        return frame.region->builder().constant(scalar_value(expr));
      case RelayExpr::Kind::Tuple: {
        std::vector<ImportedValue> fields;
        for (const ExprId part : expr.parts) {
          fields.push_back(meaning(part, frame));
          field_count_ += fields.back().size();
          if (field_count_ > kMostFields || fields.back().depth >= kMostTupleDepth) {
            throw unsupported(expr.position, "tuples in tuples grow too large");
          }
        }
        return ImportedValue::tuple(std::move(fields));
      }
      case RelayExpr::Kind::Projection: {
        const ImportedValue* tuple = find(expr.parts[0], frame);
        const auto field = static_cast<std::size_t>(expr.index);
        if (tuple == nullptr || tuple->kind != ImportedValue::Kind::Tuple ||
            field >= tuple->fields.size()) {
          const bool is_tuple = tuple != nullptr && tuple->kind == ImportedValue::Kind::Tuple;
          throw at(expr.position, Error("there is no such field"))
              .expected(is_tuple ? concat("one of ", tuple->fields.size(), " fields") : "a tuple")
              .got(".", expr.index);
        }
        return localized(tuple->fields[field], frame);
      }
      case RelayExpr::Kind::Function: {
        ImportedValue function;
        function.kind = ImportedValue::Kind::Function;
        function.function = id;
        function.frame = &frame;
        return function;
      }
      case RelayExpr::Kind::If:
        return import_if(expr, frame);
      case RelayExpr::Kind::Let: {
        bind_let(expr, frame);
        enter(expr);
        ImportedValue body = import_block(expr.parts[2], frame);
        --depth_;
        return body;
      }
      case RelayExpr::Kind::Call:
        return import_call(id, expr, frame);
      default:
        break;
    }
    return {};
  }

  // A constant is created in the graph that reads it; its seed depends on its index only.
  Var constant(ExprId id, Frame& frame, const WeightRole& role) {
    if (const Var known = frame.region->find_constant(id); known.is_valid()) return known;
    const RelayExpr& expr = module_.at(id);
    Builder& builder = frame.region->builder();
    Constant value;
    try {
      value = constant_value(module_, expr, role);
    } catch (const Error& error) {
      throw at(expr.position, error);
    }
    const Var made =
        builder.constant(value, builder.graph().free_name(concat("constant", expr.index)));
    frame.region->add_constant(id, made);
    claims_.expr(expr, made);
    return made;
  }

  std::vector<ImportedValue> arguments_of(const RelayExpr& call, Frame& frame) {
    std::vector<ImportedValue> arguments;
    for (std::size_t k = 1; k < call.parts.size(); ++k)
      arguments.push_back(meaning(call.parts[k], frame));
    return arguments;
  }

  ImportedValue import_call(ExprId id, const RelayExpr& call, Frame& frame) {
    const RelayExpr& callee = module_.at(call.parts[0]);
    if (callee.kind == RelayExpr::Kind::Operator) return import_operator(id, call, callee, frame);
    std::vector<ImportedValue> arguments = arguments_of(call, frame);
    if (callee.kind == RelayExpr::Kind::Global) {
      if (std::find(active_.begin(), active_.end(), callee.name) != active_.end()) {
        throw unsupported(call.position,
                          concat("@", callee.name, " calls itself, which a graph cannot"));
      }
      active_.push_back(callee.name);
      const RelayExpr& global = module_.at(functions_.at(callee.name));
      ImportedValue result = call_function(call, global, std::move(arguments), nullptr, frame);
      active_.pop_back();
      return result;
    }
    const ImportedValue function = meaning(call.parts[0], frame);
    if (function.kind != ImportedValue::Kind::Function)
      throw at(call.position, Error("what is called here is no function"));
    return call_function(call, module_.at(function.function), std::move(arguments), function.frame,
                         frame);
  }

  ImportedValue call_function(const RelayExpr& call, const RelayExpr& function,
                              std::vector<ImportedValue> arguments, Frame* around, Frame& frame) {
    if (arguments.size() != function.parameters.size()) {
      throw at(call.position, Error("a function is called with another number of arguments"))
          .expected(function.parameters.size())
          .got(arguments.size());
    }
    enter(call);
    Frame& inside = new_frame(around, *frame.region);
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const RelayExpr& parameter = module_.at(function.parameters[k]);
      if (parameter.annotation)
        claims_.type("type annotation", parameter.position, *parameter.annotation, arguments[k]);
      inside.meanings[function.parameters[k]] = arguments[k];
    }
    ImportedValue result = import_composite(call, function, arguments, inside);
    --depth_;
    claim_result(function, result);
    return result;
  }

  static const std::string* native_text(const RelayExpr& expr) {
    for (const RelayAttribute& attribute : expr.attributes) {
      if (attribute.name == kOwnAttribute) return std::get_if<std::string>(&attribute.value.value);
    }
    return nullptr;
  }

  // Imports a native Tenon operator from its record.
  ImportedValue import_native(const RelayExpr& call, const std::string& text,
                              const std::vector<ImportedValue>& arguments, Builder& builder) {
    std::vector<Var> values;
    for (const ImportedValue& argument : arguments) flatten(argument, call.position, values);
    try {
      builder.set_node_name(call.span.name);
      const std::vector<Var> results = build_native(parse_native(text), builder, values);
      builder.set_node_name("");
      if (results.size() == 1) return results.front();
      return ImportedValue::tuple({results.begin(), results.end()});
    } catch (const Error& error) {
      builder.set_node_name("");
      throw at(call.position, error);
    }
  }

  ImportedValue import_composite(const RelayExpr& call, const RelayExpr& function,
                                 const std::vector<ImportedValue>& arguments, Frame& inside) {
    const std::string* text = native_text(function);
    if (text == nullptr) return import_block(function.parts[0], inside);
    // Under `check`, imports the unused body as well, to verify that it is consistent.
    if (claims_.are_wanted()) claim_result(function, import_block(function.parts[0], inside));
    return import_native(call, *text, arguments, inside.region->builder());
  }

  ImportedValue import_operator(ExprId id, const RelayExpr& call, const RelayExpr& callee,
                                Frame& frame) {
    const auto handler = handlers().find(callee.name);
    Builder& builder = frame.region->builder();
    if (const std::string* text = native_text(call);
        text != nullptr && callee.name.starts_with(kOwnPrefix)) {
      return import_native(call, *text, arguments_of(call, frame), builder);
    }
    if (handler == handlers().end()) {
      ++unsupported_[callee.name];
      if (call.type) {
        if (const std::optional<ImportedValue> blank = blank_of(*call.type, builder)) return *blank;
      }
      throw_unsupported();
    }
    const CallImport import = call_import(call, frame);
    const NodeId before = builder.graph().last();
    try {
      builder.set_node_name(call.span.name);
      ImportedValue result = handler->second(import);
      builder.set_node_name("");
      name_result(id, call, before, result, builder);
      return result;
    } catch (Error& error) {
      builder.set_node_name("");
      return recover(call, error, builder);
    }
  }

  CallImport call_import(const RelayExpr& call, Frame& frame) {
    std::vector<ImportedValue> arguments;
    for (std::size_t k = 1; k < call.parts.size(); ++k) {
      const bool is_left_open =
          module_.at(call.parts[k]).kind == RelayExpr::Kind::Constant || is_untyped(call.parts[k]);
      arguments.push_back(is_left_open ? ImportedValue() : meaning(call.parts[k], frame));
    }
    return {module_,
            call,
            std::move(arguments),
            frame.region->builder(),
            [this, &frame](ExprId constant_id, const WeightRole& role) {
              return constant(constant_id, frame, role);
            },
            [this](std::string_view what, std::size_t position, const std::string& says,
                   const std::string& should_be) {
              claims_.attribute(what, position, says, should_be);
            }};
  }

  // Under `check`, reports an inconsistent call and continues with placeholders.
  ImportedValue recover(const RelayExpr& call, Error& error, Builder& builder) {
    const bool is_unsupported = error.kind() == ErrorKind::Unsupported;
    const auto blank = call.type ? blank_of(*call.type, builder) : std::nullopt;
    if (!blank || (!is_unsupported && !claims_.are_wanted())) throw at(call.position, error);
    if (is_unsupported) {
      ++unsupported_[error.summary()];
    } else {
      claims_.misfit(call, error);
    }
    return *blank;
  }

  // Names a call's value after the source's name, or the number of its line.
  void name_result(ExprId id, const RelayExpr& call, NodeId before, const ImportedValue& result,
                   Builder& builder) {
    if (result.kind != ImportedValue::Kind::Value || builder.graph().last() == before) return;
    const ValueId value(result.value.id());
    const NodeId producer = builder.graph().value(value).producer;
    if (!producer || producer != builder.graph().last()) return;
    std::string name = call.span.name;
    const auto number = numbers_.find(id);
    if (name.empty() && number != numbers_.end()) name = std::to_string(number->second);
    if (name.empty() || builder.graph().value(value).name == name) return;
    builder.graph().rename(value, builder.graph().free_name(name));
  }

  ImportedValue import_if(const RelayExpr& expr, Frame& frame) {
    const ImportedValue condition = meaning(expr.parts[0], frame);
    if (condition.kind != ImportedValue::Kind::Value)
      throw at(expr.position, Error("a condition is no tensor"));
    enter(expr);
    Region& outside = *frame.region;
    Builder then_builder("then"), else_builder("else");
    Region then_region(then_builder, &outside), else_region(else_builder, &outside);
    const auto branch = [&](Region& region, ExprId body) {
      return import_block(body, new_frame(&frame, region));
    };
    const ImportedValue then_result = branch(then_region, expr.parts[1]);
    else_region.capture_all(then_region);
    const ImportedValue else_result = branch(else_region, expr.parts[2]);
    then_region.capture_all(else_region);
    const auto close = [&](Builder& builder, const ImportedValue& result) {
      std::vector<Var> values;
      flatten(result, expr.position, values);
      for (Var value : values) builder.output(value);
      return values.size();
    };
    const std::size_t count = close(then_builder, then_result);
    if (close(else_builder, else_result) != count)
      throw at(expr.position, Error("the branches give different tuples"));
    std::vector<Var> operands{condition.value};
    for (const Var captured : then_region.captured()) operands.push_back(captured);
    --depth_;
    try {
      std::vector<Graph> bodies;
      bodies.push_back(then_builder.take());
      bodies.push_back(else_builder.take());
      const std::vector<Var> results =
          outside.builder().call_all("if", operands, std::vector<Attr>{},
                                     std::vector<std::string>(count, ""), std::move(bodies));
      std::size_t next = 0;
      return then_result.with_values(results, next);
    } catch (Error& error) {
      throw at(expr.position, error);
    }
  }

  void throw_unsupported() const {
    if (unsupported_.empty()) return;
    std::vector<std::string> list;
    for (const auto& [name, count] : unsupported_) list.push_back(concat(name, " (", count, ")"));
    throw Error("there are operators that Tenon does not read", ErrorKind::Unsupported)
        .at(source_)
        .got(join(list, ", "));
  }

  const RelayModule& module_;
  std::string_view source_;
  Claims claims_;
  std::unordered_map<std::string, ExprId> functions_;
  std::unordered_map<ExprId, std::int64_t> numbers_;
  const FoundTypes& found_types_;
  std::vector<ExprId> untyped_;  // parameters with types to infer
  std::deque<Frame> frames_;
  std::vector<std::string> active_;
  std::map<std::string, int> unsupported_;
  std::optional<Graph> signature_;  // types of the inputs, if the program states them
  std::size_t node_count_ = 0, field_count_ = 0;
  int depth_ = 0;
};

// Calls `use` with the inferred types until no more are found: once per untyped parameter.
template <class Use>
auto with_found_types(const Use& use) {
  FoundTypes found;
  for (;;) {
    try {
      return use(found);
    } catch (TypeFound& one) {
      found.insert_or_assign(one.parameter, std::move(one.type));
    }
  }
}

}  // namespace

Graph import_module(const RelayModule& module, std::string_view text, std::string_view source) {
  const GlobalFunction* entry = module.entry();
  if (entry == nullptr) {
    throw Error("there is no function to start with")
        .at(source)
        .expected("@main, or a single function");
  }
  return with_found_types([&](const FoundTypes& found) {
    return RelayImporter(module, text, source, nullptr, found).import(*entry);
  });
}

void check_types(const RelayModule& module, std::string_view text, std::string_view source,
                 Findings& findings) {
  const GlobalFunction* entry = module.entry();
  if (entry == nullptr) return;
  const Findings before = findings;
  with_found_types([&](const FoundTypes& found) {
    findings = before;  // discards findings of an aborted import, which the restart repeats
    RelayImporter(module, text, source, &findings, found).import(*entry);
  });
}

}  // namespace tenon::documents::relay
