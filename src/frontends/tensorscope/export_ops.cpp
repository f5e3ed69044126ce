#include "frontends/tensorscope/export.h"

#include <utility>

namespace tenon::tensorscope {
namespace {

constexpr std::pair<std::string_view, std::string_view> tf_names[] = {
    {"abs", "Abs"},
    {"add", "Add"},
    {"arg_max", "ArgMax"},
    {"average_pool", "AvgPool"},
    {"average_pool_gradient", "AvgPoolGrad"},
    {"batch_norm", "FusedBatchNorm"},
    {"cast", "Cast"},
    {"ceil", "Ceil"},
    {"clip", "ClipByValue"},
    {"concat", "ConcatV2"},
    {"constant", "Const"},
    {"conv", "Conv2D"},
    {"conv_transpose", "Conv2DBackpropInput"},
    {"conv_weight_gradient", "Conv2DBackpropFilter"},
    {"cos", "Cos"},
    {"div", "RealDiv"},
    {"elu", "Elu"},
    {"equal", "Equal"},
    {"erf", "Erf"},
    {"exp", "Exp"},
    {"expand", "BroadcastTo"},
    {"floor", "Floor"},
    {"gather", "GatherV2"},
    {"greater", "Greater"},
    {"identity", "Identity"},
    {"less", "Less"},
    {"log", "Log"},
    {"log_softmax", "LogSoftmax"},
    {"lrn", "LRN"},
    {"lrn_gradient", "LRNGrad"},
    {"matmul", "MatMul"},
    {"max_pool", "MaxPool"},
    {"max_pool_gradient", "MaxPoolGrad"},
    {"maximum", "Maximum"},
    {"minimum", "Minimum"},
    {"mul", "Mul"},
    {"neg", "Neg"},
    {"one_hot", "OneHot"},
    {"pad", "Pad"},
    {"pow", "Pow"},
    {"reciprocal", "Reciprocal"},
    {"reduce_max", "Max"},
    {"reduce_mean", "Mean"},
    {"reduce_min", "Min"},
    {"reduce_prod", "Prod"},
    {"reduce_sum", "Sum"},
    {"relu", "Relu"},
    {"reshape", "Reshape"},
    {"round", "Round"},
    {"selu", "Selu"},
    {"sigmoid", "Sigmoid"},
    {"sign", "Sign"},
    {"sin", "Sin"},
    {"softmax", "Softmax"},
    {"softplus", "Softplus"},
    {"softsign", "Softsign"},
    {"split", "Split"},
    {"sqrt", "Sqrt"},
    {"squeeze", "Squeeze"},
    {"sub", "Sub"},
    {"tanh", "Tanh"},
    {"transpose", "Transpose"},
    {"unsqueeze", "ExpandDims"},
    {"where", "Select"},
};

}  // namespace

std::string tf_op_name(const Graph& graph, NodeId id) {
  const std::string_view op = graph.op_name(id);
  const std::vector<ValueId>& results = graph.node(id).results;
  if (op == "max_pool" && results.size() > 1 && results[1]) return "MaxPoolWithArgmax";
  for (const auto& [tenon, tensorflow] : tf_names) {
    if (tenon == op) return std::string(tensorflow);
  }
  return camel_case(op);
}

}  // namespace tenon::tensorscope
