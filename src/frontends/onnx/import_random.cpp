#include "frontends/onnx/op_call.h"

#include <bit>

namespace tenon::frontends::onnx {
namespace {

// Seeds nodes without a seed by the name of their output: draws differ between nodes and are
// reproducible.
std::int64_t seed_of(const NodeImport& node) {
  if (node.has_attr("seed"))
    return std::bit_cast<std::int32_t>(static_cast<float>(node.real("seed")));
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  const std::string name = node.output_names(1).front();
  for (char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  return static_cast<std::int64_t>(hash >> 1);
}

OpCall random_call(NodeImport& node, DType dtype) {
  const bool is_normal = node.op_type().starts_with("RandomNormal");
  OpCall call(node, is_normal ? "random_normal" : "random_uniform");
  call.attr({"dtype", to_string(dtype)}).attr({"seed", seed_of(node)});
  if (is_normal) {
    call.attr({"mean", node.real("mean", 0)}).attr({"deviation", node.real("scale", 1)});
  } else {
    call.attr({"low", node.real("low", 0)}).attr({"high", node.real("high", 1)});
  }
  return call;
}

void import_random(NodeImport& node) {
  OpCall call = random_call(node, node.element("dtype", DType::F32));
  node.output(call.attr({"shape", node.integers("shape")}).result());
}

void import_random_like(NodeImport& node) {
  const Var x = node.input(0);
  OpCall call =
      random_call(node, node.has_attr("dtype") ? node.element("dtype", DType::F32) : node.dtype(x));
  if (node.type(x).is_tensor() && all_constant(node.type(x).tensor().dims)) {
    call.attr({"shape", constants(node.type(x).tensor().dims)});
  } else {
    call.operand("shape", node.call("shape", {x}));
  }
  node.output(call.result());
}

void import_bernoulli(NodeImport& node) {
  OpCall call(node, "bernoulli");
  call.operand("x", node.input(0)).attr({"seed", seed_of(node)});
  if (node.has_attr("dtype")) call.attr({"dtype", to_string(node.element("dtype", DType::F32))});
  node.output(call.result());
}

void import_multinomial(NodeImport& node) {
  node.output(node.call("multinomial", {node.input(0)},
                        {{"sample_count", node.integer("sample_size", 1)},
                         {"dtype", to_string(node.element("dtype", DType::I32))},
                         {"seed", seed_of(node)}}));
}

constexpr Handler random_table[] = {
    {"Bernoulli", import_bernoulli},  {"Multinomial", import_multinomial},
    {"RandomNormal", import_random},  {"RandomNormalLike", import_random_like},
    {"RandomUniform", import_random}, {"RandomUniformLike", import_random_like},
};

}  // namespace

std::span<const Handler> random_handlers() { return random_table; }

}  // namespace tenon::frontends::onnx
