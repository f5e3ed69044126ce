#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/expr.h"

namespace tenon::nests {

enum class ScalarKind : std::uint8_t {
  Integer, Real,   ///< one number
  Loop,            ///< the position of a loop
  Extent,          ///< an extent that is known when the kernel runs
  Load,            ///< an element of a buffer
  Local,           ///< what a local holds
  Place,           ///< where an arg reduction found what a local holds
  Unary, Binary, Select, Cast,
};

/// What a load does about coordinates outside its buffer.
enum class Bounds : std::uint8_t {
  Inside,   ///< there are none, by promise
  Fill,     ///< the last argument stands there
  Checked,  ///< the data is wrong: the kernel reports it
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
  bool is_shared() const { return node_.use_count() > 1; }  ///< others hold it too

 private:
  std::shared_ptr<const ScalarNode> node_;
};

struct ScalarNode {
  ScalarKind kind = ScalarKind::Integer;
  DType dtype = DType::I64;
  std::int64_t integer = 0;
  double real = 0;
  std::size_t id = 0;  ///< of the loop, extent, buffer or local
  UnaryOp unary{};
  BinaryOp binary{};
  Bounds bounds = Bounds::Inside;
  std::vector<Scalar> args;  ///< Load: one coordinate for each axis of `view`, then the fill
  Dims view;                 ///< Load: the extents under which the buffer is seen, row-major
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
