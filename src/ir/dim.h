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

namespace tenon::inline ir {

/// A closed range of integers.
struct Range {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  bool operator==(const Range&) const = default;
};

/// Largest extent. Larger sums and products are refused as an error of the model.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 56;

struct DimExpr;  // canonical form of a non-constant dim; see dim_expr.h

/// An extent or any integer computed from extents: a number, a named symbol with a range, or an
/// arithmetic expression of those. Kept in canonical form, so that equal text means equal value and
/// `==` proves equality: `2*(s+1)-2 == 2*s`.
class Dim {
 public:
  Dim() = default;
  Dim(std::int64_t value) : value_(value) {}  // NOLINT: numbers are dims
  static Dim symbol(std::string name, Range range = {0, kMaxExtent});

  bool is_constant() const { return expr_ == nullptr; }
  /// The number. Requires `is_constant()`.
  std::int64_t constant() const;
  std::optional<std::int64_t> value() const;
  /// The symbol's name if this is a single symbol.
  std::optional<std::string> symbol_name() const;
  /// The values that this can take while every symbol stays in its range.
  Range range() const;

  /// Replaces symbols; a symbol that is not in the map stays.
  Dim substitute(const std::map<std::string, Dim, std::less<>>& values) const;
  void collect_symbols(std::map<std::string, Range, std::less<>>& symbols) const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  /// Takes the sign of the divisor: a - b*floor_div(a, b).
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

  /// Returns whether the canonical forms agree, which proves equality. `!=` only means that
  /// equality was not proven.
  friend bool operator==(const Dim& a, const Dim& b);
  /// A total order on canonical forms, for sorting; says nothing about values.
  friend bool canonical_less(const Dim& a, const Dim& b);

  /// Prints e.g. `2*s + 1`, `floor((h - 1)/2) + 1`, `max(a, b)`, `mod(s, 4)`; the inverse of
  /// parse_dim.
  friend std::string to_string(const Dim& dim);

 private:
  friend struct DimExpr;
  explicit Dim(std::shared_ptr<const DimExpr> expr);
  std::int64_t value_ = 0;
  // Shared because it is immutable; the style's rule against sharing concerns mutable state.
  std::shared_ptr<const DimExpr> expr_;
};

using Dims = std::vector<Dim>;
using DimBindings = std::map<std::string, Dim, std::less<>>;
using SymbolRanges = std::map<std::string, Range, std::less<>>;

/// Returns whether the two differ for all values of their symbols.
bool provably_different(const Dim& a, const Dim& b);
/// Returns whether a <= b for all values of their symbols.
bool provably_at_most(const Dim& a, const Dim& b);

/// Returns e.g. "[N, 3, 224]".
std::string to_string(const Dims& dims);
Dim product(const Dims& dims);
bool all_constant(const Dims& dims);
/// The numbers. Requires that all dims are constant.
std::vector<std::int64_t> constants(const Dims& dims);
Dims substitute(const Dims& dims, const DimBindings& values);

/// Parses the text form of one dim. Symbols take their range from `ranges`, else the default range.
/// Throws Error with the column on bad text.
Dim parse_dim(std::string_view text, const SymbolRanges& ranges = {});

}  // namespace tenon::inline ir
