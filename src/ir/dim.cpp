#include "ir/dim.h"

#include "base/error.h"
#include "ir/dim_expr.h"
#include "ir/extent_too_large.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tenon::inline ir {

using symbolic::Atom;
using symbolic::checked_add;
using symbolic::checked_multiply;
using symbolic::Factor;
using symbolic::Monomial;
using symbolic::Term;

namespace {

// Real models stay far below these limits; a hostile model must not make sums explode.
constexpr std::size_t kMaxTerms = 200;
constexpr int kMaxDegree = 64;
constexpr int kMaxDepth =
    30;  // each level prints at most two pairs of parentheses, and the parser accepts 64
constexpr int kMaxSize = 4000;

[[noreturn]] void throw_too_large(std::string_view limit) { throw ExtentTooLarge(limit); }

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

// A result may exceed kMaxExtent only if its magnitude is at most that of an operand: huge bounds
// that mean "to the end" in a slice survive shifting, and a product never grows.
void require_extent(std::int64_t result, std::int64_t a, std::int64_t b, std::string_view sign) {
  const std::uint64_t limit =
      std::max({static_cast<std::uint64_t>(kMaxExtent), magnitude(a), magnitude(b)});
  if (magnitude(result) > limit) throw Error("extent overflows").got(a, sign, b);
}

int degree_of(const Monomial& monomial) {
  int degree = 0;
  for (const Factor& factor : monomial) degree += factor.power;
  return degree;
}

int size_of(const DimExpr& expr) {
  int size = 0;
  for (const Term& term : expr.terms) {
    for (const Factor& factor : term.factors)
      size = std::min(size + factor.atom->size, kMaxSize + 1);
  }
  return size;
}

DimExpr scaled(DimExpr expr, std::int64_t scale) {
  for (Term& term : expr.terms) term.coefficient = checked_multiply(term.coefficient, scale);
  expr.constant = checked_multiply(expr.constant, scale);
  return expr;
}

DimExpr sum(const DimExpr& a, const DimExpr& b) {
  DimExpr result;
  result.constant = checked_add(a.constant, b.constant);
  result.terms.reserve(a.terms.size() + b.terms.size());
  auto i = a.terms.begin(), j = b.terms.begin();
  while (i != a.terms.end() && j != b.terms.end()) {
    const auto order = compare(i->factors, j->factors);
    if (order < 0) {
      result.terms.push_back(*i++);
    } else if (order > 0) {
      result.terms.push_back(*j++);
    } else {
      const std::int64_t coefficient = checked_add(i->coefficient, j->coefficient);
      if (coefficient != 0) result.terms.push_back({coefficient, i->factors});
      ++i, ++j;
    }
  }
  result.terms.insert(result.terms.end(), i, a.terms.end());
  result.terms.insert(result.terms.end(), j, b.terms.end());
  return result;
}

Monomial product(const Monomial& a, const Monomial& b) {
  Monomial result;
  result.reserve(a.size() + b.size());
  auto i = a.begin(), j = b.begin();
  while (i != a.end() && j != b.end()) {
    const auto order = compare(*i->atom, *j->atom);
    if (order < 0) {
      result.push_back(*i++);
    } else if (order > 0) {
      result.push_back(*j++);
    } else {
      result.push_back({i->atom, i->power + j->power});
      ++i, ++j;
    }
  }
  result.insert(result.end(), i, a.end());
  result.insert(result.end(), j, b.end());
  return result;
}

DimExpr product(const DimExpr& a, const DimExpr& b) {
  if (a.terms.size() * b.terms.size() > kMaxTerms * 50) throw_too_large("200 terms");
  std::vector<Term> all;
  for (const Term& x : a.terms) {
    for (const Term& y : b.terms) {
      all.push_back(
          {checked_multiply(x.coefficient, y.coefficient), product(x.factors, y.factors)});
    }
    if (b.constant != 0) all.push_back({checked_multiply(x.coefficient, b.constant), x.factors});
  }
  if (a.constant != 0) {
    for (const Term& y : b.terms) {
      all.push_back({checked_multiply(y.coefficient, a.constant), y.factors});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Term& x, const Term& y) { return compare(x.factors, y.factors) < 0; });
  DimExpr result;
  result.constant = checked_multiply(a.constant, b.constant);
  for (Term& term : all) {
    if (!result.terms.empty() && compare(result.terms.back().factors, term.factors) == 0) {
      Term& last = result.terms.back();
      last.coefficient = checked_add(last.coefficient, term.coefficient);
    } else {
      if (!result.terms.empty() && result.terms.back().coefficient == 0) result.terms.pop_back();
      result.terms.push_back(std::move(term));
    }
  }
  if (!result.terms.empty() && result.terms.back().coefficient == 0) result.terms.pop_back();
  return result;
}

/// Evaluates canonical forms with some symbols replaced, each shared atom once.
class DimSubstitution {
 public:
  explicit DimSubstitution(const DimBindings& values) : values_(values) {}

  Dim apply(const Dim& dim) {
    const DimExpr* expr = DimExpr::inside(dim);
    if (expr == nullptr) return dim;
    Dim result = expr->constant;
    for (const Term& term : expr->terms) {
      Dim value = term.coefficient;
      for (const Factor& factor : term.factors) {
        const Dim base = apply(factor.atom);
        for (int i = 0; i < factor.power; ++i) value = value * base;
      }
      result = result + value;
    }
    return result;
  }

 private:
  Dim apply(const std::shared_ptr<const Atom>& atom) {
    if (atom->kind == Atom::Kind::Symbol) {
      const auto found = values_.find(atom->name);
      if (found == values_.end()) return DimExpr::of_atom(atom);
      is_changed_ = true;
      return found->second;
    }
    if (const auto known = known_.find(atom.get()); known != known_.end()) {
      is_changed_ |= known->second.second;
      return known->second.first;
    }
    // A flag rather than a comparison: a symbol may be replaced by itself with another range.
    const bool was_changed = std::exchange(is_changed_, false);
    std::vector<Dim> arguments;
    arguments.reserve(atom->arguments.size());
    for (const Dim& argument : atom->arguments) arguments.push_back(apply(argument));
    Dim value = !is_changed_                         ? DimExpr::of_atom(atom)
                : atom->kind == Atom::Kind::FloorDiv ? floor_div(arguments[0], arguments[1])
                : atom->kind == Atom::Kind::Broadcast
                    ? symbolic::broadcast_of(std::move(arguments))
                    : symbolic::extremum_of(atom->kind, std::move(arguments));
    known_.emplace(atom.get(), std::pair(value, is_changed_));
    is_changed_ |= was_changed;
    return value;
  }

  const DimBindings& values_;
  bool is_changed_ = false;
  std::map<const Atom*, std::pair<Dim, bool>>
      known_;  // never iterated, so the hash order has no effect
};

}  // namespace

namespace symbolic {

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw Error("extent overflows").got(a, " + ", b);
  require_extent(result, a, b, " + ");
  return result;
}

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw Error("extent overflows").got(a, " * ", b);
  require_extent(result, a, b, " * ");
  return result;
}

std::strong_ordering compare(const Dim& a, const Dim& b) {
  const DimExpr *x = DimExpr::inside(a), *y = DimExpr::inside(b);
  if (x == nullptr || y == nullptr) {
    if (x == nullptr && y == nullptr) return a.constant() <=> b.constant();
    return (x != nullptr) <=> (y != nullptr);
  }
  if (x == y) return std::strong_ordering::equal;
  for (std::size_t i = 0; i < std::min(x->terms.size(), y->terms.size()); ++i) {
    const Term &s = x->terms[i], &t = y->terms[i];
    if (const auto order = compare(s.factors, t.factors); order != 0) return order;
    if (const auto order = s.coefficient <=> t.coefficient; order != 0) return order;
  }
  if (const auto order = x->terms.size() <=> y->terms.size(); order != 0) return order;
  return x->constant <=> y->constant;
}

std::strong_ordering compare(const Atom& a, const Atom& b) {
  if (&a == &b) return std::strong_ordering::equal;
  if (const auto order = a.kind <=> b.kind; order != 0) return order;
  if (const int order = a.name.compare(b.name); order != 0) return order <=> 0;
  for (std::size_t i = 0; i < std::min(a.arguments.size(), b.arguments.size()); ++i) {
    if (const auto order = compare(a.arguments[i], b.arguments[i]); order != 0) return order;
  }
  return a.arguments.size() <=> b.arguments.size();
}

std::strong_ordering compare(const Monomial& a, const Monomial& b) {
  if (const auto order = degree_of(b) <=> degree_of(a); order != 0) return order;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (const auto order = compare(*a[i].atom, *b[i].atom); order != 0) return order;
    if (const auto order = b[i].power <=> a[i].power; order != 0) return order;
  }
  return a.size() <=> b.size();
}

std::optional<Monomial> quotient_of(const Monomial& a, const Monomial& b) {
  Monomial result;
  auto j = b.begin();
  for (const Factor& factor : a) {
    int power = factor.power;
    if (j != b.end() && compare(*factor.atom, *j->atom) == 0) power -= (j++)->power;
    if (power < 0) return std::nullopt;
    if (power > 0) result.push_back({factor.atom, power});
  }
  if (j != b.end()) return std::nullopt;
  return result;
}

const Atom* linear_atom(const DimExpr& expr, std::size_t index, Atom::Kind kind) {
  const Monomial& factors = expr.terms[index].factors;
  if (factors.size() != 1 || factors[0].power != 1 || factors[0].atom->kind != kind) return nullptr;
  return factors[0].atom.get();
}

std::shared_ptr<const Atom> make_atom(Atom::Kind kind, std::vector<Dim> arguments) {
  auto atom = std::make_shared<Atom>();
  atom->kind = kind;
  atom->arguments = std::move(arguments);
  for (const Dim& argument : atom->arguments) {
    const DimExpr* expr = DimExpr::inside(argument);
    if (expr == nullptr) continue;
    atom->size += size_of(*expr);
    for (const Term& term : expr->terms) {
      for (const Factor& factor : term.factors) {
        atom->depth = std::max(atom->depth, factor.atom->depth + 1);
      }
    }
  }
  if (atom->depth > kMaxDepth) throw_too_large("30 floors, minima and maxima inside each other");
  if (atom->size > kMaxSize) throw_too_large("4000 symbols and operations");
  atom->range = kind == Atom::Kind::FloorDiv
                    ? floor_quotient_of(atom->arguments[0].range(), atom->arguments[1].range())
                    : atom->arguments[0].range();
  if (kind == Atom::Kind::FloorDiv) return atom;
  if (kind == Atom::Kind::Broadcast) {
    atom->range = range_of_broadcast(atom->arguments);
    return atom;
  }
  for (const Dim& argument : atom->arguments) {
    const Range range = argument.range();
    Range& all = atom->range;
    all = kind == Atom::Kind::Min ? Range{std::min(all.lo, range.lo), std::min(all.hi, range.hi)}
                                  : Range{std::max(all.lo, range.lo), std::max(all.hi, range.hi)};
  }
  return atom;
}

}  // namespace symbolic

DimExpr DimExpr::of(const Dim& dim) {
  if (const DimExpr* expr = inside(dim)) return *expr;
  return {{}, dim.constant()};
}

Dim DimExpr::wrap(DimExpr expr) {
  if (expr.terms.empty()) return expr.constant;
  if (expr.terms.size() > kMaxTerms) throw_too_large("200 terms");
  if (degree_of(expr.terms.front().factors) > kMaxDegree)
    throw_too_large("64 factors in a product");
  if (size_of(expr) > kMaxSize) throw_too_large("4000 symbols and operations");
  return Dim(std::make_shared<const DimExpr>(std::move(expr)));
}

Dim DimExpr::of_term(Term term) {
  if (term.factors.empty()) return term.coefficient;
  DimExpr expr;
  expr.terms.push_back(std::move(term));
  return wrap(std::move(expr));
}

Dim DimExpr::of_atom(std::shared_ptr<const Atom> atom) {
  return of_term({1, {{std::move(atom), 1}}});
}

Dim DimExpr::without(std::size_t index) const {
  DimExpr rest = *this;
  rest.terms.erase(rest.terms.begin() + static_cast<std::ptrdiff_t>(index));
  return wrap(std::move(rest));
}

Dim::Dim(std::shared_ptr<const DimExpr> expr) : expr_(std::move(expr)) {}

Dim Dim::symbol(std::string name, Range range) {
  if (range.lo > range.hi) {
    throw Error(concat("the range of extent '", name, "' is empty"))
        .got("[", range.lo, ", ", range.hi, "]");
  }
  auto atom = std::make_shared<Atom>();
  atom->name = std::move(name);
  atom->range = range;
  return DimExpr::of_atom(std::move(atom));
}

std::int64_t Dim::constant() const {
  TENON_ASSERT(is_constant(), "the extent is a number");
  return value_;
}

std::optional<std::int64_t> Dim::value() const {
  if (!is_constant()) return std::nullopt;
  return value_;
}

std::optional<std::string> Dim::symbol_name() const {
  if (is_constant() || expr_->terms.size() != 1 || expr_->constant != 0) return std::nullopt;
  const Atom* atom = linear_atom(*expr_, 0, Atom::Kind::Symbol);
  if (atom == nullptr || expr_->terms[0].coefficient != 1) return std::nullopt;
  return atom->name;
}

Dim Dim::substitute(const DimBindings& values) const {
  if (is_constant() || values.empty()) return *this;
  return DimSubstitution(values).apply(*this);
}

void Dim::collect_symbols(SymbolRanges& symbols) const {
  if (is_constant()) return;
  for (const Term& term : expr_->terms) {
    for (const Factor& factor : term.factors) {
      if (factor.atom->kind == Atom::Kind::Symbol) {
        symbols.emplace(factor.atom->name, factor.atom->range);
      }
      for (const Dim& argument : factor.atom->arguments) argument.collect_symbols(symbols);
    }
  }
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_add(a.value_, b.value_);
  if (a.is_constant() && a.value_ == 0) return b;
  if (b.is_constant() && b.value_ == 0) return a;
  return DimExpr::wrap(sum(DimExpr::of(a), DimExpr::of(b)));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    std::int64_t result = 0;
    if (__builtin_sub_overflow(a.value_, b.value_, &result)) {
      throw Error("extent overflows").got(a.value_, " - ", b.value_);
    }
    require_extent(result, a.value_, b.value_, " - ");
    return result;
  }
  if (b.is_constant() && b.value_ == 0) return a;
  return DimExpr::wrap(sum(DimExpr::of(a), scaled(DimExpr::of(b), -1)));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_multiply(a.value_, b.value_);
  if (a.is_constant()) return b * a;
  if (b.is_constant()) {
    if (b.value_ == 0) return 0;
    if (b.value_ == 1) return a;
    return DimExpr::wrap(scaled(*a.expr_, b.value_));
  }
  return DimExpr::wrap(product(*a.expr_, *b.expr_));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return a.value_ == b.value_;
  return symbolic::compare(a, b) == 0;
}

bool canonical_less(const Dim& a, const Dim& b) { return symbolic::compare(a, b) < 0; }

Dim product(const Dims& dims) {
  // Zero first: an empty tensor has zero elements however large its other extents.
  if (std::find(dims.begin(), dims.end(), Dim(0)) != dims.end()) return 0;
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

bool all_constant(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_constant(); });
}

std::vector<std::int64_t> constants(const Dims& dims) {
  std::vector<std::int64_t> values;
  values.reserve(dims.size());
  for (const Dim& dim : dims) values.push_back(dim.constant());
  return values;
}

Dims substitute(const Dims& dims, const DimBindings& values) {
  Dims result;
  result.reserve(dims.size());
  for (const Dim& dim : dims) result.push_back(dim.substitute(values));
  return result;
}

}  // namespace tenon::inline ir
