#pragma once

#include "ops/expr.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::nests {

enum class ScalarKind : std::uint8_t {
  /// one number
  Integer,
  Real,
  /// the position of a loop
  Loop,
  /// an extent that is known when the kernel runs
  Extent,
  /// an element of a buffer
  Load,
  /// what a local holds
  Local,
  /// where an arg reduction found what a local holds
  Place,
  Unary,
  Binary,
  Select,
  Cast,
};

/// What a load does about coordinates outside its buffer.
enum class Bounds : std::uint8_t {
  /// there are none, by promise
  Inside,
  /// the last argument stands there
  Fill,
  /// the data is wrong: the kernel reports it
  Checked,
};

struct ScalarNode;

/// One number inside a loop nest.
class Scalar {
 public:
  Scalar() = default;
  explicit Scalar(std::shared_ptr<const ScalarNode> node) : node_(std::move(node)) {}
  const ScalarNode& node() const { return *node_; }
  const ScalarNode* operator->() const { return node_.get(); }
  bool is_defined() const { return node_ != nullptr; }
  /// others hold it too
  bool is_shared() const { return node_.use_count() > 1; }

 private:
  std::shared_ptr<const ScalarNode> node_;
};

struct ScalarNode {
  ScalarKind kind = ScalarKind::Integer;
  DType dtype = DType::I64;
  std::int64_t integer = 0;
  double real = 0;
  /// of the loop, extent, buffer or local
  std::size_t id = 0;
  UnaryOp unary{};
  BinaryOp binary{};
  Bounds bounds = Bounds::Inside;
  /// Load: one coordinate for each axis of `view`, then the fill
  std::vector<Scalar> args;
  /// Load: the extents under which the buffer is seen, row-major
  Dims view;
};

Scalar integer_scalar(std::int64_t value);
Scalar literal_scalar(DType dtype, double real, std::int64_t integer);
Scalar loop_scalar(std::size_t loop);
Scalar local_scalar(std::size_t local, DType dtype);
/// The place that an arg reduction keeps along with a local.
Scalar place_scalar(std::size_t local);
Scalar unary_scalar(UnaryOp op, DType dtype, Scalar x);
/// Folds what numbers alone decide; sums and products of integers are simplified.
Scalar binary_scalar(BinaryOp op, DType dtype, Scalar a, Scalar b);
/// Of integers.
Scalar plus(const Scalar& a, const Scalar& b);
Scalar times(const Scalar& a, const Scalar& b);
Scalar select_scalar(Scalar condition, Scalar a, Scalar b);
Scalar cast_scalar(Scalar x, DType dtype);

/// What a reduction starts from.
Scalar identity_scalar(Reduction reduction, DType dtype);

bool is_integer(const Scalar& scalar, std::int64_t value);
/// Where the number is 1 + erf(x) of an f32, as in gelu: x.
std::optional<Scalar> under_one_plus_erf(const ScalarNode& node);
/// Whether the number is a / (1 + exp(x)) of f32, as in sigmoid and swish.
bool divides_by_one_plus_exp(const ScalarNode& node);

}  // namespace tenon::nests
