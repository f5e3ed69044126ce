#include "documents/megengine/elemwise.h"

#include "autodiff/gradient_by_rule.h"
#include "ir/graph.h"

#include <algorithm>

namespace tenon::documents::megengine {
namespace {

using Operands = std::vector<Var>;

Var zero(Builder& b, Var like) { return b.scalar(0, like); }
Var where(Builder& b, Var condition, Var yes, Var no) {
  return b.call("where", {condition, yes, no});
}
Var unary(Builder& b, std::string_view op, Var x) { return b.call(op, {x}); }
Var held(Builder& b, Var x, double low, double high) {
  return b.call("clip", {x, b.scalar(low, x), b.scalar(high, x)});
}

// x * (27 + x^2) / (27 + 9 x^2), MegEngine's approximation of tanh in fast mode.
Var fast_tanh(Builder&, const Operands& x) {
  const Var square = x[0] * x[0];
  return x[0] * (square + 27.0) / (square * 9.0 + 27.0);
}
Var floor_div(Builder& b, const Operands& x) { return unary(b, "floor", x[0] / x[1]); }
// Rounds halves away from zero; Tenon's round is to even.
Var round_away(Builder& b, const Operands& x) {
  return unary(b, "sign", x[0]) * unary(b, "floor", unary(b, "abs", x[0]) + 0.5);
}
// Gradients by Tenon's own rules: from the forward operand and the upstream gradient, or from the
// forward result.
template <const char* kOp>
Var gradient_by_operand(Builder& b, const Operands& x) {
  return gradient_by_rule(b, kOp, x[0], Var(), x[1]);
}
template <const char* kOp>
Var gradient_by_result(Builder& b, const Operands& x) {
  return gradient_by_rule(b, kOp, Var(), x[0], x[1]);
}
constexpr char kAbs[] = "abs", kHardSwish[] = "hard_swish", kSigmoid[] = "sigmoid",
               kSoftplus[] = "softplus", kSwish[] = "swish", kTanh[] = "tanh";

const ElemwiseMode kModes[] = {
    {"RELU", 1, "relu"},
    {"ABS", 1, "abs"},
    {"ACOS", 1, "acos"},
    {"ASIN", 1, "asin"},
    {"CEIL", 1, "ceil"},
    {"COS", 1, "cos"},
    {"EXP", 1, "exp"},
    {"EXPM1", 1, "", [](Builder& b, const Operands& x) { return unary(b, "exp", x[0]) - 1.0; }},
    {"FLOOR", 1, "floor"},
    {"LOG", 1, "log"},
    {"LOG1P", 1, "", [](Builder& b, const Operands& x) { return unary(b, "log", x[0] + 1.0); }},
    {"NEGATE", 1, "neg"},
    {"SIGMOID", 1, "sigmoid"},
    {"SIN", 1, "sin"},
    {"TANH", 1, "tanh"},
    {"ABS_GRAD", 2, "", gradient_by_operand<kAbs>},
    {"ADD", 2, "add"},
    {"FLOOR_DIV", 2, "", floor_div},
    {"MAX", 2, "maximum"},
    {"MIN", 2, "minimum"},
    {"MOD", 2, "",
     [](Builder& b, const Operands& x) {
       return b.call("mod", {x[0], x[1]}, {{"sign", "dividend"}});
     }},
    {"MUL", 2, "mul"},
    {"POW", 2, "pow"},
    {"SIGMOID_GRAD", 2, "", gradient_by_result<kSigmoid>},
    {"SUB", 2, "sub"},
    {"SWITCH_GT0", 2, "",
     [](Builder& b, const Operands& x) {
       return where(b, b.call("greater", {x[0], zero(b, x[0])}), x[1], zero(b, x[1]));
     }},
    {"TANH_GRAD", 2, "", gradient_by_result<kTanh>},
    {"TRUE_DIV", 2, "div"},
    {"LOG_SUM_EXP", 2, "",
     [](Builder& b, const Operands& x) {
       const Var gap = -unary(b, "abs", x[0] - x[1]);  // subtracting the maximum keeps exp() finite
       return b.call("maximum", {x[0], x[1]}) + unary(b, "log", unary(b, "exp", gap) + 1.0);
     }},
    {"LT", 2, "less"},
    {"LEQ", 2, "less_equal"},
    {"EQ", 2, "equal"},
    {"NEQ", 2, "",
     [](Builder& b, const Operands& x) {
       return unary(b, "logical_not", b.call("equal", {x[0], x[1]}));
     }},
    {"SHL", 2, "shift_left"},
    {"SHR", 2, "shift_right"},
    {"COND_LEQ_MOV", 3, "",
     [](Builder& b, const Operands& x) {
       return where(b, b.call("less_equal", {x[0], x[1]}), x[2], zero(b, x[2]));
     }},
    {"COND_LT_MOV", 3, "",
     [](Builder& b, const Operands& x) {
       return where(b, b.call("less", {x[0], x[1]}), x[2], zero(b, x[2]));
     }},
    {"FUSE_MUL_ADD3", 3, "", [](Builder&, const Operands& x) { return x[0] * x[1] + x[2]; }},
    {"FUSE_MUL_ADD4", 4, "", [](Builder&, const Operands& x) { return x[0] * x[1] + x[2] * x[3]; }},
    {"FUSE_ADD_RELU", 2, "",
     [](Builder& b, const Operands& x) { return unary(b, "relu", x[0] + x[1]); }},
    {"FUSE_ADD_SIGMOID", 2, "",
     [](Builder& b, const Operands& x) { return unary(b, "sigmoid", x[0] + x[1]); }},
    {"FUSE_ADD_TANH", 2, "",
     [](Builder& b, const Operands& x) { return unary(b, "tanh", x[0] + x[1]); }},
    {"FAST_TANH", 1, "", fast_tanh},
    {"ROUND", 1, "", round_away},
    {"ERF", 1, "erf"},
    {"ERFC", 1, "", [](Builder& b, const Operands& x) { return 1.0 - unary(b, "erf", x[0]); }},
    {"H_SWISH", 1, "hard_swish"},
    {"H_SWISH_GRAD", 2, "", gradient_by_operand<kHardSwish>},
    {"FUSE_ADD_H_SWISH", 2, "",
     [](Builder& b, const Operands& x) { return unary(b, "hard_swish", x[0] + x[1]); }},
    {"NOT", 1, "logical_not"},
    {"AND", 2, "logical_and"},
    {"OR", 2, "logical_or"},
    {"XOR", 2, "logical_xor"},
    {"SILU", 1, "swish"},
    {"SILU_GRAD", 2, "", gradient_by_operand<kSwish>},
    {"GELU", 1, "gelu"},
    {"SINH", 1, "sinh"},
    {"COSH", 1, "cosh"},
    {"ASINH", 1, "asinh"},
    {"ACOSH", 1, "acosh"},
    {"ATANH", 1, "atanh"},
    {"TAN", 1, "tan"},
    {"SOFTPLUS", 1, "softplus"},
    {"SOFTPLUS_GRAD", 2, "", gradient_by_operand<kSoftplus>},
    {"RELU6", 1, "", [](Builder& b, const Operands& x) { return held(b, x[0], 0, 6); }},
    {"HSIGMOID", 1, "",
     [](Builder& b, const Operands& x) { return held(b, x[0] + 3.0, 0, 6) / 6.0; }},
    {"LOGSIGMOID", 1, "",
     [](Builder& b, const Operands& x) { return -unary(b, "softplus", -x[0]); }},
    {"SQRT", 1, "sqrt"},
    {"SQUARE", 1, "", [](Builder&, const Operands& x) { return x[0] * x[0]; }},
    {"SIGN", 1, "sign"},
    {"ISNAN", 1, "is_nan"},
    {"ISINF", 1, "is_inf"},
    {"CLIP", 3, "clip"},
    {"PRELU", 2, "prelu"},
};

}  // namespace

const ElemwiseMode* find_elemwise_mode(std::string_view name) {
  const auto found = std::find_if(std::begin(kModes), std::end(kModes),
                                  [&](const ElemwiseMode& mode) { return mode.name == name; });
  return found == std::end(kModes) ? nullptr : &*found;
}

const ElemwiseMode* elemwise_mode_of(std::string_view op) {
  const auto found = std::find_if(std::begin(kModes), std::end(kModes),
                                  [&](const ElemwiseMode& mode) { return mode.op == op; });
  return found == std::end(kModes) ? nullptr : &*found;
}

}  // namespace tenon::documents::megengine
