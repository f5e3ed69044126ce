#include "base/error.h"
#include "documents/relay/import_call.h"
#include "documents/relay/window.h"
#include "ops/families/matrices.h"

namespace tenon::documents::relay {
namespace {

// Returns the extents as numbers; kAnyExtent for symbolic ones.
Integers known_extents(const Dims& dims) {
  Integers extents;
  for (const Dim& dim : dims) extents.push_back(dim.value().value_or(RelayType::kAnyExtent));
  return extents;
}

std::int64_t extent_along(const Integers& extents, const Layout& layout, char letter) {
  const auto axis = layout.axis(letter);
  if (!axis || *axis >= extents.size()) return RelayType::kAnyExtent;
  const std::int64_t extent = extents[*axis];
  return extent == RelayType::kAnyExtent ? extent : extent * layout.block(letter);
}

Integers spatial_extents(const Integers& extents, const Layout& layout) {
  Integers spatial;
  for (const char letter : {'D', 'H', 'W'}) {
    if (layout.axis(letter)) spatial.push_back(extent_along(extents, layout, letter));
  }
  return spatial;
}

std::int64_t product(const Integers& extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent <= 0 || count > (std::int64_t{1} << 40)) return 1;
    count *= extent;
  }
  return count;
}

struct ConvolutionText {
  std::size_t spatial = 0;
  std::string plain_data, plain_weight, data_layout;
  Layout weight_layout;
  std::vector<Attr> attrs;
};

// Reads the attributes that convolutions and transposed convolutions share.
ConvolutionText read_convolution(const CallImport& call) {
  ConvolutionText conv;
  conv.spatial = spatial_count(call.op());
  const std::string letters = spatial_letters(conv.spatial);
  conv.plain_data = "NC" + letters;
  conv.plain_weight = "OI" + letters;
  conv.data_layout = call.text("data_layout");
  conv.weight_layout = Layout(call.text("kernel_layout"));
  conv.attrs = {{"strides", along_each_axis(call, "strides", conv.spatial)},
                {"dilations", along_each_axis(call, "dilation", conv.spatial)},
                {"pads", pads_around(call, conv.spatial)},
                {"groups", call.integer("groups")}};
  const std::string out_layout = call.text("out_layout");
  if (!out_layout.empty() && out_layout != conv.data_layout)
    conv.attrs.emplace_back("out_layout", out_layout);
  return conv;
}

// Relay's depthwise weight is (channels, multiplier); a graph has one row per result channel.
Var flat_depthwise_weight(const CallImport& call, Var weight, ConvolutionText& conv) {
  const std::int64_t groups = call.integer("groups");
  const Dims dims = call.type(weight).dims;
  const Integers extents = known_extents(dims);
  const std::int64_t outputs = extent_along(extents, conv.weight_layout, 'O');
  const std::int64_t inputs = extent_along(extents, conv.weight_layout, 'I');
  const Integers data = known_extents(call.dims(0));
  const std::int64_t channels = extent_along(data, Layout(conv.data_layout), 'C');
  if (groups <= 1 || channels != groups || outputs != groups || inputs <= 1) return weight;
  Integers perm, shape{outputs * inputs, 1};
  for (const char letter : conv.plain_weight) {
    const auto axis = conv.weight_layout.axis(letter);
    if (!axis || conv.weight_layout.block(letter) != 1)
      throw call.unsupported("a blocked depthwise weight");
    perm.push_back(static_cast<std::int64_t>(*axis));
  }
  for (const std::int64_t extent : spatial_extents(extents, conv.weight_layout))
    shape.push_back(extent);
  conv.weight_layout = Layout(conv.plain_weight);
  const bool is_in_order = std::is_sorted(perm.begin(), perm.end());
  const Var ordered = is_in_order ? weight : call.call("transpose", {weight}, {{"perm", perm}});
  return call.call("reshape", {ordered}, {{"shape", shape}});
}

void claim_weight(const CallImport& call, const ConvolutionText& conv, const Integers& weight,
                  char result) {
  std::int64_t channels = extent_along(weight, conv.weight_layout, result);
  if (result == 'I' && channels > 0) channels *= call.integer("groups");
  call.claim("channels", to_attribute(channels));
  call.claim("kernel_size", to_attribute(spatial_extents(weight, conv.weight_layout)));
}

ImportedValue import_convolution(const CallImport& call) {
  ConvolutionText conv = read_convolution(call);
  const Integers stated = known_extents(call.dims(1));
  const std::int64_t outputs = extent_along(stated, conv.weight_layout, 'O');
  const WeightRole role{
      WeightRole::Kind::Products,
      std::max<std::int64_t>(1, product(stated) / std::max<std::int64_t>(1, outputs))};
  Var weight = flat_depthwise_weight(call, call.value(1, role), conv);
  claim_weight(call, conv, known_extents(call.type(weight).dims), 'O');
  const Var x = call.as_layout(call.value(0), conv.data_layout, conv.plain_data);
  weight = call.as_layout(weight, conv.weight_layout.text(), conv.plain_weight);
  if (const std::optional<DType> out = call.dtype("out_dtype"); out && *out != call.type(x).dtype) {
    conv.attrs.emplace_back("out_dtype", to_string(*out));
  }
  return call.call("conv", {x, weight}, conv.attrs);
}

// A transposed convolution has the weight of the convolution that it inverts: O counts the channels
// of the argument. Later versions name those I, but only in the order IOHW.
ImportedValue import_transposed(const CallImport& call) {
  ConvolutionText conv = read_convolution(call);
  if (conv.weight_layout.text() == "IO" + spatial_letters(conv.spatial))
    conv.weight_layout = Layout(conv.plain_weight);
  const Integers output_padding = along_each_axis(call, "output_padding", conv.spatial);
  conv.attrs.emplace_back("output_padding", output_padding);
  const Integers stated = known_extents(call.dims(1));
  const std::int64_t results = extent_along(stated, conv.weight_layout, 'I');
  const WeightRole role{
      WeightRole::Kind::Products,
      std::max<std::int64_t>(1, product(stated) / std::max<std::int64_t>(1, results))};
  Var weight = call.value(1, role);
  claim_weight(call, conv, stated, 'I');
  const Var x = call.as_layout(call.value(0), conv.data_layout, conv.plain_data);
  weight = call.as_layout(weight, conv.weight_layout.text(), conv.plain_weight);
  const Var y = call.call("conv_transpose", {x, weight}, conv.attrs);
  const std::optional<DType> out = call.dtype("out_dtype");
  return out ? call.cast(y, *out) : y;
}

std::vector<Attr> product_attrs(const CallImport& call, Var a) {
  const std::optional<DType> out = call.dtype("out_dtype");
  if (!out || *out == call.type(a).dtype) return {};
  return {{"out_dtype", to_string(*out)}};
}

WeightRole products_along(const CallImport& call, std::size_t position, std::size_t axis_from_end) {
  const Integers extents = known_extents(call.dims(position));
  if (extents.size() < axis_from_end)
    throw call.error("an argument has too few axes").got(extents.size());
  return {WeightRole::Kind::Products,
          std::max<std::int64_t>(1, extents[extents.size() - axis_from_end])};
}

ImportedValue import_dense(const CallImport& call) {
  if (call.rank(1) != 2) throw call.error("the weight is no matrix").got(to_string(call.dims(1)));
  const Var weight = call.value(1, products_along(call, 1, 1));
  call.claim("units",
             to_attribute(call.type(weight).dims[0].value().value_or(RelayType::kAnyExtent)));
  const Var x = call.value(0);
  return call.call("matmul", {x, with_last_axes_swapped(call.build(), weight)},
                   product_attrs(call, x));
}

ImportedValue import_matmul(const CallImport& call) {
  const bool is_batched = call.op() == "nn.batch_matmul";
  const bool swap_a = call.flag("transpose_a"), swap_b = call.flag("transpose_b");
  const std::size_t rank = is_batched ? 3 : 2;
  if (call.rank(1) != rank || call.rank(0) < rank || (is_batched && call.rank(0) != rank)) {
    throw call.error("the arguments have another rank")
        .expected(rank)
        .got(to_string(call.dims(0)), " and ", to_string(call.dims(1)));
  }
  Var a = call.value(0, products_along(call, 0, swap_a ? 2 : 1));
  Var b = call.value(1, products_along(call, 1, swap_b ? 1 : 2));
  if (!is_batched) {
    const Dims dims = call.type(b).dims;
    call.claim("units", to_attribute(dims[swap_b ? 0 : 1].value().value_or(RelayType::kAnyExtent)));
  }
  const std::vector<Attr> attrs = product_attrs(call, a);
  if (swap_a) a = with_last_axes_swapped(call.build(), a);
  if (swap_b) b = with_last_axes_swapped(call.build(), b);
  return call.call("matmul", {a, b}, attrs);
}

// Reshapes a bias along one axis for broadcasting.
Var bias_along(const CallImport& call, Var bias, std::size_t rank) {
  std::int64_t axis = call.integer("axis");
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  if (axis < 0 || axis >= static_cast<std::int64_t>(rank))
    throw call.error("there is no such axis").got(axis);
  const std::int64_t after = static_cast<std::int64_t>(rank) - 1 - axis;
  if (after == 0 || call.type(bias).rank() != 1) return bias;
  Integers axes;
  for (std::int64_t k = 1; k <= after; ++k) axes.push_back(k);
  return call.call("unsqueeze", {bias}, {{"axes", axes}});
}

ImportedValue import_bias_add(const CallImport& call) {
  const Var x = call.value(0), bias = call.value(1);
  if (const Var joined = with_bias(call.build(), x, bias, call.integer("axis")); joined.is_valid())
    return joined;
  return call.call("add", {x, bias_along(call, bias, call.type(x).rank())});
}

}  // namespace

void add_contraction_handlers(Handlers& handlers) {
  for (const char* op : {"nn.conv1d", "nn.conv2d", "nn.conv3d"}) handlers[op] = import_convolution;
  for (const char* op : {"nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"}) {
    handlers[op] = import_transposed;
  }
  handlers["nn.dense"] = import_dense;
  handlers["nn.matmul"] = import_matmul;
  handlers["nn.batch_matmul"] = import_matmul;
  handlers["nn.bias_add"] = import_bias_add;
  handlers["einsum"] = [](const CallImport& call) -> ImportedValue {
    return call.call("einsum", call.values(0), {{"equation", call.text("equation")}});
  };
}

}  // namespace tenon::documents::relay
