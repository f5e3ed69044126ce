#pragma once

#include "ir/dim.h"
#include "ir/dtype.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::aitemplate {

/// Attribute of a native Tenon operator, in the text form of `native_node`.
inline constexpr std::string_view kOwnKey = "tenon";
/// Attributes with the position of an input or output in the graph, if it differs from the listed
/// order.
inline constexpr std::string_view kInputKey = "tenon_input", kOutputKey = "tenon_output";

/// Prefix of the `data` of a tensor that is written in full.
inline constexpr std::string_view kConstantMark = "<tenon.Constant ";

/// An elementwise function of AITemplate.
struct FuncInfo {
  std::string_view name;
  std::int64_t number = 0;
  /// Equivalent Tenon operator; "" if there are several.
  std::string_view op = "";
  std::size_t operand_count = 1;
  /// Number of additional numeric arguments.
  std::size_t number_count = 0;
  /// Attributes of the Tenon operator in text form.
  std::string_view words = "";
};
const FuncInfo* find_func(std::string_view name);
/// Returns the function that equals an operator with these attributes (in text form), or null.
const FuncInfo* find_func_of_op(std::string_view op, std::string_view attributes);

std::optional<DType> dtype_of(std::string_view name);
std::string dtype_name(DType dtype);

/// Returns the largest element count that divides `extent` and fits in one 16-byte access; 1 for
/// narrow types.
std::int64_t alignment_of(std::int64_t extent, std::string_view dtype_name);

/// Epilogue step of a convolution or matrix product.
enum class EpilogueStep : std::uint8_t {
  Bias,
  Add,
  Mul,
  Relu,
  Sigmoid,
  Tanh,
  Gelu,
  FastGelu,
  HardSwish,
  Swish,
  Softmax,
};
bool takes_operand(EpilogueStep step);
/// Returns the Tenon operator of a step, and its attributes in text form.
std::string_view op_of(EpilogueStep step);
std::string_view attributes_of(EpilogueStep step);

/// Parsed name of an operator such as conv2d_bias_add_relu.
struct Composite {
  enum class Base : std::uint8_t { Conv, TransposedConv, Gemm, Bmm };
  Base base = Base::Conv;
  /// E.g. conv2d, gemm_rcr.
  std::string base_name;
  /// Operand layouts of a matrix product: "rcr".
  std::string layout;
  std::vector<EpilogueStep> steps;
  bool is_convolution() const { return base == Base::Conv || base == Base::TransposedConv; }
};
std::optional<Composite> parse_composite(std::string_view op);
/// Returns the name of a base ("conv2d") with these steps, if AITemplate has such an operator.
std::optional<std::string> composite_name(std::string_view base_name,
                                          const std::vector<EpilogueStep>& steps);
/// Returns CUTLASS's name of a convolution's epilogue.
std::string epilogue_name(const std::vector<EpilogueStep>& steps);

/// Returns the einsum equation of this matrix product, for a first operand of that rank.
std::string gemm_equation(const Composite& product, std::size_t rank);

/// Converts to a C identifier: letters, digits and '_', without a leading digit.
std::string c_safe(std::string_view name);

/// Converts between sympy formulas and dims.
Dim parse_formula(std::string_view formula, const SymbolRanges& ranges);
std::string print_formula(const Dim& dim);

/// Memory layouts of images and weights.
std::string_view image_layout(std::size_t rank);
std::string_view weight_layout(std::size_t rank);

}  // namespace tenon::documents::aitemplate
