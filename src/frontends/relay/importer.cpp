#include "frontends/relay/importer.h"

#include "base/error.h"
#include "base/text.h"
#include "base/text_place.h"
#include "frontends/relay/composite.h"
#include "frontends/relay/import_call.h"
#include "frontends/relay/metadata.h"
#include "frontends/relay/op_table.h"
#include "frontends/relay/region.h"
#include "frontends/relay/token_cursor.h"
#include "frontends/relay/types.h"
#include "frontends/seeded_weight.h"
#include "ops/registry.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

namespace tenon::relay {

/// The expressions of one call of a function (or one branch) and what they turned out to mean.
struct Frame {
  Frame* parent = nullptr;  ///< of what lies around it in the text
  Region* region = nullptr;
  std::unordered_map<ExprId, Meaning> meanings;
};

namespace {

// Functions that call functions twice each may stand for more nodes than any memory holds.
constexpr std::size_t kMostNodes = 1000000;
constexpr double kScaleDeviation = 0.1;

const Handlers& handlers() {
  static const Handlers all = [] {
    Handlers list;
    add_contraction_handlers(list);
    add_elementwise_handlers(list);
    add_normalization_handlers(list);
    add_pooling_handlers(list);
    add_reduction_handlers(list);
    add_selection_handlers(list);
    add_shape_handlers(list);
    return list;
  }();
  return all;
}

class Importer {
 public:
  Importer(const Module& module, std::string_view text, std::string_view source, Findings* findings)
      : module_(module), text_(text), source_(source), findings_(findings) {
    for (const Binding& binding : module.bindings)
      numbers_.try_emplace(binding.expr, binding.number);
  }

  Graph import(const GlobalFunction& entry) {
    const Expr& function = module_.at(entry.function);
    Builder builder("main");
    if (!module_.version.empty())
      builder.graph().metadata[std::string(kVersionKey)] = module_.version;
    if (!entry.id_comment.empty()) builder.graph().metadata[std::string(kIdKey)] = entry.id_comment;
    if (!entry.name.empty() && entry.name != "main")
      builder.graph().metadata[std::string(kFunctionKey)] = entry.name;
    Region region(builder);
    Frame& frame = new_frame(nullptr, region);
    for (const ExprId parameter : function.parameters) {
      const Expr& variable = module_.at(parameter);
      if (!variable.annotation)
        throw at(variable.position, Error(concat("the type of %", variable.name, " is not said")));
      frame.meanings[parameter] =
          add_inputs(builder, variable, *variable.annotation, variable.name);
    }
    active_.push_back(entry.name);
    const Meaning result = import_block(function.parts[0], frame);
    claim_result(function, result, frame);
    add_outputs(builder, function, result);
    throw_unsupported();
    builder.graph().erase_dead();  // literals that a handler had another word for
    return builder.take();
  }

 private:
  Error at(std::size_t position, Error error) const {
    error.at(text_place(source_, text_, position));
    return error;
  }

  Frame& new_frame(Frame* parent, Region& region) {
    frames_.push_back({parent, &region, {}});
    return frames_.back();
  }

  Meaning add_inputs(Builder& builder, const Expr& variable, const RelayType& type,
                     const std::string& name) {
    if (type.kind == RelayType::Kind::Tensor) {
      return builder.input(builder.graph().free_name(name), Type(to_tensor_type(type, name)));
    }
    if (type.kind != RelayType::Kind::Tuple) {
      throw at(variable.position,
               Error(concat("%", variable.name, " is no tensor"), ErrorKind::Unsupported));
    }
    std::vector<Meaning> fields;
    for (std::size_t k = 0; k < type.parts.size(); ++k) {
      fields.push_back(add_inputs(builder, variable, type.parts[k], concat(name, ".", k)));
    }
    return Meaning::tuple(std::move(fields));
  }

  // `?` is a symbol of its own at each place.
  TensorType to_tensor_type(const RelayType& type, const std::string& name) {
    TensorType tensor;
    tensor.dtype = to_dtype(type.dtype).value_or(DType::F32);
    for (std::size_t k = 0; k < type.dims.size(); ++k) {
      const std::int64_t extent = type.dims[k];
      tensor.dims.push_back(extent == RelayType::kAnyExtent ? Dim::symbol(concat(name, "_", k))
                                                            : Dim(extent));
    }
    return tensor;
  }

  void add_outputs(Builder& builder, const Expr& function, const Meaning& result) {
    std::vector<Var> values;
    flatten(result, function.position, values);
    if (values.empty()) throw at(function.position, Error("the function gives no tensor"));
    for (Var value : values) {
      // A graph's input that is also its output, or a value given twice, needs a node of its own.
      builder.output(value);
    }
  }

  void flatten(const Meaning& meaning, std::size_t position, std::vector<Var>& values) const {
    if (meaning.kind == Meaning::Kind::Function) {
      throw at(position,
               Error("a function is given where a tensor is needed", ErrorKind::Unsupported));
    }
    if (meaning.kind == Meaning::Kind::Value) values.push_back(meaning.value);
    for (const Meaning& field : meaning.fields) flatten(field, position, values);
  }

  Meaning import_block(ExprId body, Frame& frame) {
    const Expr* expr = &module_.at(body);
    while (expr->kind == Expr::Kind::Let && expr->blocks.empty()) {
      import_expr(expr->parts[1], frame);
      bind_let(*expr, frame);
      body = expr->parts[2];
      expr = &module_.at(body);
    }
    import_expr(body, frame);
    return meaning(body, frame);
  }

  void bind_let(const Expr& let, Frame& frame) {
    Meaning value = meaning(let.parts[1], frame);
    const Expr& variable = module_.at(let.parts[0]);
    if (variable.annotation)
      claim_type("type annotation", variable.position, *variable.annotation, value, frame);
    if (variable.type)
      claim_type("type comment", variable.type_position, *variable.type, value, frame);
    frame.meanings[let.parts[0]] = std::move(value);
  }

  const Meaning* find(ExprId id, const Frame& frame) const {
    for (const Frame* at = &frame; at != nullptr; at = at->parent) {
      const auto found = at->meanings.find(id);
      if (found != at->meanings.end()) return &found->second;
    }
    return nullptr;
  }

  // What an expression means here: values from outside a branch come in through its inputs.
  Meaning meaning(ExprId id, Frame& frame) {
    const Expr& expr = module_.at(id);
    if (expr.kind == Expr::Kind::Constant) return constant(id, frame, {});
    const Meaning* found = find(id, frame);
    if (found == nullptr) throw at(expr.position, Error("an expression has no meaning here"));
    return localized(*found, frame);
  }

  Meaning localized(const Meaning& meaning, Frame& frame) {
    Meaning local = meaning;
    if (local.kind == Meaning::Kind::Value) local.value = frame.region->local(local.value);
    for (Meaning& field : local.fields) field = localized(field, frame);
    return local;
  }

  static bool is_leaf(Expr::Kind kind) {
    return kind == Expr::Kind::Constant || kind == Expr::Kind::Operator ||
           kind == Expr::Kind::Global;
  }

  // Everything below a node, left to right, and then the node; no deeper than the text nests.
  void import_expr(ExprId root, Frame& frame) {
    struct Entry {
      ExprId id;
      bool is_open;
    };
    std::vector<Entry> stack{{root, false}};
    while (!stack.empty()) {
      Entry& top = stack.back();
      const ExprId id = top.id;
      const Expr& expr = module_.at(id);
      if (is_leaf(expr.kind) || find(id, frame) != nullptr) {
        stack.pop_back();
      } else if (top.is_open) {
        stack.pop_back();
        if (++node_count_ > kMostNodes)
          throw at(expr.position,
                   Error("the program grows too large when its functions are inlined",
                         ErrorKind::Unsupported));
        Meaning made = import_node(id, expr, frame);
        claim_expr(expr, made, frame);
        frame.meanings[id] = std::move(made);
      } else {
        top.is_open = true;
        push_children(expr, [&](ExprId child) { stack.push_back({child, false}); });
      }
    }
  }

  template <class Push>
  static void push_children(const Expr& expr, const Push& push) {
    for (auto id = expr.captures.rbegin(); id != expr.captures.rend(); ++id) push(*id);
    switch (expr.kind) {
      case Expr::Kind::Call:
      case Expr::Kind::Tuple:
      case Expr::Kind::Projection:
        for (auto part = expr.parts.rbegin(); part != expr.parts.rend(); ++part) push(*part);
        break;
      case Expr::Kind::If:
        push(expr.parts[0]);
        break;
      case Expr::Kind::Let:
        push(expr.parts[1]);
        break;
      default:
        break;
    }
  }

  Meaning import_node(ExprId id, const Expr& expr, Frame& frame) {
    switch (expr.kind) {
      case Expr::Kind::Variable:
        throw at(expr.position,
                 Error(concat("%", expr.name, " is a free variable"), ErrorKind::Unsupported));
      case Expr::Kind::Scalar:
        return scalar(expr, frame);
      case Expr::Kind::Tuple: {
        std::vector<Meaning> fields;
        for (const ExprId part : expr.parts) fields.push_back(meaning(part, frame));
        return Meaning::tuple(std::move(fields));
      }
      case Expr::Kind::Projection: {
        const Meaning tuple = meaning(expr.parts[0], frame);
        const auto field = static_cast<std::size_t>(expr.index);
        if (tuple.kind != Meaning::Kind::Tuple || field >= tuple.fields.size()) {
          throw at(expr.position, Error("there is no such field"))
              .expected(tuple.kind == Meaning::Kind::Tuple
                            ? concat("one of ", tuple.fields.size(), " fields")
                            : "a tuple")
              .got(".", expr.index);
        }
        return tuple.fields[field];
      }
      case Expr::Kind::Function: {
        Meaning function;
        function.kind = Meaning::Kind::Function;
        function.function = id;
        function.frame = &frame;
        return function;
      }
      case Expr::Kind::If:
        return import_if(expr, frame);
      case Expr::Kind::Let:
        bind_let(expr, frame);
        return import_block(expr.parts[2], frame);
      case Expr::Kind::Call:
        return import_call(id, expr, frame);
      default:
        break;
    }
    return {};
  }

  Meaning scalar(const Expr& expr, Frame& frame) {
    Tensor tensor;
    if (const auto* flag = std::get_if<bool>(&expr.literal.value)) {
      tensor = Tensor::scalar(DType::Bool, *flag ? 1 : 0);
    } else if (const auto* integer = std::get_if<IntegerLiteral>(&expr.literal.value)) {
      tensor = Tensor(to_dtype(integer->dtype).value_or(DType::I32), {});
      tensor.set_integer(0, integer->value);
    } else {
      const auto& real = std::get<RealLiteral>(expr.literal.value);
      tensor = Tensor::scalar(to_dtype(real.dtype).value_or(DType::F32), real.value);
    }
    return frame.region->builder().constant(Constant(tensor));
  }

  // A constant lives in the graph that reads it; its numbers follow from its index alone.
  Var constant(ExprId id, Frame& frame, const WeightRole& role) {
    if (const Var known = frame.region->find_constant(id); known.is_valid()) return known;
    const Expr& expr = module_.at(id);
    Builder& builder = frame.region->builder();
    const std::string name = concat("constant", expr.index);
    const Var made =
        builder.constant(constant_value(expr, name, role), builder.graph().free_name(name));
    frame.region->add_constant(id, made);
    claim_expr(expr, made, frame);
    return made;
  }

  Constant constant_value(const Expr& expr, const std::string& name, const WeightRole& role) const {
    try {
      if (module_.metadata) {
        if (std::optional<Constant> stored = metadata_constant(*module_.metadata, expr.index))
          return *stored;
      }
      if (!expr.type || expr.type->kind != RelayType::Kind::Tensor) {
        throw Error(concat("nothing says what constant ", expr.index, " is"))
            .expected("a comment with its type, or a metadata section");
      }
      const Shape shape = expr.type->dims;
      if (std::find(shape.begin(), shape.end(), RelayType::kAnyExtent) != shape.end()) {
        throw Error(concat("constant ", expr.index, " has an extent that is not known"));
      }
      checked_element_count(shape);
      const DType dtype = to_dtype(expr.type->dtype).value_or(DType::F32);
      if (is_float(dtype) && role.kind == WeightRole::Kind::Scale) {
        return Constant::normal(dtype, shape, seed_of(name), 1, kScaleDeviation);
      }
      if (is_float(dtype) && role.kind == WeightRole::Kind::Variance) {
        return Constant::uniform(dtype, shape, seed_of(name), 0.5, 1.5);
      }
      return seeded_weight(dtype, shape, name,
                           role.kind == WeightRole::Kind::Products ? role.fan_in : 0);
    } catch (Error& error) {
      throw at(expr.position, error);
    }
  }

  // The seed that seeded_weight takes for the same name.
  static std::uint64_t seed_of(const std::string& name) {
    return seeded_weight(DType::F32, {1}, name, 0).seed();
  }

  Meaning import_call(ExprId id, const Expr& call, Frame& frame) {
    const Expr& callee = module_.at(call.parts[0]);
    if (callee.kind == Expr::Kind::Operator) return import_operator(id, call, callee, frame);
    std::vector<Meaning> arguments;
    for (std::size_t k = 1; k < call.parts.size(); ++k)
      arguments.push_back(meaning(call.parts[k], frame));
    if (callee.kind == Expr::Kind::Global) {
      for (const GlobalFunction& function : module_.functions) {
        if (function.name != callee.name) continue;
        if (std::find(active_.begin(), active_.end(), function.name) != active_.end()) {
          throw at(call.position,
                   Error(concat("@", function.name, " calls itself, which a graph cannot"),
                         ErrorKind::Unsupported));
        }
        active_.push_back(function.name);
        Meaning result = call_function(call, module_.at(function.function), std::move(arguments),
                                       nullptr, frame);
        active_.pop_back();
        return result;
      }
    }
    const Meaning function = meaning(call.parts[0], frame);
    if (function.kind != Meaning::Kind::Function)
      throw at(call.position, Error("what is called here is no function"));
    return call_function(call, module_.at(function.function), std::move(arguments), function.frame,
                         frame);
  }

  Meaning call_function(const Expr& call, const Expr& function, std::vector<Meaning> arguments,
                        Frame* around, Frame& frame) {
    if (arguments.size() != function.parameters.size()) {
      throw at(call.position, Error("a function is called with another number of arguments"))
          .expected(function.parameters.size())
          .got(arguments.size());
    }
    if (++depth_ > kMaxDepth)
      throw at(call.position,
               Error(concat("calls nest more than ", kMaxDepth, " deep"), ErrorKind::Unsupported));
    Frame& inside = new_frame(around, *frame.region);
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const Expr& parameter = module_.at(function.parameters[k]);
      if (parameter.annotation)
        claim_type("type annotation", parameter.position, *parameter.annotation, arguments[k],
                   frame);
      inside.meanings[function.parameters[k]] = arguments[k];
    }
    Meaning result = import_composite(call, function, arguments, inside);
    --depth_;
    claim_result(function, result, frame);
    return result;
  }

  // A function that stands for one of Tenon's operators becomes that again.
  Meaning import_composite(const Expr& call, const Expr& function,
                           const std::vector<Meaning>& arguments, Frame& inside) {
    Builder& builder = inside.region->builder();
    if (const std::optional<Composite> composite = composite_of(function)) {
      std::vector<Var> values;
      for (const Meaning& argument : arguments) flatten(argument, call.position, values);
      try {
        builder.set_node_name(call.span.name);
        const std::vector<Var> results = build_composite(builder, *composite, values);
        builder.set_node_name("");
        if (results.size() == 1) return results.front();
        return Meaning::tuple({results.begin(), results.end()});
      } catch (Error& error) {
        throw at(call.position, error);
      }
    }
    return import_block(function.parts[0], inside);
  }

  Meaning import_operator(ExprId id, const Expr& call, const Expr& callee, Frame& frame) {
    const auto handler = handlers().find(callee.name);
    Builder& builder = frame.region->builder();
    if (handler == handlers().end()) {
      ++unsupported_[callee.name];
      if (call.type) {
        if (const std::optional<Meaning> blank = stand_in(*call.type, builder)) return *blank;
      }
      throw_unsupported();
    }
    std::vector<Meaning> arguments;
    for (std::size_t k = 1; k < call.parts.size(); ++k) {
      const bool is_constant = module_.at(call.parts[k]).kind == Expr::Kind::Constant;
      arguments.push_back(is_constant ? Meaning() : meaning(call.parts[k], frame));
    }
    const CallImport import(
        module_, call, std::move(arguments), builder,
        [&](ExprId constant_id, const WeightRole& role) {
          return constant(constant_id, frame, role);
        },
        [&](std::string_view what, std::size_t position, const std::string& says,
            const std::string& should_be) { claim(what, position, says, should_be); });
    const NodeId before = builder.graph().last();
    try {
      builder.set_node_name(call.span.name);
      Meaning result = handler->second(import);
      builder.set_node_name("");
      name_result(id, call, before, result, builder);
      return result;
    } catch (Error& error) {
      builder.set_node_name("");
      return recover(call, error, builder);
    }
  }

  // Under `check` one call that does not fit is told, and the rest is looked at all the same.
  Meaning recover(const Expr& call, Error& error, Builder& builder) {
    if (error.kind() == ErrorKind::Unsupported && call.type) {
      if (const std::optional<Meaning> blank = stand_in(*call.type, builder)) {
        ++unsupported_[error.summary()];
        return *blank;
      }
    }
    if (findings_ == nullptr || !call.type) throw at(call.position, error);
    const std::optional<Meaning> blank = stand_in(*call.type, builder);
    if (!blank) throw at(call.position, error);
    findings_->miss("operator fits its arguments", text_place(source_, text_, call.position),
                    line_of(call.position), error.summary());
    return *blank;
  }

  std::string line_of(std::size_t position) const {
    const std::size_t end = std::min(text_.find('\n', position), text_.size());
    return std::string(text_.substr(position, std::min<std::size_t>(end - position, 120)));
  }

  // Zeros of a type, to go on with.
  std::optional<Meaning> stand_in(const RelayType& type, Builder& builder) {
    if (type.kind == RelayType::Kind::Tuple) {
      std::vector<Meaning> fields;
      for (const RelayType& part : type.parts) {
        std::optional<Meaning> field = stand_in(part, builder);
        if (!field) return std::nullopt;
        fields.push_back(std::move(*field));
      }
      return Meaning::tuple(std::move(fields));
    }
    const bool is_known =
        std::find(type.dims.begin(), type.dims.end(), RelayType::kAnyExtent) == type.dims.end();
    if (type.kind != RelayType::Kind::Tensor || !is_known) return std::nullopt;
    try {
      checked_element_count(type.dims);
      const DType dtype = to_dtype(type.dtype).value_or(DType::F32);
      return Meaning(builder.constant(Constant::splat(Tensor::scalar(dtype, 0), type.dims)));
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // The source's name, or the number of the line, for the value that a call gives.
  void name_result(ExprId id, const Expr& call, NodeId before, const Meaning& result,
                   Builder& builder) {
    if (result.kind != Meaning::Kind::Value || builder.graph().last() == before) return;
    const ValueId value(result.value.id());
    const NodeId producer = builder.graph().value(value).producer;
    if (!producer || producer != builder.graph().last()) return;
    std::string name = call.span.name;
    const auto number = numbers_.find(id);
    if (name.empty() && number != numbers_.end()) name = std::to_string(number->second);
    if (name.empty() || builder.graph().value(value).name == name) return;
    builder.graph().rename(value, builder.graph().free_name(name));
  }

  Meaning import_if(const Expr& expr, Frame& frame) {
    const Meaning condition = meaning(expr.parts[0], frame);
    if (condition.kind != Meaning::Kind::Value)
      throw at(expr.position, Error("a condition is no tensor"));
    if (++depth_ > kMaxDepth)
      throw at(expr.position, Error("conditions nest too deep", ErrorKind::Unsupported));
    Region& outside = *frame.region;
    Builder then_builder("then"), else_builder("else");
    Region then_region(then_builder, &outside), else_region(else_builder, &outside);
    const auto branch = [&](Region& region, ExprId body) {
      return import_block(body, new_frame(&frame, region));
    };
    const Meaning then_result = branch(then_region, expr.parts[1]);
    else_region.capture_all(then_region);
    const Meaning else_result = branch(else_region, expr.parts[2]);
    then_region.capture_all(else_region);
    const auto close = [&](Builder& builder, const Meaning& result) {
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
      return reshaped(then_result, results, next);
    } catch (Error& error) {
      throw at(expr.position, error);
    }
  }

  // The results in the tuples that the branches give.
  static Meaning reshaped(const Meaning& like, const std::vector<Var>& results, std::size_t& next) {
    if (like.kind == Meaning::Kind::Value) return results[next++];
    std::vector<Meaning> fields;
    for (const Meaning& field : like.fields) fields.push_back(reshaped(field, results, next));
    return Meaning::tuple(std::move(fields));
  }

  std::optional<RelayType> type_of(const Meaning& meaning, Frame& frame) const {
    if (meaning.kind == Meaning::Kind::Function) return std::nullopt;
    if (meaning.kind == Meaning::Kind::Value) {
      if (!meaning.value.is_valid()) return std::nullopt;
      const Type& type = meaning.value.builder().type(meaning.value);
      return type.is_tensor() ? std::optional<RelayType>(to_relay(type.tensor())) : std::nullopt;
    }
    RelayType tuple;
    tuple.kind = RelayType::Kind::Tuple;
    for (const Meaning& field : meaning.fields) {
      const std::optional<RelayType> part = type_of(field, frame);
      if (!part) return std::nullopt;
      tuple.parts.push_back(*part);
    }
    return tuple;
  }

  void claim_expr(const Expr& expr, const Meaning& made, Frame& frame) {
    if (expr.type) claim_type("type comment", expr.type_position, *expr.type, made, frame);
  }
  void claim_result(const Expr& function, const Meaning& result, Frame& frame) {
    if (function.annotation)
      claim_type("type annotation", function.position, *function.annotation, result, frame);
  }
  void claim_type(std::string_view what, std::size_t position, const RelayType& says,
                  const Meaning& made, Frame& frame) {
    if (findings_ == nullptr || says.kind == RelayType::Kind::Incomplete) return;
    if (const std::optional<RelayType> type = type_of(made, frame))
      claim(what, position, to_string(says), to_string(*type));
  }
  // Each place in the text claims once, however often a function is inlined.
  void claim(std::string_view what, std::size_t position, const std::string& says,
             const std::string& should_be) {
    if (findings_ == nullptr) {
      if (what != "type comment" && what != "type annotation" && says != should_be) {
        throw Error(concat("the ", what, " is not what follows from the arguments"))
            .expected(should_be)
            .got(says);
      }
      return;
    }
    if (says == should_be && !claimed_.insert(position).second) return;
    findings_->compare(
        what, [&] { return text_place(source_, text_, position); }, says, should_be);
  }

  void throw_unsupported() const {
    if (unsupported_.empty()) return;
    std::vector<std::string> list;
    for (const auto& [name, count] : unsupported_) list.push_back(concat(name, " (", count, ")"));
    throw Error("there are operators that Tenon does not read", ErrorKind::Unsupported)
        .at(source_)
        .got(join(list, ", "));
  }

  const Module& module_;
  std::string_view text_, source_;
  Findings* findings_;
  std::unordered_map<ExprId, std::int64_t> numbers_;
  std::deque<Frame> frames_;
  std::vector<std::string> active_;
  std::map<std::string, int> unsupported_;
  std::set<std::size_t> claimed_;
  std::size_t node_count_ = 0;
  int depth_ = 0;
};

}  // namespace

Graph import_module(const Module& module, std::string_view text, std::string_view source) {
  const GlobalFunction* entry = module.entry();
  if (entry == nullptr) {
    throw Error("there is no function to start with")
        .at(source)
        .expected("@main, or a single function");
  }
  return Importer(module, text, source, nullptr).import(*entry);
}

void check_types(const Module& module, std::string_view text, std::string_view source,
                 Findings& findings) {
  const GlobalFunction* entry = module.entry();
  if (entry == nullptr) return;
  Importer(module, text, source, &findings).import(*entry);
}

}  // namespace tenon::relay
