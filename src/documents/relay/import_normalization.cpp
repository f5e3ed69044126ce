#include "base/error.h"
#include "documents/relay/import_call.h"

namespace tenon::documents::relay {
namespace {

const WeightRole kScale{WeightRole::Kind::Scale, 0};
const WeightRole kVariance{WeightRole::Kind::Variance, 0};

// An omitted scale or shift is all ones or zeros.
Var weight_or(const CallImport& call, const char* flag, std::size_t position,
              const WeightRole& role, double fill) {
  const Var weight = call.value(position, role);
  if (call.flag(flag)) return weight;
  const TensorType& type = call.type(weight);
  if (!all_constant(type.dims)) throw call.unsupported("a weight of an extent known at run time");
  return call.build().constant(
      Constant::splat(Tensor::scalar(type.dtype, fill), constants(type.dims)));
}

ImportedValue batch_norm(const CallImport& call) {
  const Var x = call.value(0);
  const Var scale = weight_or(call, "scale", 1, kScale, 1),
            shift = weight_or(call, "center", 2, {}, 0);
  const Var mean = call.value(3), variance = call.value(4, kVariance);
  const Var y = call.call("batch_norm", {x, scale, shift, mean, variance},
                          {{"axis", call.integer("axis")}, {"epsilon", call.real("epsilon")}});
  return ImportedValue::tuple({y, mean, variance});
}

ImportedValue layer_norm(const CallImport& call) {
  const Var x = call.value(0);
  const auto rank = static_cast<std::int64_t>(call.type(x).rank());
  const std::int64_t axis = call.integer("axis");
  if (axis != -1 && axis != rank - 1) throw call.unsupported("an axis that is not the last");
  const Var scale = weight_or(call, "scale", 1, kScale, 1),
            shift = weight_or(call, "center", 2, {}, 0);
  return call.call("layer_norm", {x, scale, shift},
                   {{"axis", axis}, {"epsilon", call.real("epsilon")}});
}

ImportedValue channel_norm(const CallImport& call) {
  const Var x = call.value(0);
  const Var scale = weight_or(call, "scale", 1, kScale, 1),
            shift = weight_or(call, "center", 2, {}, 0);
  std::vector<Attr> attrs = {{"axis", call.integer("axis")}, {"epsilon", call.real("epsilon")}};
  if (call.op() == "nn.instance_norm") return call.call("instance_norm", {x, scale, shift}, attrs);
  attrs.emplace_back("groups", call.integer("num_groups"));
  return call.call("group_norm", {x, scale, shift}, attrs);
}

ImportedValue l2_normalize(const CallImport& call) {
  const Var x = call.value(0);
  std::vector<Attr> attrs;
  if (call.has("axis")) attrs.emplace_back("axes", call.integers("axis"));
  const Var sum = call.call("reduce_sum_square", {x}, attrs);
  const Var least = call.build().scalar(call.real("eps"), x);
  return call.call("div", {x, call.call("sqrt", {call.call("maximum", {sum, least})})});
}

// Normalization over neighbouring channels: Relay states the channel axis, a graph infers it from
// the layout.
ImportedValue lrn(const CallImport& call) {
  Var x = call.value(0);
  const std::size_t rank = call.type(x).rank();
  std::int64_t axis = call.integer("axis");
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  if (rank != 4 || (axis != 1 && axis != 3))
    throw call.unsupported("channels along an axis other than 1 or 3 of 4");
  x = call.as_layout(x, axis == 1 ? "NCHW" : "NHWC", "NCHW");
  return call.call("lrn", {x},
                   {{"size", call.integer("size")},
                    {"alpha", call.real("alpha")},
                    {"beta", call.real("beta")},
                    {"bias", call.real("bias")}});
}

}  // namespace

void add_normalization_handlers(Handlers& handlers) {
  handlers["nn.batch_norm"] = batch_norm;
  handlers["nn.layer_norm"] = layer_norm;
  handlers["nn.instance_norm"] = channel_norm;
  handlers["nn.group_norm"] = channel_norm;
  handlers["nn.l2_normalize"] = l2_normalize;
  handlers["nn.lrn"] = lrn;
  handlers["nn.dropout"] = [](const CallImport& call) {
    const Var x = call.value(0);
    const std::vector<Var> results = call.build().call_all(
        "dropout", {x, call.build().scalar(call.real("rate"), x)}, std::vector<Attr>{}, {"", ""});
    return ImportedValue::tuple({results[0], call.cast(results[1], call.type(x).dtype)});
  };
}

}  // namespace tenon::documents::relay
