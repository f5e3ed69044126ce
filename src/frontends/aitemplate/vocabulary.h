#pragma once

#include "ir/dim.h"
#include "ir/dtype.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::aitemplate {

/// The attribute that holds an operator of Tenon's own, as `own_node` writes it.
inline constexpr std::string_view kOwnKey = "tenon";
/// The attributes that tell the place of an input or output among those of the graph, where it is
/// not the order they are listed in.
inline constexpr std::string_view kInputKey = "tenon_input", kOutputKey = "tenon_output";

/// Begins the `data` of a tensor that is told in full.
inline constexpr std::string_view kConstantMark = "<tenon.Constant ";

/// One of AITemplate's elementwise functions.
struct FuncInfo {
  std::string_view name;
  std::int64_t number = 0;
  /// Tenon's operator; "" where it takes several
  std::string_view op = "";
  std::size_t operand_count = 1;
  /// further arguments, which are numbers
  std::size_t number_count = 0;
  /// attributes of the operator, in its text form
  std::string_view words = "";
};
const FuncInfo* find_func(std::string_view name);
/// The function that is an operator with these attributes (in text form), or null.
const FuncInfo* find_func_of_op(std::string_view op, std::string_view attributes);

std::optional<DType> dtype_of(std::string_view name);
std::string dtype_name(DType dtype);

/// The most elements that divide `extent` and fit in one 16-byte access; 1 for narrow types.
std::int64_t alignment_of(std::int64_t extent, std::string_view dtype_name);

/// What is done to the result of a convolution or matrix product before it is stored.
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
/// The Tenon operator of a step, and its attributes in text form.
std::string_view op_of(EpilogueStep step);
std::string_view attributes_of(EpilogueStep step);

/// The name of an operator like conv2d_bias_add_relu, taken apart.
struct Composite {
  enum class Base : std::uint8_t { Conv, TransposedConv, Gemm, Bmm };
  Base base = Base::Conv;
  /// conv2d, gemm_rcr
  std::string base_name;
  /// of a matrix product: "rcr"
  std::string layout;
  std::vector<EpilogueStep> steps;
  bool is_convolution() const { return base == Base::Conv || base == Base::TransposedConv; }
};
std::optional<Composite> parse_composite(std::string_view op);
/// The name of these steps behind a base ("conv2d"), if AITemplate has such an operator.
std::optional<std::string> composite_name(std::string_view base_name,
                                          const std::vector<EpilogueStep>& steps);
/// CUTLASS's name of what follows a convolution.
std::string epilogue_name(const std::vector<EpilogueStep>& steps);

/// The letters of an einsum that is this matrix product, for a first operand of that rank.
std::string product_equation(const Composite& product, std::size_t rank);

/// A name made of letters, digits and '_' that does not begin with a digit.
std::string c_safe(std::string_view name);

/// A formula of sympy as a dim, and back.
Dim parse_formula(std::string_view formula, const SymbolRanges& ranges);
std::string print_formula(const Dim& dim);

/// Axes of images and weights in memory.
std::string_view image_layout(std::size_t rank);
std::string_view weight_layout(std::size_t rank);

}  // namespace tenon::aitemplate
