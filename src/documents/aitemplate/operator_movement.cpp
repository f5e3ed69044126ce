#include "base/error.h"
#include "documents/aitemplate/operator_import.h"
#include "documents/native_node.h"
#include "ir/graph.h"
#include "ops/families/matrices.h"
#include "ops/families/movement.h"

#include <algorithm>
#include <functional>
#include <limits>

// Import of data movement, reductions and Tenon's native operators.
namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

std::vector<std::int64_t> order(std::initializer_list<std::int64_t> axes) { return axes; }

}  // namespace

// ---- movement ----

std::vector<Var> OperatorImport::reshape() {
  if (row_.op == "flatten") {
    // Axes may count from the end.
    const auto count = static_cast<std::int64_t>(rank(operand(0)));
    const auto normal = [&](std::int64_t at) { return at < 0 ? at + count : at; };
    const std::int64_t start = normal(integer("start")), end = normal(integer("end"));
    if (start < 0 || end >= count || start > end) throw Error("flatten: there are no such axes");
    const Dims& dims = build_.type(operand(0)).tensor().dims;
    Dims shape(dims.begin(), dims.begin() + start);
    shape.push_back(tenon::product(Dims(dims.begin() + start, dims.begin() + end + 1)));
    shape.insert(shape.end(), dims.begin() + end + 1, dims.end());
    return {call_with("reshape", {operand(0)}, {{"shape", shape}})};
  }
  return {call_with("reshape", {operand(0)}, {{"shape", dims_.dims(outputs_.at(0))}})};
}

std::vector<Var> OperatorImport::squeeze() {
  std::vector<Attr> attrs;
  if (const PythonValue* dim = row_.find("dim"); dim != nullptr && !dim->is(Kind::None)) {
    attrs.emplace_back("axes", per_axis("dim", dim->is(Kind::Integer) ? 1 : dim->items.size(), 0));
  }
  return {build_.call("squeeze", {operand(0)}, attrs)};
}

std::vector<Var> OperatorImport::unsqueeze() {
  return {
      build_.call("unsqueeze", {operand(0)}, {{"axes", std::vector<std::int64_t>{axis("dim")}}})};
}

std::vector<Var> OperatorImport::permute() {
  std::vector<std::int64_t> perm;
  if (row_.op == "permute") {
    perm = integers("dims");
  } else if (row_.op == "permute021") {
    if (rank(operand(0)) < 2) throw Error("permute021: there are no two axes to swap");
    return {with_last_axes_swapped(build_, operand(0))};
  } else {
    perm = row_.op == "permute102"   ? order({1, 0, 2})
           : row_.op == "permute210" ? order({2, 1, 0})
                                     : order({0, 2, 1, 3});
  }
  return {build_.call("transpose", {operand(0)}, {{"perm", perm}})};
}

std::vector<Var> OperatorImport::concatenate() {
  std::vector<Var> parts;
  for (std::size_t k = 0; k < operands_.size(); ++k) parts.push_back(operand(k));
  return {build_.call("concat", parts, {{"axis", axis("concat_dim")}})};
}

std::vector<Var> OperatorImport::split() {
  const std::vector<std::int64_t> sizes = integers("split_sizes");
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > kMaxExtent) throw Error("split: a part has no such size").got(size);
  }
  const std::int64_t along = axis("split_dim");
  if (row_.outputs.size() == sizes.size()) {
    std::vector<Attr> attrs = {{"axis", along}};
    const bool are_equal =
        std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
    if (!are_equal) attrs.emplace_back("sizes", sizes);
    return build_.call_all("split", {operand(0)}, attrs, std::vector<std::string>(sizes.size()));
  }
  // Outputs that other operators read in place are not created.
  const PythonValue& masks = attribute("output_masks");
  std::vector<Var> parts;
  std::int64_t start = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const bool is_made =
        k < masks.items.size() && masks.items[k].is(Kind::Bool) && masks.items[k].integer != 0;
    const std::vector<std::int64_t> from{start}, to{start + sizes[k]}, axes{along};
    if (is_made)
      parts.push_back(
          build_.call("slice", {operand(0)}, {{"starts", from}, {"ends", to}, {"axes", axes}}));
    start += sizes[k];
  }
  return parts;
}

std::vector<Var> OperatorImport::slice() {
  const std::int64_t whole = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int64_t> starts, ends, axes;
  const std::vector<std::int64_t> all_starts = integers("start_indices"),
                                  all_ends = integers("end_indices");
  if (all_starts.size() != rank(operand(0)) || all_ends.size() != all_starts.size()) {
    throw Error("dynamic_slice: there is no index for each axis");
  }
  for (std::size_t k = 0; k < all_starts.size(); ++k) {
    if (all_starts[k] == 0 && all_ends[k] == whole) continue;
    starts.push_back(all_starts[k]);
    ends.push_back(all_ends[k]);
    axes.push_back(static_cast<std::int64_t>(k));
  }
  if (axes.empty()) return identity();
  return {build_.call("slice", {operand(0)}, {{"starts", starts}, {"ends", ends}, {"axes", axes}})};
}

std::vector<Var> OperatorImport::identity() { return {build_.call("identity", {operand(0)})}; }

std::vector<Var> OperatorImport::pad_channels() {
  const Var x = operand(0);
  if (rank(x) == 0) throw Error(concat(row_.op, ": a number has no channels"));
  const std::optional<std::int64_t> channels = build_.type(x).tensor().dims.back().value();
  const std::int64_t wanted = row_.op == "nhwc3to4" ? 4 : 8;
  if (!channels || *channels > wanted)
    throw Error(concat(row_.op, ": there are too many channels"));
  return {
      build_.call("pad", {x},
                  {{"pads", std::vector<std::int64_t>{0, wanted - *channels}},
                   {"axes", std::vector<std::int64_t>{static_cast<std::int64_t>(rank(x)) - 1}}})};
}

std::vector<Var> OperatorImport::full() {
  const PythonValue& dtype = attribute("dtype");
  const auto known = dtype.is(Kind::Text) ? dtype_of(dtype.text) : std::nullopt;
  if (!known) throw UnsupportedOperator{"an element type that is not known"};
  return {splat(real("fill_value", 0), dims_.dims(outputs_.at(0)), *known)};
}

// ---- reductions ----

std::vector<Var> OperatorImport::softmax() {
  return {build_.call("softmax", {operand(0)}, {{"axis", axis("dim")}})};
}

std::vector<Var> OperatorImport::layer_norm() {
  const Var x = operand(0);
  const TensorType type = build_.type(x).tensor();
  const PythonValue& normalized = attribute("normalized_shape");
  const std::size_t count = normalized.items.size();
  if (!normalized.is(Kind::List) || count == 0 || count > type.rank()) {
    throw Error("layernorm: 'normalized_shape' does not fit the operand").got(type);
  }
  const Dims dims(type.dims.end() - static_cast<std::ptrdiff_t>(count), type.dims.end());
  const auto is_number = [&](std::string_view name) {
    const PythonValue* found = row_.find(name);
    return found != nullptr && found->is(Kind::Text);
  };
  std::size_t used = 1;
  const Var scale = is_number("gamma_constant") ? splat(1, dims, type.dtype) : operand(used++);
  std::vector<Var> operands = {x, scale};
  if (!is_number("beta_constant") && used < operands_.size()) operands.push_back(operand(used));
  std::vector<Attr> attrs = {{"epsilon", real("eps", 1e-5)}};
  if (count != 1) attrs.emplace_back("axis", static_cast<std::int64_t>(type.rank() - count));
  return {build_.call("layer_norm", operands, attrs)};
}

std::vector<Var> OperatorImport::group_norm() {
  const Var x = operand(0);
  const TensorType type = build_.type(x).tensor();
  if (type.rank() == 0) throw Error(concat(row_.op, ": a number has no channels"));
  const Dims channels{type.dims.back()};
  const Var scale = operands_.size() > 1 ? operand(1) : splat(1, channels, type.dtype);
  const Var shift = operands_.size() > 2 ? operand(2) : splat(0, channels, type.dtype);
  const std::vector<Attr> attrs = {{"groups", integer("num_groups")},
                                   {"axis", static_cast<std::int64_t>(type.rank()) - 1},
                                   {"epsilon", real("eps", 1e-5)}};
  const Var y = build_.call("group_norm", {x, scale, shift}, attrs);
  return {row_.op == "groupnorm" ? y : build_.call("swish", {y})};
}

std::vector<Var> OperatorImport::reduce() {
  Var x = operand(0);
  if (const PythonValue* type = row_.find("output_type"); type != nullptr && type->is(Kind::Text)) {
    const auto dtype = dtype_of(type->text);
    if (!dtype) throw UnsupportedOperator{"an element type that is not known"};
    if (*dtype != build_.type(x).tensor().dtype)
      x = build_.call("cast", {x}, {{"to", to_string(*dtype)}});
  }
  std::vector<Attr> attrs = {{"axes", integers("reduction_axes")}};
  if (!flag("keepdim")) attrs.emplace_back("keep_axes", false);
  return {build_.call(row_.op, {x}, attrs)};
}

// Mean squared deviation, divided by n or n - 1.
std::vector<Var> OperatorImport::variance() {
  const Var x = operand(0);
  const std::vector<std::int64_t> axes = integers("reduction_axes");
  const Var centred = x - build_.call("reduce_mean", {x}, {{"axes", axes}});
  std::vector<Attr> attrs = {{"axes", axes}};
  if (!flag("keepdim")) attrs.emplace_back("keep_axes", false);
  Var mean = build_.call("reduce_mean", {centred * centred}, attrs);
  if (row_.find("unbiased") == nullptr || !flag("unbiased")) return {mean};
  double count = 1;
  for (const std::int64_t axis : axes) {
    const std::int64_t extent = build_.shape(x).at(
        static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank(x)) : axis));
    if (extent < 2) throw UnsupportedOperator{"an unbiased variance over an axis that varies"};
    count *= static_cast<double>(extent);
  }
  return {mean * (count / (count - 1))};
}

// Gathers rows within each batch item.
std::vector<Var> OperatorImport::batch_gather() {
  const Var x = operand(0), indices = operand(1);
  const auto batch = static_cast<std::int64_t>(rank(indices)) - 1;
  if (batch < 0) throw Error("batch_gather: the indices are a single number");
  const Var lists = build_.call("unsqueeze", {indices}, {{"axes", std::vector<std::int64_t>{-1}}});
  return {build_.call("gather_nd", {x, lists}, {{"batch_dims", batch}})};
}

// FlashAttention over packed queries, keys and values with concatenated sequences. Supports equal
// sequence lengths only; the bounds in the second operand could state other lengths.
std::vector<Var> OperatorImport::flash_attention() {
  using Integers = std::vector<std::int64_t>;
  const Var packed = operand(0);
  const Integers shape = build_.shape(packed);
  const std::int64_t batch = integer("batch_size"), length = integer("max_seq_len");
  if (shape.size() != 4 || shape[1] != 3 || shape[0] != batch * length)
    throw UnsupportedOperator{"sequences of several lengths"};
  const std::int64_t heads = shape[2], width = shape[3];
  const Var apart = build_.call(
      "transpose",
      {build_.call("reshape", {packed}, {{"shape", Integers{batch, length, 3, heads, width}}})},
      {{"perm", Integers{2, 0, 3, 1, 4}}});
  std::vector<Var> parts;
  for (std::int64_t k = 0; k < 3; ++k) {
    const Var part =
        build_.call("slice", {apart},
                    {{"starts", Integers{k}}, {"ends", Integers{k + 1}}, {"axes", Integers{0}}});
    parts.push_back(build_.call("squeeze", {part}, {{"axes", Integers{0}}}));
  }
  std::vector<Attr> attrs;
  if (row_.find("causal") != nullptr && flag("causal")) attrs.emplace_back("causal", true);
  const Var mixed = build_.call("attention", parts, attrs);
  const Var together = build_.call("transpose", {mixed}, {{"perm", Integers{0, 2, 1, 3}}});
  return {build_.call("reshape", {together}, {{"shape", Integers{batch * length, heads, width}}})};
}

// ---- Tenon's native operators ----

std::vector<Var> OperatorImport::tenon_op() {
  const PythonValue& record = attribute(kOwnKey);
  if (!record.is(Kind::Text)) throw Error(concat(row_.op, ": '", kOwnKey, "' is no text"));
  std::vector<Var> inputs;
  for (const Operand& each : operands_) inputs.push_back(each.value);
  return build_native(parse_native(record.text), build_, inputs);
}

}  // namespace tenon::documents::aitemplate
