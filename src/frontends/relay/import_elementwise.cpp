#include "base/error.h"
#include "frontends/relay/elementwise_names.h"
#include "frontends/relay/import_call.h"

#include <cmath>
#include <limits>
#include <span>

namespace tenon::relay {
namespace {

// Relay's other words: synonyms, and those that Tenon's word does not always stand for.
constexpr OpName kOtherUnary[] = {
    {"fast_exp", "exp"},
    {"fast_tanh", "tanh"},
    {"fast_erf", "erf"},
    {"isinf", "is_inf"},
    {"annotation.checkpoint", "identity"},
    {"annotation.compiler_begin", "identity"},
    {"annotation.compiler_end", "identity"},
    {"annotation.bitpack_start", "identity"},
    {"annotation.bitpack_end", "identity"},
    {"on_device", "identity"},
    {"device_copy", "identity"},
};
constexpr OpName kOtherBinary[] = {
    {"trunc_divide", "div"},
    {"power", "pow"},
    {"floor_mod", "mod"},
};

// The arguments side by side; where one is a literal of another type it takes that of the other.
std::pair<Var, Var> operands_of(const CallImport& call) {
  Var a = call.value(0), b = call.value(1);
  const DType a_type = call.type(a).dtype, b_type = call.type(b).dtype;
  if (a_type != b_type) {
    throw call.error("the arguments differ in element type")
        .got(to_string(a_type), " and ", to_string(b_type));
  }
  return {a, b};
}

void add_unary(Handlers& handlers, std::span<const OpName> names) {
  for (const OpName& name : names) {
    handlers[name.relay] = [op = name.tenon](const CallImport& call) -> Meaning {
      return call.call(op, {call.value(0)});
    };
  }
}

void add_binary(Handlers& handlers, std::span<const OpName> names) {
  for (const OpName& name : names) {
    handlers[name.relay] = [op = name.tenon](const CallImport& call) -> Meaning {
      const auto [a, b] = operands_of(call);
      return call.call(op, {a, b});
    };
  }
}

Meaning floor_divide(const CallImport& call) {
  const auto [a, b] = operands_of(call);
  if (is_float(call.type(a).dtype)) return call.call("floor", {call.call("div", {a, b})});
  const Var rest = call.call("mod", {a, b});
  return call.call("div", {call.call("sub", {a, rest}), b});
}

Meaning logarithm(const CallImport& call, double base) {
  const Var x = call.value(0);
  return call.call("log", {x}) * (1 / std::log(base));
}

Meaning fixed_point_multiply(const CallImport& call) {
  const Var x = call.value(0);
  const DType dtype = call.type(x).dtype;
  if (!is_integer(dtype)) throw call.error("the argument is not of integers").got(to_string(dtype));
  const Attr multiplier{"multiplier", call.integer("multiplier")},
      shift{"shift", call.integer("shift")};
  const bool is_wide = dtype == DType::I32 || dtype == DType::I64;
  const Var wide = is_wide ? x : call.cast(x, DType::I64);
  return call.cast(call.call("fixed_point_multiply", {wide}, {multiplier, shift}), dtype);
}

// Relay's kinds by number.
constexpr const char* kKinds[] = {"identity", "input", "weight", "activation"};

Meaning simulated_quantize(const CallImport& call) {
  const std::int64_t kind = call.integer("kind");
  if (kind < 0 || kind >= static_cast<std::int64_t>(std::size(kKinds)))
    throw call.error("no quantization is of this kind").expected("0 to 3").got(kind);
  if (!call.flag("sign") || call.text("rounding") != "round")
    throw call.unsupported("numbers without a sign, or rounding that is not to the nearest");
  return call.call("simulated_quantize",
                   {call.value(0), call.value(1), call.value(2), call.value(3)},
                   {{"kind", kKinds[kind]}});
}

Meaning prelu(const CallImport& call) {
  const Var x = call.value(0), slope = call.value(1);
  const auto rank = static_cast<std::int64_t>(call.type(x).rank());
  std::int64_t axis = call.integer("axis");
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) throw call.error("there is no such axis").got(axis);
  Integers axes;
  for (std::int64_t k = 1; k < rank - axis; ++k) axes.push_back(k);
  const bool is_row = call.type(slope).rank() == 1 && !axes.empty();
  return call.call("prelu",
                   {x, is_row ? call.call("unsqueeze", {slope}, {{"axes", axes}}) : slope});
}

Meaning clip(const CallImport& call) {
  const Var x = call.value(0);
  const double low = call.real("a_min"), high = call.real("a_max");
  return call.call("clip", {x, call.build().scalar(low, x), call.build().scalar(high, x)});
}

}  // namespace

void add_elementwise_handlers(Handlers& handlers) {
  add_unary(handlers, kUnaryNames);
  add_unary(handlers, kOtherUnary);
  add_binary(handlers, kBinaryNames);
  add_binary(handlers, kOtherBinary);
  handlers["not_equal"] = [](const CallImport& call) -> Meaning {
    const auto [a, b] = operands_of(call);
    return call.call("logical_not", {call.call("equal", {a, b})});
  };
  for (const char* op : {"mod", "trunc_mod"}) {
    handlers[op] = [](const CallImport& call) -> Meaning {
      const auto [a, b] = operands_of(call);
      return call.call("mod", {a, b}, {{"sign", "dividend"}});
    };
  }
  handlers["floor_divide"] = floor_divide;
  handlers["rsqrt"] = [](const CallImport& call) -> Meaning {
    return call.call("reciprocal", {call.call("sqrt", {call.value(0)})});
  };
  handlers["log2"] = [](const CallImport& call) { return logarithm(call, 2); };
  handlers["log10"] = [](const CallImport& call) { return logarithm(call, 10); };
  handlers["isfinite"] = [](const CallImport& call) -> Meaning {
    const Var x = call.value(0);
    const Var is_special =
        call.call("logical_or", {call.call("is_nan", {x}), call.call("is_inf", {x})});
    return call.call("logical_not", {is_special});
  };
  handlers["annotation.cast_hint"] = [](const CallImport& call) -> Meaning {
    const std::optional<DType> dtype = call.dtype("dtype");
    if (!dtype) throw call.error("the element type is missing");
    return call.call("cast_hint", {call.value(0)}, {{"dtype", to_string(*dtype)}});
  };
  handlers["cast"] = [](const CallImport& call) -> Meaning {
    const std::optional<DType> dtype = call.dtype("dtype");
    if (!dtype) throw call.error("the element type is missing");
    return call.call("cast", {call.value(0)}, {{"to", to_string(*dtype)}});
  };
  handlers["cast_like"] = [](const CallImport& call) -> Meaning {
    return call.call("cast", {call.value(0)}, {{"to", to_string(call.type(call.value(1)).dtype)}});
  };
  handlers["reinterpret"] = [](const CallImport& call) -> Meaning {
    return call.call("bit_cast", {call.value(0)},
                     {{"to", to_string(call.dtype("dtype").value_or(DType::F32))}});
  };
  handlers["clip"] = clip;
  handlers["where"] = [](const CallImport& call) -> Meaning {
    return call.call("where",
                     {call.cast(call.value(0), DType::Bool), call.value(1), call.value(2)});
  };
  handlers["nn.leaky_relu"] = [](const CallImport& call) -> Meaning {
    return call.call("leaky_relu", {call.value(0)}, {{"alpha", call.real("alpha")}});
  };
  handlers["nn.prelu"] = prelu;
  handlers["fixed_point_multiply"] = fixed_point_multiply;
  handlers["relay.op.annotation.simulated_quantize"] = simulated_quantize;
}

}  // namespace tenon::relay
