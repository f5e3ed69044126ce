#include "documents/relay/plain_calls.h"

#include "base/error.h"
#include "documents/relay/types.h"
#include "ops/definition/registry.h"

namespace tenon::documents::relay {
namespace {

using Use = PlainCall::Use;

// Binary operators require equal operand types.
std::span<const PlainCall> elementwise_calls() {
  static const std::vector<PlainCall> rows = {
      {"exp", "exp"},
      {"log", "log"},
      {"sqrt", "sqrt"},
      {"sin", "sin"},
      {"cos", "cos"},
      {"tan", "tan"},
      {"sinh", "sinh"},
      {"cosh", "cosh"},
      {"asin", "asin"},
      {"acos", "acos"},
      {"atan", "atan"},
      {"asinh", "asinh"},
      {"acosh", "acosh"},
      {"atanh", "atanh"},
      {"abs", "abs"},
      {"negative", "neg"},
      {"ceil", "ceil"},
      {"floor", "floor"},
      {"round", "round"},
      {"trunc", "trunc"},
      {"sign", "sign"},
      {"sigmoid", "sigmoid"},
      {"tanh", "tanh"},
      {"erf", "erf"},
      {"logical_not", "logical_not"},
      {"bitwise_not", "bit_not"},
      {"isnan", "is_nan"},
      {"copy", "identity"},
      {"nn.relu", "relu"},
      {"annotation.stop_fusion", "stop_fusion"},
      {"add", "add"},
      {"subtract", "sub"},
      {"multiply", "mul"},
      {"divide", "div"},
      {"maximum", "maximum"},
      {"minimum", "minimum"},
      {"equal", "equal"},
      {"less", "less"},
      {"less_equal", "less_equal"},
      {"greater", "greater"},
      {"greater_equal", "greater_equal"},
      {"logical_and", "logical_and"},
      {"logical_or", "logical_or"},
      {"logical_xor", "logical_xor"},
      {"bitwise_and", "bit_and"},
      {"bitwise_or", "bit_or"},
      {"bitwise_xor", "bit_xor"},
      {"left_shift", "shift_left"},
      {"right_shift", "shift_right"},
      // Synonyms, and operators that equal Tenon's only for some attributes.
      {"fast_exp", "exp", {}, Use::Read},
      {"fast_tanh", "tanh", {}, Use::Read},
      {"fast_erf", "erf", {}, Use::Read},
      {"isinf", "is_inf", {}, Use::Read},
      {"annotation.checkpoint", "identity", {}, Use::Read},
      {"annotation.compiler_begin", "identity", {}, Use::Read},
      {"annotation.compiler_end", "identity", {}, Use::Read},
      {"annotation.bitpack_start", "identity", {}, Use::Read},
      {"annotation.bitpack_end", "identity", {}, Use::Read},
      {"on_device", "identity", {}, Use::Read},
      {"device_copy", "identity", {}, Use::Read},
      {"trunc_divide", "div", {}, Use::Read},
      {"power", "pow", {}, Use::Read},
      {"floor_mod", "mod", {}, Use::Read},
  };
  return rows;
}

std::span<const PlainCall> other_calls() {
  static const std::vector<PlainCall> rows = {
      {"annotation.cast_hint", "cast_hint", {"dtype"}},
      {"cast", "cast", {{"to", "dtype"}}},
      {"fixed_point_multiply", "fixed_point_multiply", {"multiplier", "shift"}, Use::Written},
      {"gather", "gather_elements", {"axis"}},
      {"nn.group_norm", "group_norm", {{"groups", "num_groups"}, "axis", "epsilon"}, Use::Written},
      {"nn.instance_norm", "instance_norm", {"axis", "epsilon"}, Use::Written},
      {"nn.leaky_relu", "leaky_relu", {"alpha"}},
      {"nn.log_softmax", "log_softmax", {"axis"}},
      {"nn.softmax", "softmax", {"axis"}},
      {"nn.fast_softmax", "softmax", {"axis"}, Use::Read},
      {"reverse_sequence",
       "reverse_sequence",
       {{"time_axis", "seq_axis"}, "batch_axis"},
       Use::Written},
      {"take", "gather", {"axis"}, Use::Written},
      {"where", "where", {}, Use::Written},
  };
  return rows;
}

AttrKind kind_of(const PlainCall& row, const PlainArgument& attr) {
  return find_op(row.tenon).find_attr(attr.tenon)->kind;
}

Attr read_attr(const CallImport& call, const PlainArgument& attr, AttrKind kind) {
  std::string name(attr.tenon);
  if (kind == AttrKind::Integer) return {std::move(name), call.integer(attr.relay)};
  if (kind == AttrKind::Real) return {std::move(name), call.real(attr.relay)};
  const std::optional<DType> dtype = call.dtype(attr.relay);
  if (!dtype) throw call.error("the element type is missing");
  return {std::move(name), to_string(*dtype)};
}

ExprBuilder::Named written_attr(const ExportNode& node, const PlainArgument& attr, AttrKind kind) {
  std::string name(attr.relay);
  if (kind == AttrKind::Integer) return {std::move(name), node.integer(attr.tenon)};
  if (kind == AttrKind::Real) return {std::move(name), node.real(attr.tenon)};
  const DType dtype = node.dtype(attr.tenon).value_or(DType::F32);
  if (dtype_name(dtype).empty())
    throw node.unsupported(concat("elements of type ", to_string(dtype)));
  return {std::move(name), dtype_name(dtype)};
}

}  // namespace

std::vector<Var> alike_arguments(const CallImport& call) {
  const std::vector<Var> arguments{call.value(0), call.value(1)};
  const DType a = call.type(arguments[0]).dtype, b = call.type(arguments[1]).dtype;
  if (a == b) return arguments;
  throw call.error("the arguments differ in element type").got(to_string(a), " and ", to_string(b));
}

void add_plain_handlers(Handlers& handlers) {
  for (const PlainCall& row : elementwise_calls()) {
    handlers[row.relay] = [&row](const CallImport& call) -> ImportedValue {
      const bool is_binary = call.argument_count() == 2;
      return call.call(row.tenon, is_binary ? alike_arguments(call) : std::vector{call.value(0)});
    };
  }
  for (const PlainCall& row : other_calls()) {
    if (row.use == Use::Written) continue;
    handlers[row.relay] = [&row](const CallImport& call) -> ImportedValue {
      std::vector<Var> arguments;
      for (std::size_t k = 0; k < call.argument_count(); ++k) arguments.push_back(call.value(k));
      std::vector<Attr> attrs;
      for (const PlainArgument& attr : row.attrs)
        attrs.push_back(read_attr(call, attr, kind_of(row, attr)));
      return call.call(row.tenon, arguments, attrs);
    };
  }
}

void add_plain_exports(ExportRules& rules) {
  for (const std::span<const PlainCall> calls : {elementwise_calls(), other_calls()}) {
    for (const PlainCall& row : calls) {
      if (row.use == Use::Read) continue;
      rules[row.tenon].rule = [&row](const ExportNode& node) -> std::vector<ExprId> {
        std::vector<ExprBuilder::Named> attrs;
        for (const PlainArgument& attr : row.attrs)
          attrs.push_back(written_attr(node, attr, kind_of(row, attr)));
        return {node.build().call(row.relay, node.operands(), attrs)};
      };
    }
  }
}

}  // namespace tenon::documents::relay
