#include "documents/tensorscope/tf_ops.h"

#include "documents/native_node.h"

#include <algorithm>
#include <array>

namespace tenon::documents::tensorscope {
namespace {

// By name.
constexpr auto kOps = [] {
  using enum OpClass;
  using enum OpUse;
  return std::to_array<OpInfo>({
      {"Abs", Same, 1, "abs"},
      {"Add", Other, 2, "add"},
      {"AddN", Other, -1},
      {"AddV2", Other, 2, "add", Read},
      {"ApplyGradientDescent", Other, 3},
      {"ArgMax", Other, 2, "arg_max", Written},
      {"AvgPool", Shrinking, 1, "average_pool", Written},
      {"AvgPoolGrad", Gradient, 2, "average_pool_gradient", Written},
      {"BatchMatMul", Contraction, 2},
      {"BiasAdd", Same, 2},
      {"BiasAddGrad", Gradient, 1},
      {"BroadcastTo", Other, 2, "expand", Written},
      {"Cast", Same, 1, "cast", Written},
      {"Ceil", Same, 1, "ceil"},
      {"CheckNumerics", Same, 1, "identity", Read},
      {"ClipByValue", Same, 3, "clip"},
      {"Concat", Other, -1},
      {"ConcatV2", Other, -1, "concat", Written},
      {"Const", Source, 0, "constant", Written},
      {"Conv2D", Contraction, 2, "conv", Written},
      {"Conv2DBackpropFilter", Gradient, 3, "conv_weight_gradient", Written},
      {"Conv2DBackpropInput", Gradient, 3, "conv_transpose", Written},
      {"Cos", Same, 1, "cos"},
      {"DepthwiseConv2dNative", Contraction, 2},
      {"Div", Other, 2, "div", Read},
      {"Elu", Same, 1, "elu"},
      {"EluGrad", Gradient, 2},
      {"Equal", Other, 2, "equal"},
      {"Erf", Same, 1, "erf"},
      {"Exp", Same, 1, "exp"},
      {"ExpandDims", Other, 2, "unsqueeze", Written},
      {"Fill", Other, 2},
      {"Floor", Same, 1, "floor"},
      {"FusedBatchNorm", Same, 5, "batch_norm", Written, 5},
      {"GatherV2", Other, 3, "gather", Written},
      {"Greater", Other, 2, "greater"},
      {"GreaterEqual", Other, 2, "greater_equal", Read},
      {"Identity", Same, 1, "identity"},
      {"IteratorGetNext", Other, 1, "", Both, -1},
      {"L2Loss", Other, 1},
      {"LRN", Same, 1, "lrn", Written},
      {"LRNGrad", Gradient, 3, "lrn_gradient", Written},
      {"LeakyRelu", Same, 1},
      {"Less", Other, 2, "less"},
      {"LessEqual", Other, 2, "less_equal", Read},
      {"Log", Same, 1, "log"},
      {"LogSoftmax", Same, 1, "log_softmax"},
      {"LogicalAnd", Other, 2, "logical_and", Read},
      {"LogicalOr", Other, 2, "logical_or", Read},
      {"MatMul", Contraction, 2, "matmul", Written},
      {"Max", Other, 2, "reduce_max", Written},
      {"MaxPool", Shrinking, 1, "max_pool", Written},
      {"MaxPoolGrad", Gradient, 3, "max_pool_gradient", Written},
      {"MaxPoolWithArgmax", Shrinking, 1, "", Both, 2},
      {"Maximum", Other, 2, "maximum"},
      {"Mean", Other, 2, "reduce_mean", Written},
      {"Min", Other, 2, "reduce_min", Written},
      {"Minimum", Other, 2, "minimum"},
      {"Mul", Other, 2, "mul"},
      {"Neg", Same, 1, "neg"},
      {"NoOp", Source, 0, "", Both, 0},
      {"OneHot", Other, 4, "one_hot", Written},
      {"OnesLike", Same, 1},
      {"Pack", Other, -1},
      {"Pad", Other, 2, "pad", Written},
      {"PadV2", Other, 3},
      {"Placeholder", Source, 0},
      {"Pow", Other, 2, "pow"},
      {"PreventGradient", Same, 1, "identity", Read},
      {"Prod", Other, 2, "reduce_prod", Written},
      {"RealDiv", Other, 2, "div"},
      {"Reciprocal", Same, 1, "reciprocal"},
      {"Relu", Same, 1, "relu"},
      {"Relu6", Same, 1},
      {"Relu6Grad", Gradient, 2},
      {"ReluGrad", Gradient, 2},
      {"Reshape", Other, 2, "reshape", Written},
      {"Round", Same, 1, "round"},
      {"Rsqrt", Same, 1},
      {"RsqrtGrad", Gradient, 2},
      {"Select", Other, 3, "where"},
      {"Selu", Same, 1, "selu"},
      {"Shape", Other, 1},
      {"Sigmoid", Same, 1, "sigmoid"},
      {"SigmoidGrad", Gradient, 2},
      {"Sign", Same, 1, "sign"},
      {"Sin", Same, 1, "sin"},
      {"Slice", Other, 3},
      {"Softmax", Same, 1, "softmax"},
      {"SoftmaxCrossEntropyWithLogits", Other, 2, "", Both, 2},
      {"Softplus", Same, 1, "softplus"},
      {"Softsign", Same, 1, "softsign"},
      {"SparseSoftmaxCrossEntropyWithLogits", Other, 2, "", Both, 2},
      {"Split", Other, 2, "split", Written, -1},
      {"Sqrt", Same, 1, "sqrt"},
      {"SqrtGrad", Gradient, 2},
      {"Square", Same, 1},
      {"SquaredDifference", Other, 2},
      {"Squeeze", Other, 1, "squeeze", Written},
      {"StopGradient", Same, 1, "identity", Read},
      {"StridedSlice", Other, 4},
      {"Sub", Other, 2, "sub"},
      {"Sum", Other, 2, "reduce_sum", Written},
      {"Tanh", Same, 1, "tanh"},
      {"TanhGrad", Gradient, 2},
      {"Tile", Other, 2},
      {"TopKV2", Other, 2, "", Both, 2},
      {"Transpose", Other, 2, "transpose", Written},
      {"VarHandleOp", Source, 0},
      {"Variable", Source, 0},
      {"VariableV2", Source, 0},
      {"ZerosLike", Same, 1},
  });
}();

}  // namespace

const OpInfo* find_tf_op(std::string_view name) {
  const auto found = std::ranges::lower_bound(kOps, name, {}, &OpInfo::name);
  return found == kOps.end() || found->name != name ? nullptr : &*found;
}

std::string tf_op_name(const Graph& graph, NodeId id) {
  const std::string_view op = graph.op_name(id);
  const std::vector<ValueId>& results = graph.node(id).results;
  if (op == "max_pool" && results.size() > 1 && results[1]) return "MaxPoolWithArgmax";
  const auto found = std::ranges::find_if(
      kOps, [&](const OpInfo& each) { return each.op == op && each.use != OpUse::Read; });
  return found == kOps.end() ? camel_case(op) : std::string(found->name);
}

}  // namespace tenon::documents::tensorscope
