#include "base/error.h"
#include "frontends/onnx/op_call.h"
#include "ops/definition/operand_types.h"
#include "ops/families/movement.h"

#include <algorithm>

namespace tenon::frontends::onnx {
namespace {

Tensor constant_value(const NodeImport& node) {
  for (const char* name : {"value", "sparse_value"}) {
    if (node.has_attr(name)) return node.tensor(name);
  }
  if (node.has_attr("value_int")) {
    return Tensor::of<std::int64_t>(DType::I64, {}, {node.integer("value_int")});
  }
  if (node.has_attr("value_ints")) return Tensor::of_integers(node.integers("value_ints"));
  if (node.has_attr("value_float")) return Tensor::scalar(DType::F32, node.real("value_float"));
  if (node.has_attr("value_floats")) {
    const std::vector<double> values = node.reals("value_floats");
    return Tensor::of(DType::F32, {static_cast<std::int64_t>(values.size())}, values);
  }
  if (node.has_attr("value_string")) return Tensor::of_strings({}, {node.text("value_string")});
  if (node.has_attr("value_strings")) {
    std::vector<std::string> values = node.texts("value_strings");
    const auto count = static_cast<std::int64_t>(values.size());
    return Tensor::of_strings({count}, std::move(values));
  }
  throw Error("the constant has no value").expected("one of the attributes value, value_int, …");
}

void import_constant(NodeImport& node) { node.output(node.build.constant(constant_value(node))); }

// Broadcasts one value to the shape in input 0.
void fill_shape(NodeImport& node, const Tensor& value) {
  const Tensor scalar = value.reshaped({});
  if (const auto shape = node.constant_input(0)) {
    return node.output(node.build.constant(Constant::splat(scalar, shape->integers())));
  }
  node.output(OpCall(node, "expand")
                  .operand("x", node.build.constant(scalar))
                  .dynamic("shape", 0)
                  .result());
}

void import_constant_of_shape(NodeImport& node) {
  fill_shape(node, node.has_attr("value") ? node.tensor("value") : Tensor(DType::F32, {1}));
}

// Experimental before opset 9.
void import_constant_fill(NodeImport& node) {
  const Tensor value = Tensor::scalar(node.element("dtype", DType::F32), node.real("value"));
  if (node.integer("input_as_shape") != 0) return fill_shape(node, value);
  Shape shape = node.integers("shape");
  if (node.has_input(0)) {
    const std::vector<std::int64_t> own = node.build.shape(node.input(0));
    if (std::ranges::count(own, -1) != 0) node.unsupported("the shape of its input is not known");
    shape = own;
    for (std::int64_t extent : node.integers("extra_shape")) shape.push_back(extent);
  }
  node.output(node.build.constant(Constant::splat(value, shape)));
}

void import_given_tensor_fill(NodeImport& node) {
  if (node.has_input(0)) node.unsupported("a shape that is given as an input");
  const Shape shape = node.integers("shape");
  node.output(node.build.constant(Tensor::of(DType::F32, shape, node.reals("values"))));
}

// Multiplies the extents on both sides at run time.
Var flattened_shape(NodeImport& node, Var x, std::int64_t axis) {
  const auto side = [&](Attr bound) {
    const Var extents = node.call("shape", {x}, {std::move(bound)});
    return node.call("reduce_prod", {extents});
  };
  const Var before = side({"end", axis}), after = side({"start", axis});
  return node.call("concat", {before, after}, {{"axis", 0}});
}

void import_flatten(NodeImport& node) {
  const Var x = node.input(0);
  const std::int64_t axis = node.integer("axis", 1);
  const auto rank = node.rank(x);
  if (!rank) {
    return node.output(
        node.call("reshape", {x, flattened_shape(node, x, axis)}, {{"allow_zero", true}}));
  }
  const Dims dims = node.type(x).tensor().dims;
  const auto signed_rank = static_cast<std::int64_t>(*rank);
  if (axis < -signed_rank || axis > signed_rank) {
    throw Error("axis is outside the tensor's rank")
        .expected("an axis in [", -signed_rank, ", ", signed_rank, "]")
        .got(axis);
  }
  const auto split = dims.begin() + (axis < 0 ? axis + signed_rank : axis);
  const Dims shape{product(Dims(dims.begin(), split)), product(Dims(split, dims.end()))};
  node.output(call_with("reshape", {x}, {{"shape", shape}, {"allow_zero", true}}));
}

void import_tile(NodeImport& node) {
  const Var x = node.input(0);
  if (node.opset() >= 6) {
    return node.output(OpCall(node, "tile").operand("x", x).dynamic("repeats", 1).result());
  }
  // The first version repeats one axis, with two scalars.
  const auto tiles = constant_integer(node, 1), axis = constant_integer(node, 2);
  const auto rank = node.rank(x);
  if (!tiles || !axis || !rank) node.unsupported("tiles or axis that are not constant");
  std::vector<std::int64_t> repeats(*rank, 1);
  repeats[normal_axis("Tile", *axis, *rank)] = *tiles;
  node.output(node.call("tile", {x}, {{"repeats", repeats}}));
}

// Experimental before opset 10; crops a border off images, or a window out of them.
void import_crop(NodeImport& node) {
  const std::vector<std::int64_t> border = node.integers("border"), window = node.integers("scale");
  if (border.size() != 4) throw Error("border must be left, top, right, bottom");
  for (const auto& extents : {border, window}) {
    if (std::ranges::all_of(extents, [](auto n) { return n >= 0 && n <= kMaxExtent; })) continue;
    throw Error("a border or window is no extent").got(Dims(extents.begin(), extents.end()));
  }
  const std::int64_t left = border[0], top = border[1], right = border[2], bottom = border[3];
  Attr::Integers ends{bottom == 0 ? INT64_MAX : -bottom, right == 0 ? INT64_MAX : -right};
  if (window.size() == 2) ends = {top + window[0], left + window[1]};
  node.output(node.call(
      "slice", {node.input(0)},
      {{"starts", Attr::Integers{top, left}}, {"ends", ends}, {"axes", Attr::Integers{2, 3}}}));
}

void import_concat(NodeImport& node) {
  if (node.opset() >= 4 && !node.has_attr("axis")) throw Error("attribute 'axis' is missing");
  node.output(node.call("concat", node.inputs(), {{"axis", node.integer("axis", 1)}}));
}

// Limits parts that need not have an output, whose number the file size does not bound.
constexpr std::int64_t kMaxParts = 1 << 16;

void import_split(NodeImport& node) {
  OpCall call(node, "split");
  call.operand("x", node.input(0)).attr({"axis", node.integer("axis")});
  auto count = node.output_count();
  if (node.has_input(1)) {
    if (const auto sizes = node.constant_input(1)) count = static_cast<std::size_t>(sizes->size());
    call.dynamic("sizes", 1);
  } else if (const auto sizes = node.integers("split"); !sizes.empty()) {
    count = sizes.size();
    call.attr({"sizes", sizes});
  } else if (node.has_attr("num_outputs")) {
    const std::int64_t given = node.integer("num_outputs");
    if (given < 1 || given > kMaxParts) {
      throw Error("num_outputs is no number of outputs").expected("1 to ", kMaxParts).got(given);
    }
    count = static_cast<std::size_t>(given);
  }
  if (count < node.output_count()) {
    throw Error("there are fewer parts than outputs").expected(node.output_count()).got(count);
  }
  node.outputs(call.results(count));
}

void import_pad(NodeImport& node) {
  const Var x = node.input(0);
  const std::string mode = node.text("mode", "constant");
  OpCall call(node, "pad");
  call.operand("x", x).attr({"mode", mode});
  if (node.opset() >= 11) {
    if (mode == "constant") call.operand("value", node.input_or_none(2));
    call.dynamic("pads", 1).dynamic("axes", 3);
  } else {
    call.attr({"pads", node.integers(node.has_attr("pads") ? "pads" : "paddings")});
    const double value = node.real("value");
    if (value != 0 && mode == "constant") {
      call.operand("value", node.build.constant(Tensor::scalar(node.dtype(x), value)));
    }
  }
  node.output(call.result());
}

constexpr Handler shape_table[] = {
    {"Concat", import_concat},
    {"Constant", import_constant},
    {"ConstantFill", import_constant_fill},
    {"ConstantOfShape", import_constant_of_shape},
    {"Crop", import_crop},
    {"Flatten", import_flatten},
    {"GivenTensorFill", import_given_tensor_fill},
    {"Pad", import_pad},
    {"Split", import_split},
    {"Tile", import_tile},
};

}  // namespace

std::span<const Handler> shape_handlers() { return shape_table; }

}  // namespace tenon::frontends::onnx
