#pragma once

#include "ir/dim.h"

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Canonical form inside a Dim. Only the dim*.cpp files include this header.
namespace tenon::inline ir {

namespace symbolic {

/// Factor of a product. mod(a, b) is represented as a - b*floor(a/b) rather than as an atom, so
/// that both forms are equal.
struct Atom {
  enum class Kind : std::uint8_t { Symbol, FloorDiv, Min, Max, Broadcast };
  Kind kind = Kind::Symbol;
  /// Name of a symbol; it identifies the symbol.
  std::string name;
  /// Numerator and denominator, or the members of a min, max or broadcast.
  std::vector<Dim> arguments;
  Range range;
  int depth = 1;
  /// Node count as a tree, which bounds the cost of traversals.
  int size = 1;
};

struct Factor {
  std::shared_ptr<const Atom> atom;
  int power = 1;
};
/// Atoms in ascending order.
using Monomial = std::vector<Factor>;

struct Term {
  std::int64_t coefficient = 1;
  Monomial factors;
};

std::strong_ordering compare(const Atom& a, const Atom& b);
std::strong_ordering compare(const Dim& a, const Dim& b);
/// Graded lexicographic order, greatest first. Multiplication preserves it, which long division
/// needs.
std::strong_ordering compare(const Monomial& a, const Monomial& b);

/// Returns a/b, or nullopt if an atom of b is missing in a.
std::optional<Monomial> quotient_of(const Monomial& a, const Monomial& b);

/// Checked arithmetic. Throws Error if the result leaves the range of extents.
std::int64_t checked_add(std::int64_t a, std::int64_t b);
std::int64_t checked_multiply(std::int64_t a, std::int64_t b);
/// Floors toward minus infinity. Refuses a zero divisor.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b);

// Interval arithmetic. The limits of int64 represent infinity: no bound on that side.
inline constexpr std::int64_t kNoLowerBound = INT64_MIN;
inline constexpr std::int64_t kNoUpperBound = INT64_MAX;
inline constexpr Range kUnbounded = {kNoLowerBound, kNoUpperBound};
Range sum_of(Range a, Range b);
Range product_of(Range a, Range b);
Range floor_quotient_of(Range a, Range b);
Range intersection_of(Range a, Range b);
inline bool excludes_zero(Range range) { return range.lo > 0 || range.hi < 0; }

/// Range of the extent that the members broadcast to.
Range range_of_broadcast(const std::vector<Dim>& members);
/// Builds an atom and computes its range, depth and size. Throws Error if it is too large.
std::shared_ptr<const Atom> make_atom(Atom::Kind kind, std::vector<Dim> arguments);

}  // namespace symbolic

/// Sum of terms, greatest monomial first, without zero coefficients, plus a number.
struct DimExpr {
  std::vector<symbolic::Term> terms;
  std::int64_t constant = 0;

  /// Null for numbers.
  static const DimExpr* inside(const Dim& dim) { return dim.expr_.get(); }
  static DimExpr of(const Dim& dim);
  /// Throws Error for an expression of absurd size.
  static Dim wrap(DimExpr expr);
  static Dim of_atom(std::shared_ptr<const symbolic::Atom> atom);
  static Dim of_term(symbolic::Term term);

  /// Returns the sum without the term at `index`.
  Dim without(std::size_t index) const;
};

namespace symbolic {

/// Decomposition dim == rest + scale*mod(a, b), found if extracting the mod leaves a smaller sum.
struct ModSplit {
  Dim rest, scale, a, b;
};
std::optional<ModSplit> split_mod(const Dim& dim);

/// Returns the canonical, flattened minimum or maximum of the members. Requires at least one.
Dim extremum_of(Atom::Kind kind, std::vector<Dim> members);

/// Returns the canonical, flattened extent that all members broadcast to. Requires at least one.
Dim broadcast_of(std::vector<Dim> members);

/// Returns the atom of term `index` if that term is a number times one atom of this kind, else
/// null.
const Atom* linear_atom(const DimExpr& expr, std::size_t index, Atom::Kind kind);

}  // namespace symbolic

}  // namespace tenon::inline ir
