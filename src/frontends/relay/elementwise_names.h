#pragma once

// Relay's word and Tenon's for what means the same, element by element, both ways.
namespace tenon::relay {

struct OpName {
  const char *relay, *tenon;
};

inline constexpr OpName kUnaryNames[] = {
    {"exp", "exp"},
    {"log", "log"},
    {"sqrt", "sqrt"},
    {"sin", "sin"},
    {"cos", "cos"},
    {"tan", "tan"},
    {"sinh", "sinh"},
    {"cosh", "cosh"},
    {"asin", "asin"},
    {"acos", "acos"},
    {"atan", "atan"},
    {"asinh", "asinh"},
    {"acosh", "acosh"},
    {"atanh", "atanh"},
    {"abs", "abs"},
    {"negative", "neg"},
    {"ceil", "ceil"},
    {"floor", "floor"},
    {"round", "round"},
    {"trunc", "trunc"},
    {"sign", "sign"},
    {"sigmoid", "sigmoid"},
    {"tanh", "tanh"},
    {"erf", "erf"},
    {"logical_not", "logical_not"},
    {"bitwise_not", "bit_not"},
    {"isnan", "is_nan"},
    {"copy", "identity"},
    {"nn.relu", "relu"},
    {"annotation.stop_fusion", "stop_fusion"},
};

inline constexpr OpName kBinaryNames[] = {
    {"add", "add"},
    {"subtract", "sub"},
    {"multiply", "mul"},
    {"divide", "div"},
    {"maximum", "maximum"},
    {"minimum", "minimum"},
    {"equal", "equal"},
    {"less", "less"},
    {"less_equal", "less_equal"},
    {"greater", "greater"},
    {"greater_equal", "greater_equal"},
    {"logical_and", "logical_and"},
    {"logical_or", "logical_or"},
    {"logical_xor", "logical_xor"},
    {"bitwise_and", "bit_and"},
    {"bitwise_or", "bit_or"},
    {"bitwise_xor", "bit_xor"},
    {"left_shift", "shift_left"},
    {"right_shift", "shift_right"},
};

}  // namespace tenon::relay
