#pragma once

#include "ir/dim.h"

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// The canonical form inside a Dim; only the dim*.cpp files look here.
namespace tenon {

namespace symbolic {

/// What a product is made of. mod(a, b) is not an atom but a - b*floor(a/b), so that the two agree.
struct Atom {
  enum class Kind : std::uint8_t { Symbol, FloorDiv, Min, Max, Broadcast };
  Kind kind = Kind::Symbol;
  /// of a symbol; one name is one symbol
  std::string name;
  /// numerator and denominator, or the members of a min, max or broadcast
  std::vector<Dim> arguments;
  Range range;
  int depth = 1;
  /// counted as a tree, which bounds all that walks it
  int size = 1;
};

struct Factor {
  std::shared_ptr<const Atom> atom;
  int power = 1;
};
/// atoms ascending
using Monomial = std::vector<Factor>;

struct Term {
  std::int64_t coefficient = 1;
  Monomial factors;
};

std::strong_ordering compare(const Atom& a, const Atom& b);
std::strong_ordering compare(const Dim& a, const Dim& b);
/// Graded lexicographic, greatest first: an order that products keep, which long division needs.
std::strong_ordering compare(const Monomial& a, const Monomial& b);

/// a/b, or nothing when some atom of b is missing in a.
std::optional<Monomial> quotient_of(const Monomial& a, const Monomial& b);

/// Sums and products, refused with an Error where they leave what extents can be.
std::int64_t checked_add(std::int64_t a, std::int64_t b);
std::int64_t checked_multiply(std::int64_t a, std::int64_t b);
/// Floors toward minus infinity; refuses a divisor of zero.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b);

// Interval arithmetic. The ends of int64 stand for infinity: nothing known on that side.
inline constexpr std::int64_t kNoLowerBound = INT64_MIN;
inline constexpr std::int64_t kNoUpperBound = INT64_MAX;
inline constexpr Range kUnbounded = {kNoLowerBound, kNoUpperBound};
Range sum_of(Range a, Range b);
Range product_of(Range a, Range b);
Range floor_quotient_of(Range a, Range b);
Range intersection_of(Range a, Range b);
inline bool excludes_zero(Range range) { return range.lo > 0 || range.hi < 0; }

/// Of the extent that members broadcast to.
Range range_of_broadcast(const std::vector<Dim>& members);
/// The atom with its range, depth and size worked out; throws Error when it is too large.
std::shared_ptr<const Atom> make_atom(Atom::Kind kind, std::vector<Dim> arguments);

}  // namespace symbolic

/// A sum of terms, greatest monomial first, none with coefficient zero, plus a number.
struct DimExpr {
  std::vector<symbolic::Term> terms;
  std::int64_t constant = 0;

  /// null for numbers
  static const DimExpr* inside(const Dim& dim) { return dim.expr_.get(); }
  static DimExpr of(const Dim& dim);
  /// Throws Error for an expression of absurd size.
  static Dim wrap(DimExpr expr);
  static Dim of_atom(std::shared_ptr<const symbolic::Atom> atom);
  static Dim of_term(symbolic::Term term);

  /// The sum without the term at `index`.
  Dim without(std::size_t index) const;
};

namespace symbolic {

/// dim == rest + scale*mod(a, b), where taking the mod out leaves a smaller sum.
struct ModSplit {
  Dim rest, scale, a, b;
};
std::optional<ModSplit> split_mod(const Dim& dim);

/// The least or greatest of the members, flattened and canonical; asks for at least one.
Dim extremum_of(Atom::Kind kind, std::vector<Dim> members);

/// The extent that all members broadcast to, flattened and canonical; asks for at least one.
Dim broadcast_of(std::vector<Dim> members);

/// The atom of term `index` when that term is a number times one atom of this kind, else null.
const Atom* linear_atom(const DimExpr& expr, std::size_t index, Atom::Kind kind);

}  // namespace symbolic

}  // namespace tenon
