#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::documents::tensorscope {

// Naming rules of TensorFlow and its graph optimisers. Every view points into the given name.

/// A transpose of the layout optimiser: `NODE-INPUT-TransposeNHWCToNCHW-LayoutOptimizer` before an
/// input of NODE, `NODE-ORDINAL-INPUT-TransposeNCHWToNHWC-LayoutOptimizer` after NODE, before that
/// input of one of its readers.
struct LayoutTranspose {
  std::string_view node;
  std::optional<std::int64_t> ordinal;
  std::int64_t input = 0;
  bool to_nchw = false;
};
std::optional<LayoutTranspose> layout_transpose(std::string_view name);
/// "PermConstNHWCToNCHW-LayoutOptimizer": the permutation that those transposes read.
std::string permutation_name(bool to_nchw);

/// `NODE-INPUT-LayoutOptimizer`: a constant input of NODE that the optimiser permuted.
struct InputConstant {
  std::string_view node;
  std::int64_t input = 0;
};
std::optional<InputConstant> permuted_constant(std::string_view name);

/// `ConstantFolding/NODE-matshapes-PORT`: the folded value of a shape node.
struct FoldedShape {
  std::string_view node;
  std::int64_t port = 0;
};
std::optional<FoldedShape> folded_shape(std::string_view name);

/// `gradients/FORWARD_grad/PART`: a node of the gradient of FORWARD.
struct GradientName {
  /// "gradients/FORWARD_grad"
  std::string_view scope;
  std::string_view forward, part;
};
std::optional<GradientName> gradient_name(std::string_view name);
/// Returns whether a node is in a scope of gradients.
bool is_in_gradients(std::string_view name);

/// "a/b" of "a/b/c"; "" of "c"
std::string_view scope_of(std::string_view name);
/// "c" of "a/b/c"
std::string_view last_part(std::string_view name);
/// "Conv2D" and 1 of "Conv2D_1", "Conv2D" and 0 of "Conv2D".
struct Numbered {
  std::string_view stem;
  std::int64_t number = 0;
};
Numbered numbered(std::string_view part);

/// Returns the operator in a node's name by TensorFlow's naming rules; empty without one.
std::string_view op_in_name(std::string_view name);

/// Compares runs of digits as numbers: conv2 before conv10.
bool natural_less(std::string_view a, std::string_view b);

/// Parses a 64-bit number without sign or leading zeros.
std::optional<std::int64_t> plain_number(std::string_view text);

}  // namespace tenon::documents::tensorscope
