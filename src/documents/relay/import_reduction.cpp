#include "base/error.h"
#include "documents/relay/import_call.h"

#include <algorithm>

namespace tenon::documents::relay {
namespace {

// Returns the reduced axes; empty for all of them.
Integers reduced_axes(const CallImport& call, Var x) {
  if (!call.has("axis")) {
    if (call.flag("exclude")) throw call.error("'exclude' without axes leaves nothing to reduce");
    return {};
  }
  const auto rank = static_cast<std::int64_t>(call.type(x).rank());
  Integers axes = call.integers("axis");
  for (std::int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) throw call.error("there is no such axis").got(axis);
    if (call.flag("exclude") && axis < 0) axis += rank;
  }
  if (!call.flag("exclude")) return axes;
  Integers others;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) others.push_back(axis);
  }
  return others;
}

ImportedValue reduce(const CallImport& call, const char* op) {
  Var x = call.value(0);
  const bool is_truth = call.op() == "all" || call.op() == "any";
  const Integers axes = reduced_axes(call, x);
  // An empty list of axes is the identity in Relay, and all axes in the graph's op.
  const bool is_empty = axes.empty() && call.has("axis");
  if (is_empty) return x;
  if (is_truth) x = call.cast(x, DType::U8);
  std::vector<Attr> attrs = {{"keep_axes", call.flag("keepdims")}};
  if (!axes.empty()) attrs.emplace_back("axes", axes);
  const Var y = call.call(op, {x}, attrs);
  return is_truth ? call.cast(y, DType::Bool) : y;
}

// Over several axes or all, the result is the flat index over them.
ImportedValue arg_extreme(const CallImport& call) {
  Var x = call.value(0);
  const bool keeps = call.flag("keepdims");
  const Integers axes = reduced_axes(call, x);
  const bool is_all = axes.empty() && call.type(x).rank() != 1;
  if (axes.size() > 1) throw call.unsupported("several axes");
  const std::size_t rank = call.type(x).rank();
  if (is_all) x = call.call("reshape", {x}, {{"shape", Integers{-1}}});
  const Var position = call.call(call.op() == "argmax" ? "arg_max" : "arg_min", {x},
                                 {{"axis", axes.empty() ? std::int64_t{0} : axes.front()},
                                  {"keep_axes", keeps && !is_all},
                                  {"select_last", call.flag("select_last_index")}});
  const Var narrow = call.cast(position, DType::I32);
  if (!is_all || !keeps) return narrow;
  return call.call("reshape", {narrow}, {{"shape", Integers(rank, 1)}});
}

ImportedValue variance(const CallImport& call) {
  const Var x = call.value(0), mean = call.value(1);
  if (call.flag("unbiased")) throw call.unsupported("an unbiased variance");
  const Var centered = call.call("sub", {x, mean});
  std::vector<Attr> attrs = {{"keep_axes", call.flag("keepdims")}};
  if (const Integers axes = reduced_axes(call, x); !axes.empty()) attrs.emplace_back("axes", axes);
  return call.call("reduce_mean", {call.call("mul", {centered, centered})}, attrs);
}

ImportedValue cumulate(const CallImport& call) {
  Var x = call.value(0);
  if (const std::optional<DType> dtype = call.dtype("dtype")) x = call.cast(x, *dtype);
  const bool has_axis = call.has("axis");
  if (!has_axis) x = call.call("reshape", {x}, {{"shape", Integers{-1}}});
  return call.call(
      call.op(), {x},
      {{"axis", has_axis ? call.integer("axis") : 0}, {"exclusive", call.flag("exclusive")}});
}

ImportedValue top_k(const CallImport& call) {
  const Var x = call.value(0);
  const std::vector<Var> results =
      call.build().call_all("top_k", {x},
                            std::vector<Attr>{{"k", call.integer("k")},
                                              {"axis", call.integer("axis")},
                                              {"largest", !call.flag("is_ascend")}},
                            {"", ""});
  const std::string wanted = call.text("ret_type");
  const Var indices = call.cast(results[1], call.dtype("dtype").value_or(DType::I32));
  if (wanted == "values") return results[0];
  if (wanted == "indices") return indices;
  return ImportedValue::tuple({results[0], indices});
}

// Returns all elements of an axis in sorted order.
ImportedValue sort(const CallImport& call) {
  const Var x = call.value(0);
  const auto rank = static_cast<std::int64_t>(call.type(x).rank());
  std::int64_t axis = call.integer("axis");
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) throw call.error("there is no such axis").got(axis);
  const std::optional<std::int64_t> extent =
      call.type(x).dims[static_cast<std::size_t>(axis)].value();
  if (!extent) throw call.unsupported("an extent known at run time");
  const std::vector<Var> results = call.build().call_all(
      "top_k", {x},
      std::vector<Attr>{{"k", *extent}, {"axis", axis}, {"largest", !call.flag("is_ascend")}},
      {"", ""});
  if (call.op() == "sort") return results[0];
  return call.cast(results[1], call.dtype("dtype").value_or(DType::I32));
}

}  // namespace

void add_reduction_handlers(Handlers& handlers) {
  struct Pair {
    const char *relay, *tenon;
  };
  for (const Pair& pair : {Pair{"sum", "reduce_sum"},
                           {"mean", "reduce_mean"},
                           {"max", "reduce_max"},
                           {"min", "reduce_min"},
                           {"prod", "reduce_prod"},
                           {"all", "reduce_min"},
                           {"any", "reduce_max"},
                           {"logsumexp", "reduce_log_sum_exp"}}) {
    handlers[pair.relay] = [op = pair.tenon](const CallImport& call) { return reduce(call, op); };
  }
  handlers["argmax"] = arg_extreme;
  handlers["argmin"] = arg_extreme;
  handlers["variance"] = variance;
  handlers["cumsum"] = cumulate;
  handlers["cumprod"] = cumulate;
  handlers["topk"] = top_k;
  handlers["sort"] = sort;
  handlers["argsort"] = sort;
}

}  // namespace tenon::documents::relay
