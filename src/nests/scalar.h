#pragma once

#include "expr/expr.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::nests {

enum class ScalarKind : std::uint8_t {
  /// A literal.
  Integer,
  Real,
  /// The position of a loop.
  Loop,
  /// A run-time extent.
  Extent,
  /// A buffer element.
  Load,
  /// The value of a local.
  Local,
  /// The index that an arg reduction keeps with a local.
  Position,
  Unary,
  Binary,
  Select,
  Cast,
};

/// Treatment of out-of-bounds coordinates by a load.
enum class Bounds : std::uint8_t {
  /// Guaranteed to be in bounds.
  Inside,
  /// Yields the last argument.
  Fill,
  /// A data error that the kernel reports.
  Checked,
};

struct ScalarNode;

/// A scalar expression in a loop nest.
class Scalar {
 public:
  Scalar() = default;
  explicit Scalar(std::shared_ptr<const ScalarNode> node) : node_(std::move(node)) {}
  const ScalarNode& node() const { return *node_; }
  const ScalarNode* operator->() const { return node_.get(); }
  bool is_defined() const { return node_ != nullptr; }
  /// Returns whether other expressions share the node.
  bool is_shared() const { return node_.use_count() > 1; }

 private:
  std::shared_ptr<const ScalarNode> node_;
};

struct ScalarNode {
  ScalarKind kind = ScalarKind::Integer;
  DType dtype = DType::I64;
  std::int64_t integer = 0;
  double real = 0;
  /// Id of the loop, extent, buffer or local.
  std::size_t id = 0;
  UnaryOp unary{};
  BinaryOp binary{};
  Bounds bounds = Bounds::Inside;
  /// Load: one coordinate per axis of `view`, then the fill value.
  std::vector<Scalar> args;
  /// Load: the row-major extents under which the buffer is addressed.
  Dims view;
};

Scalar integer_scalar(std::int64_t value);
Scalar literal_scalar(DType dtype, double real, std::int64_t integer);
Scalar loop_scalar(std::size_t loop);
Scalar local_scalar(std::size_t local, DType dtype);
/// The index that an arg reduction keeps with a local.
Scalar position_scalar(std::size_t local);
Scalar unary_scalar(UnaryOp op, DType dtype, Scalar x);
/// Folds constants; simplifies integer sums and products.
Scalar binary_scalar(BinaryOp op, DType dtype, Scalar a, Scalar b);
/// For integers.
Scalar plus(const Scalar& a, const Scalar& b);
Scalar times(const Scalar& a, const Scalar& b);
Scalar select_scalar(Scalar condition, Scalar a, Scalar b);
Scalar cast_scalar(Scalar x, DType dtype);

/// Returns the identity element of a reduction.
Scalar identity_scalar(Reduction reduction, DType dtype);

bool is_integer(const Scalar& scalar, std::int64_t value);
/// Matches 1 + erf(x) in f32, as in GELU, and returns x.
std::optional<Scalar> under_one_plus_erf(const ScalarNode& node);
/// Matches a / (1 + exp(x)) in f32, as in sigmoid and swish.
bool divides_by_one_plus_exp(const ScalarNode& node);

}  // namespace tenon::nests
