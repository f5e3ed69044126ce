#include "base/text.h"
#include "documents/megengine/importer.h"
#include "ops/families/matrices.h"

namespace tenon::documents::megengine {
namespace {

using Integers = Attr::Integers;

// Filters of a grouped convolution have a leading axis of groups.
constexpr std::size_t kDenseRank = 4, kGroupRank = 5;
constexpr std::int64_t kMaxWindow = std::int64_t{1} << 31;

}  // namespace

bool MegEngineImporter::is_channels_last() const {
  const std::string format = param().text("format", "NCHW");
  if (format == "NHWC") return true;
  if (format != "NCHW" && format != "DEFAULT") unsupported(concat("format ", format.substr(0, 60)));
  return false;
}

Var MegEngineImporter::to_channels_first(Var image) const {
  if (!is_channels_last()) return image;
  return image.builder().call("transpose", {image}, {{"perm", Integers{0, 3, 1, 2}}});
}
Var MegEngineImporter::from_channels_first(Var image) const {
  if (!is_channels_last()) return image;
  return image.builder().call("transpose", {image}, {{"perm", Integers{0, 2, 3, 1}}});
}

std::int64_t MegEngineImporter::window_number(std::string_view name, std::int64_t otherwise) const {
  const std::int64_t number = param().integer(name, otherwise);
  if (number < 0 || number > kMaxWindow)
    throw Error(concat("'", name, "' is out of range")).got(number);
  return number;
}

std::vector<Attr> MegEngineImporter::window_attributes() const {
  const std::int64_t pad_h = window_number("pad_h", 0), pad_w = window_number("pad_w", 0);
  return {{"strides", Integers{window_number("stride_h", 1), window_number("stride_w", 1)}},
          {"pads", Integers{pad_h, pad_w, pad_h, pad_w}}};
}

// Creates a seeded weight in the requested shape; reshapes other values.
Var MegEngineImporter::in_shape(Var value, const Extents& shape) {
  const Graph& graph = builder_.graph();
  const Constant* constant = graph.constant_of(ValueId(value.id()));
  const Constant::Kind kind = constant ? constant->kind() : Constant::Kind::Dense;
  if (kind != Constant::Kind::Normal && kind != Constant::Kind::Uniform)
    return builder_.call("reshape", {value}, {{"shape", shape}});
  const auto make = kind == Constant::Kind::Normal ? Constant::normal : Constant::uniform;
  return builder_.constant(
      make(constant->dtype(), shape, constant->seed(), constant->first(), constant->second()),
      graph.free_name(graph.value(ValueId(value.id())).name));
}

// The filter of input `k` as [outputs, inputs of a group, height, width].
Var MegEngineImporter::filter(std::size_t k, std::int64_t& groups) {
  const bool is_grouped = param().text("sparse", "DENSE") == "GROUP";
  Var weights = input(k);
  const Extents shape = extents(weights);
  if (shape.size() != (is_grouped ? kGroupRank : kDenseRank)) {
    throw Error("a filter has another rank")
        .expected(is_grouped ? kGroupRank : kDenseRank)
        .got(to_text(shape));
  }
  groups = is_grouped ? shape[0] : 1;
  if (is_grouped) {
    weights =
        in_shape(weights, {saturating_product(shape[0], shape[1]), shape[2], shape[3], shape[4]});
  }
  if (is_channels_last())
    weights = builder_.call("transpose", {weights}, {{"perm", Integers{0, 3, 1, 2}}});
  return weights;
}

void MegEngineImporter::convolution() {
  require_param("stride_h");
  if (param().text("mode", "CROSS_CORRELATION") != "CROSS_CORRELATION")
    unsupported("mode CONVOLUTION");
  std::int64_t groups = 1;
  const Var x = to_channels_first(input(0));
  const Var w = filter(1, groups);
  std::vector<Attr> attrs = window_attributes();
  attrs.emplace_back("dilations",
                     Integers{window_number("dilate_h", 1), window_number("dilate_w", 1)});
  attrs.emplace_back("groups", groups);
  std::vector<Var> operands = {x, w};
  if (input_count() > 2) {
    // [1, C, 1, 1] in MegEngine, a vector here.
    const Var bias = to_channels_first(input(2));
    const Extents shape = extents(bias);
    const std::int64_t channels = extents(w)[0];
    if (shape != Extents{1, channels, 1, 1}) {
      throw Error("a bias is not one number for each channel")
          .expected(to_text({1, channels, 1, 1}))
          .got(to_text(shape));
    }
    operands.push_back(in_shape(bias, {channels}));
  }
  define(0, from_channels_first(builder_.call("conv", operands, attrs)));
}

void MegEngineImporter::convolution_bias() {
  convolution();
  const std::size_t result = index_.outputs[opr_].at(0);
  Var y(&builder_, value_[result].index());
  const auto take_on = [&](Var next) {
    // The operator's name moves to the result with the epilogue.
    builder_.graph().swap_names(ValueId(y.id()), ValueId(next.id()));
    y = next;
    value_[result] = ValueId(y.id());
  };
  if (input_count() > 3) take_on(y + input(3));
  const std::string nonlinearity = param().text("nonlineMode", "IDENTITY");
  if (nonlinearity == "RELU") {
    take_on(builder_.call("relu", {y}));
  } else if (nonlinearity == "SIGMOID") {
    take_on(builder_.call("sigmoid", {y}));
  } else if (nonlinearity == "H_SWISH") {
    take_on(builder_.call("hard_swish", {y}));
  } else if (nonlinearity != "IDENTITY") {
    unsupported(concat("nonlinearity ", nonlinearity.substr(0, 60)));
  }
}

// filter, diff [, an image of the result's shape]
void MegEngineImporter::convolution_backward_data() {
  require_param("stride_h");
  if (is_channels_last()) unsupported("format NHWC");
  std::int64_t groups = 1;
  const Var w = filter(0, groups);
  const Var diff = input(1);
  const Extents from = extents(diff), kernel = extents(w);
  const Extents to = input_count() > 2 ? extents(input(2)) : stated_output(0);
  std::vector<Attr> attrs = window_attributes();
  const Integers strides = {window_number("stride_h", 1), window_number("stride_w", 1)};
  const Integers dilations = {window_number("dilate_h", 1), window_number("dilate_w", 1)};
  const Integers pads = {window_number("pad_h", 0), window_number("pad_w", 0)};
  attrs.emplace_back("dilations", dilations);
  attrs.emplace_back("groups", groups);
  if (to.size() == kDenseRank && from.size() == kDenseRank) {
    Integers more(2);
    for (std::size_t k = 0; k < 2; ++k) {
      const std::int64_t reach =
          saturating_sum(saturating_product(from[2 + k] - 1, strides[k]),
                         saturating_product(dilations[k], kernel[2 + k] - 1));
      const std::int64_t shortest = saturating_sum(reach, 1 - 2 * pads[k]);
      more[k] = to[2 + k] - shortest;
      if (more[k] < 0 || more[k] >= strides[k]) {
        throw Error("the result cannot have this shape").got(to_text(to), " from ", to_text(from));
      }
    }
    attrs.emplace_back("output_padding", more);
  }
  define(0, builder_.call("conv_transpose", {diff, w}, attrs));
}

// image, diff, the filter for its shape
void MegEngineImporter::convolution_backward_filter() {
  require_param("stride_h");
  if (is_channels_last()) unsupported("format NHWC");
  std::int64_t groups = 1;
  const Extents kernel = extents(filter(2, groups));
  std::vector<Attr> attrs = window_attributes();
  attrs.emplace_back("kernel_shape", Integers{kernel[2], kernel[3]});
  attrs.emplace_back("dilations",
                     Integers{window_number("dilate_h", 1), window_number("dilate_w", 1)});
  attrs.emplace_back("groups", groups);
  Var gradient = builder_.call("conv_weight_gradient", {input(0), input(1)}, attrs);
  const Extents wanted = extents(input(2));
  if (extents(gradient) != wanted)
    gradient = builder_.call("reshape", {gradient}, {{"shape", wanted}});
  define(0, gradient);
}

void MegEngineImporter::pooling() {
  require_param("window_h");
  std::vector<Attr> attrs = window_attributes();
  attrs.emplace_back("kernel_shape",
                     Integers{window_number("window_h", 1), window_number("window_w", 1)});
  const std::string mode = param().text("mode", "MAX");
  const Var x = to_channels_first(input(0));
  Var y;
  if (mode == "MAX") {
    y = builder_.call_all("max_pool", {x}, attrs, {""}).front();
  } else if (mode == "AVERAGE" || mode == "AVERAGE_COUNT_EXCLUDE_PADDING") {
    attrs.emplace_back("count_include_pad", mode == "AVERAGE");
    y = builder_.call("average_pool", {x}, attrs);
  } else {
    unsupported(concat("mode ", mode.substr(0, 60)));
  }
  define(0, from_channels_first(y));
}

void MegEngineImporter::matrix_mul() {
  if (param().text("format", "DEFAULT") != "DEFAULT")
    unsupported(concat("format ", param().text("format", "").substr(0, 60)));
  const auto operand = [&](std::size_t k, std::string_view flag) {
    const Var x = input(k);
    const std::size_t rank = extents(x).size();
    const std::size_t wanted = opr().type == "MatrixMul" ? 2 : 3;
    if (rank < 2 || (wanted == 2 && rank != 2))
      throw Error("this is no matrix").got(to_text(extents(x)));
    return param().boolean(flag, false) ? with_last_axes_swapped(builder_, x) : x;
  };
  const Var a = operand(0, "transposeA"), b = operand(1, "transposeB");
  define(0, builder_.call("matmul", {a, b}));
}

// x, scale, shift [, mean, variance]; the normalised image is the last output that is not a
// workspace.
void MegEngineImporter::batch_norm() {
  if (input_count() != 5 || param().text("fwd_mode", "INFERENCE") != "INFERENCE")
    unsupported("in training");
  std::vector<Var> operands = {input(0)};
  const Extents image = extents(operands[0]);
  if (image.size() < 2) throw Error("the image has no channels").got(to_text(image));
  for (std::size_t k = 1; k < 5; ++k) {
    const Var x = input(k);
    if (count_of(extents(x)) != image[1])
      throw Error("not one number for each channel").got(to_text(extents(x)));
    operands.push_back(in_shape(x, {image[1]}));
  }
  std::size_t last = index_.outputs[opr_].size();
  for (std::size_t k = 0; k < index_.outputs[opr_].size(); ++k) {
    if (!is_workspace(profile_.graph_exec.vars[index_.outputs[opr_][k]])) last = k;
  }
  if (last == index_.outputs[opr_].size()) throw Error("it has no result");
  define(last, builder_.call("batch_norm", operands, {{"epsilon", param().real("epsilon", 1e-5)}}));
}

}  // namespace tenon::documents::megengine
