#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// A closed range of integers.
struct Range {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  bool operator==(const Range&) const = default;
};

/// No extent is larger; sums and products past this are refused as an error of the model.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 56;

struct DimExpr;  // the canonical form of a dim that is not a number; see dim_expr.h

/// An extent, or any integer computed from extents: a number, a named symbol with a range, or
/// arithmetic on those. Kept canonical, so that equal text means equal value and `==` proves
/// equality: `2*(s+1)-2 == 2*s`.
class Dim {
 public:
  Dim() = default;
  Dim(std::int64_t value) : value_(value) {}  // NOLINT: numbers are dims
  static Dim symbol(std::string name, Range range = {0, kMaxExtent});

  bool is_constant() const { return expr_ == nullptr; }
  /// The number; asks that `is_constant()`.
  std::int64_t constant() const;
  std::optional<std::int64_t> value() const;
  /// The symbol's name if this is nothing but a symbol.
  std::optional<std::string> symbol_name() const;
  /// The values this can take while every symbol stays in its range.
  Range range() const;

  /// This with symbols replaced; a symbol not in the map stays.
  Dim substitute(const std::map<std::string, Dim, std::less<>>& values) const;
  void collect_symbols(std::map<std::string, Range, std::less<>>& symbols) const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  /// sign of the divisor; a - b*floor_div(a, b)
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

  /// Proven equal: canonical forms agree. `!=` only says that equality was not proven.
  friend bool operator==(const Dim& a, const Dim& b);
  /// A total order on canonical forms, for sorting; says nothing about values.
  friend bool canonical_less(const Dim& a, const Dim& b);

  /// Prints as `2*s + 1`, `floor((h - 1)/2) + 1`, `max(a, b)`, `mod(s, 4)`; parse_dim undoes it.
  friend std::string to_string(const Dim& dim);

 private:
  friend struct DimExpr;
  explicit Dim(std::shared_ptr<const DimExpr> expr);
  std::int64_t value_ = 0;
  // Shared because it never changes; the style's rule against sharing is about what can.
  std::shared_ptr<const DimExpr> expr_;
};

using Dims = std::vector<Dim>;
using DimBindings = std::map<std::string, Dim, std::less<>>;
using SymbolRanges = std::map<std::string, Range, std::less<>>;

/// True when the two cannot be equal for any values of their symbols.
bool provably_different(const Dim& a, const Dim& b);
/// True when a <= b for every value of their symbols.
bool provably_at_most(const Dim& a, const Dim& b);

/// "[N, 3, 224]"
std::string to_string(const Dims& dims);
Dim product(const Dims& dims);
bool all_constant(const Dims& dims);
/// The numbers; asks that all are constant.
std::vector<std::int64_t> constants(const Dims& dims);
Dims substitute(const Dims& dims, const DimBindings& values);

/// Parses the text form of one dim; symbols take their range from `ranges`, else the default one.
/// Throws Error with the column on bad text.
Dim parse_dim(std::string_view text, const SymbolRanges& ranges = {});

}  // namespace tenon
