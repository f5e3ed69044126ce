#include "base/error.h"
#include "documents/relay/import_call.h"
#include "documents/relay/plain_calls.h"

#include <cmath>
#include <limits>

namespace tenon::documents::relay {
namespace {

ImportedValue floor_divide(const CallImport& call) {
  const std::vector<Var> arguments = alike_arguments(call);
  const Var a = arguments[0], b = arguments[1];
  if (is_float(call.type(a).dtype)) return call.call("floor", {call.call("div", {a, b})});
  const Var rest = call.call("mod", {a, b});
  return call.call("div", {call.call("sub", {a, rest}), b});
}

ImportedValue logarithm(const CallImport& call, double base) {
  const Var x = call.value(0);
  return call.call("log", {x}) * (1 / std::log(base));
}

ImportedValue fixed_point_multiply(const CallImport& call) {
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

ImportedValue simulated_quantize(const CallImport& call) {
  const std::int64_t kind = call.integer("kind");
  if (kind < 0 || kind >= static_cast<std::int64_t>(std::size(kKinds)))
    throw call.error("no quantization is of this kind").expected("0 to 3").got(kind);
  if (!call.flag("sign") || call.text("rounding") != "round")
    throw call.unsupported("numbers without a sign, or rounding that is not to the nearest");
  return call.call("simulated_quantize",
                   {call.value(0), call.value(1), call.value(2), call.value(3)},
                   {{"kind", kKinds[kind]}});
}

ImportedValue prelu(const CallImport& call) {
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

ImportedValue clip(const CallImport& call) {
  const Var x = call.value(0);
  const double low = call.real("a_min"), high = call.real("a_max");
  return call.call("clip", {x, call.build().scalar(low, x), call.build().scalar(high, x)});
}

}  // namespace

void add_elementwise_handlers(Handlers& handlers) {
  handlers["not_equal"] = [](const CallImport& call) -> ImportedValue {
    return call.call("logical_not", {call.call("equal", alike_arguments(call))});
  };
  for (const char* op : {"mod", "trunc_mod"}) {
    handlers[op] = [](const CallImport& call) -> ImportedValue {
      return call.call("mod", alike_arguments(call), {{"sign", "dividend"}});
    };
  }
  handlers["floor_divide"] = floor_divide;
  handlers["rsqrt"] = [](const CallImport& call) -> ImportedValue {
    return call.call("reciprocal", {call.call("sqrt", {call.value(0)})});
  };
  handlers["log2"] = [](const CallImport& call) { return logarithm(call, 2); };
  handlers["log10"] = [](const CallImport& call) { return logarithm(call, 10); };
  handlers["isfinite"] = [](const CallImport& call) -> ImportedValue {
    const Var x = call.value(0);
    const Var is_special =
        call.call("logical_or", {call.call("is_nan", {x}), call.call("is_inf", {x})});
    return call.call("logical_not", {is_special});
  };
  handlers["cast_like"] = [](const CallImport& call) -> ImportedValue {
    return call.call("cast", {call.value(0)}, {{"to", to_string(call.type(call.value(1)).dtype)}});
  };
  handlers["reinterpret"] = [](const CallImport& call) -> ImportedValue {
    return call.call("bit_cast", {call.value(0)},
                     {{"to", to_string(call.dtype("dtype").value_or(DType::F32))}});
  };
  handlers["clip"] = clip;
  handlers["where"] = [](const CallImport& call) -> ImportedValue {
    return call.call("where",
                     {call.cast(call.value(0), DType::Bool), call.value(1), call.value(2)});
  };
  handlers["nn.prelu"] = prelu;
  handlers["fixed_point_multiply"] = fixed_point_multiply;
  handlers["relay.op.annotation.simulated_quantize"] = simulated_quantize;
}

}  // namespace tenon::documents::relay
