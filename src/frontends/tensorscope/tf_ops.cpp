#include "frontends/tensorscope/tf_ops.h"

#include <algorithm>
#include <vector>

namespace tenon::tensorscope {
namespace {

const std::vector<OpInfo>& all_ops() {
  using enum OpClass;
  static const std::vector<OpInfo> ops = [] {
    std::vector<OpInfo> list = {
        {"Add", Other, 2},
        {"AddN", Other, -1},
        {"AddV2", Other, 2},
        {"ApplyGradientDescent", Other, 3},
        {"ArgMax", Other, 2},
        {"AvgPool", Shrinking, 1},
        {"AvgPoolGrad", Gradient, 2},
        {"BatchMatMul", Contraction, 2},
        {"BiasAdd", Same, 2},
        {"BroadcastTo", Other, 2},
        {"BiasAddGrad", Gradient, 1},
        {"ClipByValue", Same, 3},
        {"Concat", Other, -1},
        {"ConcatV2", Other, -1},
        {"Const", Source, 0},
        {"Conv2D", Contraction, 2},
        {"Conv2DBackpropFilter", Gradient, 3},
        {"Conv2DBackpropInput", Gradient, 3},
        {"DepthwiseConv2dNative", Contraction, 2},
        {"Div", Other, 2},
        {"EluGrad", Gradient, 2},
        {"Equal", Other, 2},
        {"ExpandDims", Other, 2},
        {"Fill", Other, 2},
        {"FusedBatchNorm", Same, 5, 5},
        {"GatherV2", Other, 3},
        {"Greater", Other, 2},
        {"GreaterEqual", Other, 2},
        {"IteratorGetNext", Other, 1, -1},
        {"L2Loss", Other, 1},
        {"LRNGrad", Gradient, 3},
        {"Less", Other, 2},
        {"LessEqual", Other, 2},
        {"LogicalAnd", Other, 2},
        {"LogicalOr", Other, 2},
        {"MatMul", Contraction, 2},
        {"Max", Other, 2},
        {"MaxPool", Shrinking, 1},
        {"MaxPoolGrad", Gradient, 3},
        {"MaxPoolWithArgmax", Shrinking, 1, 2},
        {"Maximum", Other, 2},
        {"Mean", Other, 2},
        {"Min", Other, 2},
        {"Minimum", Other, 2},
        {"Mul", Other, 2},
        {"NoOp", Source, 0, 0},
        {"OneHot", Other, 4},
        {"Pack", Other, -1},
        {"Pad", Other, 2},
        {"PadV2", Other, 3},
        {"Placeholder", Source, 0},
        {"Pow", Other, 2},
        {"Prod", Other, 2},
        {"RealDiv", Other, 2},
        {"Relu6Grad", Gradient, 2},
        {"ReluGrad", Gradient, 2},
        {"Reshape", Other, 2},
        {"RsqrtGrad", Gradient, 2},
        {"Select", Other, 3},
        {"Shape", Other, 1},
        {"SigmoidGrad", Gradient, 2},
        {"Slice", Other, 3},
        {"SoftmaxCrossEntropyWithLogits", Other, 2, 2},
        {"SparseSoftmaxCrossEntropyWithLogits", Other, 2, 2},
        {"Split", Other, 2, -1},
        {"SqrtGrad", Gradient, 2},
        {"SquaredDifference", Other, 2},
        {"Squeeze", Other, 1},
        {"StridedSlice", Other, 4},
        {"Sub", Other, 2},
        {"Sum", Other, 2},
        {"TanhGrad", Gradient, 2},
        {"Tile", Other, 2},
        {"TopKV2", Other, 2, 2},
        {"Transpose", Other, 2},
        {"VarHandleOp", Source, 0},
        {"Variable", Source, 0},
        {"VariableV2", Source, 0},
    };
    for (const std::string_view same : {"Abs",
                                        "Cast",
                                        "Ceil",
                                        "CheckNumerics",
                                        "Cos",
                                        "Elu",
                                        "Erf",
                                        "Exp",
                                        "Floor",
                                        "Identity",
                                        "LRN",
                                        "LeakyRelu",
                                        "Log",
                                        "LogSoftmax",
                                        "Neg",
                                        "OnesLike",
                                        "PreventGradient",
                                        "Reciprocal",
                                        "Relu",
                                        "Relu6",
                                        "Round",
                                        "Rsqrt",
                                        "Selu",
                                        "Sigmoid",
                                        "Sign",
                                        "Sin",
                                        "Softmax",
                                        "Softplus",
                                        "Softsign",
                                        "Sqrt",
                                        "Square",
                                        "StopGradient",
                                        "Tanh",
                                        "ZerosLike"}) {
      list.push_back({same, Same, 1});
    }
    std::sort(list.begin(), list.end(),
              [](const OpInfo& a, const OpInfo& b) { return a.name < b.name; });
    return list;
  }();
  return ops;
}

}  // namespace

const OpInfo* find_tf_op(std::string_view name) {
  const auto found =
      std::lower_bound(all_ops().begin(), all_ops().end(), name,
                       [](const OpInfo& op, std::string_view wanted) { return op.name < wanted; });
  return found == all_ops().end() || found->name != name ? nullptr : &*found;
}

}  // namespace tenon::tensorscope
