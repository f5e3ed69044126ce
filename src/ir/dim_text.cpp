#include "base/error.h"
#include "base/text.h"
#include "ir/dim_expr.h"
#include "ir/letters.h"
#include "ir/text_cursor.h"

#include <algorithm>
#include <charconv>

namespace tenon::inline ir {

using symbolic::Atom;
using symbolic::Factor;
using symbolic::Term;

namespace {

bool is_identifier(std::string_view name) {
  TextCursor cursor{name, "name"};
  return !name.empty() && cursor.accept_identifier().size() == name.size();
}

void append_sum(std::string& text, const Dim& dim);

bool is_sum(const Dim& dim) {
  const DimExpr* expr = DimExpr::inside(dim);
  return expr != nullptr && (expr->terms.size() > 1 || expr->constant != 0);
}

void append_in_parentheses(std::string& text, const Dim& dim, bool is_needed) {
  if (is_needed) text += '(';
  append_sum(text, dim);
  if (is_needed) text += ')';
}

void append_call(std::string& text, std::string_view name, const std::vector<Dim>& arguments) {
  text += name;
  text += '(';
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i > 0) text += ", ";
    append_sum(text, arguments[i]);
  }
  text += ')';
}

void append_atom(std::string& text, const Atom& atom) {
  switch (atom.kind) {
    case Atom::Kind::Symbol:
      text += is_identifier(atom.name) ? atom.name : quote(atom.name);
      break;
    case Atom::Kind::FloorDiv: {
      const Dim &numerator = atom.arguments[0], &denominator = atom.arguments[1];
      const DimExpr* divisor = DimExpr::inside(denominator);
      const bool is_product = divisor != nullptr && (divisor->terms[0].coefficient != 1 ||
                                                     divisor->terms[0].factors.size() > 1 ||
                                                     divisor->terms[0].factors[0].power > 1);
      text += "floor(";
      append_in_parentheses(text, numerator, is_sum(numerator));
      text += '/';
      append_in_parentheses(text, denominator, is_product || is_sum(denominator));
      text += ')';
      break;
    }
    case Atom::Kind::Min:
      append_call(text, "min", atom.arguments);
      break;
    case Atom::Kind::Max:
      append_call(text, "max", atom.arguments);
      break;
    case Atom::Kind::Broadcast:
      append_call(text, "broadcast", atom.arguments);
      break;
  }
}

/// Prints a sum "a - b + c" term by term.
class SumPrinter {
 public:
  explicit SumPrinter(std::string& text) : text_(text), begin_(text.size()) {}

  void append_sign(bool is_negative) {
    const bool is_first = text_.size() == begin_;
    text_ += is_first ? (is_negative ? "-" : "") : (is_negative ? " - " : " + ");
  }
  /// Appends the sign and magnitude of the coefficient of the next factor.
  void append_coefficient(std::int64_t value, bool is_alone) {
    append_sign(value < 0);
    const std::uint64_t size =
        value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    if (size != 1 || is_alone) text_ += std::to_string(size);
    if (size != 1 && !is_alone) text_ += '*';
  }
  void append_factors(const std::vector<Factor>& factors) {
    bool is_first = true;
    for (const Factor& factor : factors) {
      for (int i = 0; i < factor.power; ++i) {
        if (!is_first) text_ += '*';
        is_first = false;
        append_atom(text_, *factor.atom);
      }
    }
  }

 private:
  std::string& text_;
  std::size_t begin_;
};

std::size_t weight(const Dim& dim) {
  const DimExpr expr = DimExpr::of(dim);
  return expr.terms.size() + (expr.constant != 0 ? 1 : 0);
}

bool has_extremum(const DimExpr& expr) {
  for (const Term& term : expr.terms) {
    for (const Factor& factor : term.factors) {
      if (factor.atom->kind >= Atom::Kind::Min) return true;
    }
  }
  return false;
}

struct ShiftedExtremum {
  Dim rest;
  std::string_view name;
  std::vector<Dim> members;
};

/// The canonical form moves common terms of the members out of a max; this moves them back in if
/// the text gets shorter: max(3, s) - 3 prints as max(0, s - 3). Both parse to the same dim.
std::optional<ShiftedExtremum> shift_into_extremum(const DimExpr& expr) {
  for (std::size_t i = 0; i < expr.terms.size(); ++i) {
    const Atom* atom = linear_atom(expr, i, Atom::Kind::Min);
    if (atom == nullptr) atom = linear_atom(expr, i, Atom::Kind::Max);
    if (atom == nullptr || expr.terms[i].coefficient != 1) continue;
    const Dim rest = expr.without(i), number = expr.constant;
    std::vector<Dim> shifts = {Dim(0), number};
    if (!has_extremum(DimExpr::of(rest))) shifts.push_back(rest);
    std::optional<ShiftedExtremum> best;
    std::size_t best_weight = 0;
    for (const Dim& shift : shifts) {
      ShiftedExtremum shifted{rest - shift, atom->kind == Atom::Kind::Min ? "min" : "max", {}};
      std::size_t total = weight(shifted.rest);
      for (const Dim& member : atom->arguments) {
        shifted.members.push_back(member + shift);
        total += weight(shifted.members.back());
      }
      if (best && total >= best_weight) continue;
      best = std::move(shifted);
      best_weight = total;
    }
    std::sort(best->members.begin(), best->members.end(),
              [](const Dim& a, const Dim& b) { return canonical_less(a, b); });
    return best;
  }
  return std::nullopt;
}

/// mod(s - 3, 4) prints as mod(s + 1, 4).
Dim mod_dividend(const symbolic::ModSplit& split) {
  const DimExpr expr = DimExpr::of(split.a);
  return split.b.is_constant() && expr.constant < 0 ? split.a + split.b : split.a;
}

void append_terms(SumPrinter& printer, const DimExpr& expr) {
  for (const Term& term : expr.terms) {
    printer.append_coefficient(term.coefficient, false);
    printer.append_factors(term.factors);
  }
}

void append_sum(std::string& text, const Dim& dim) {
  if (dim.is_constant()) {
    text += std::to_string(dim.constant());
    return;
  }
  Dim rest = dim;
  std::vector<symbolic::ModSplit> mods;
  std::optional<ShiftedExtremum> extremum;
  try {
    extremum = shift_into_extremum(*DimExpr::inside(dim));
    if (extremum) rest = extremum->rest;
  } catch (const Error&) {  // a shift overflows: print the canonical form
    extremum.reset();
  }
  while (auto split = symbolic::split_mod(rest)) {
    rest = split->rest;
    mods.push_back(std::move(*split));
  }
  SumPrinter printer(text);
  const DimExpr expr = DimExpr::of(rest);
  append_terms(printer, expr);
  for (const symbolic::ModSplit& split : mods) {
    const DimExpr scale = DimExpr::of(split.scale);
    printer.append_coefficient(scale.terms.empty() ? scale.constant : scale.terms[0].coefficient,
                               false);
    if (!scale.terms.empty()) {
      printer.append_factors(scale.terms[0].factors);
      text += '*';
    }
    append_call(text, "mod", {mod_dividend(split), split.b});
  }
  if (extremum) {
    printer.append_sign(false);
    append_call(text, extremum->name, extremum->members);
  }
  if (expr.constant != 0) printer.append_coefficient(expr.constant, true);
}

class DimParser {
 public:
  DimParser(TextCursor& cursor, const SymbolRanges& ranges) : cursor_(cursor), ranges_(ranges) {}

  Dim sum() {
    Dim total = product(cursor_.accept('-'));
    while (true) {
      if (cursor_.accept('+')) {
        total = total + product(false);
      } else if (cursor_.accept('-')) {
        total = total + product(true);
      } else {
        return total;
      }
    }
  }

 private:
  static constexpr int kMaxDepth = 64;

  Dim product(bool is_negative) {
    // A leading number takes the sign, so that the least integer can be parsed.
    const bool is_number_first = is_digit(cursor_.peek());
    Dim value = is_number_first ? Dim(number(is_negative)) : primary();
    while (cursor_.accept('*')) value = value * primary();
    return is_negative && !is_number_first ? value * Dim(-1) : value;
  }

  Dim primary() {
    if (++depth_ > kMaxDepth) cursor_.fail("at most 64 levels of parentheses");
    Dim value;
    if (is_digit(cursor_.peek())) {
      value = number(false);
    } else if (cursor_.accept('-')) {
      value = is_digit(cursor_.peek()) ? Dim(number(true)) : primary() * Dim(-1);
    } else if (cursor_.accept('(')) {
      value = sum();
      cursor_.expect(')');
    } else if (cursor_.peek() == '"') {
      value = symbol(quoted_name());
    } else if (const std::string_view name = cursor_.accept_identifier(); !name.empty()) {
      value = cursor_.peek() == '(' ? call(name) : symbol(std::string(name));
    } else {
      cursor_.fail("a number, a name or '('");
    }
    --depth_;
    return value;
  }

  Dim call(std::string_view name) {
    if (name != "floor" && name != "mod" && name != "min" && name != "max" && name != "broadcast") {
      cursor_.position -= name.size();
      cursor_.fail("floor(a/b), mod(a, b), min(…), max(…) or broadcast(…)");
    }
    cursor_.expect('(');
    if (name == "floor") {
      const Dim numerator = product(cursor_.accept('-'));
      cursor_.expect('/');
      const Dim denominator = primary();
      cursor_.expect(')');
      return floor_div(numerator, denominator);
    }
    std::vector<Dim> arguments = {sum()};
    while (cursor_.accept(',')) arguments.push_back(sum());
    if (name == "mod" && arguments.size() != 2) cursor_.fail("two arguments of mod(a, b)");
    cursor_.expect(')');
    if (name == "mod") return mod(arguments[0], arguments[1]);
    if (name == "broadcast") return symbolic::broadcast_of(std::move(arguments));
    return symbolic::extremum_of(name == "min" ? Atom::Kind::Min : Atom::Kind::Max,
                                 std::move(arguments));
  }

  Dim symbol(std::string name) {
    const auto found = ranges_.find(name);
    return found == ranges_.end() ? Dim::symbol(std::move(name))
                                  : Dim::symbol(std::move(name), found->second);
  }

  std::string quoted_name() {
    const std::size_t begin = cursor_.position;
    std::size_t end = begin + 1;
    while (end < cursor_.text.size() && cursor_.text[end] != '"') {
      end += cursor_.text[end] == '\\' ? 2 : 1;
    }
    const auto name = end < cursor_.text.size()
                          ? unquote(cursor_.text.substr(begin, end + 1 - begin))
                          : std::nullopt;
    if (!name) cursor_.fail("a name in double quotes");
    cursor_.position = end + 1;
    return *name;
  }

  std::int64_t number(bool is_negative) {
    const std::string_view rest = cursor_.text.substr(cursor_.position);
    std::uint64_t size = 0;
    const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    const std::uint64_t limit = static_cast<std::uint64_t>(INT64_MAX) + (is_negative ? 1 : 0);
    if (end.ec != std::errc() || size > limit) cursor_.fail("a number of at most 63 bits");
    cursor_.position += static_cast<std::size_t>(end.ptr - rest.data());
    return static_cast<std::int64_t>(is_negative ? -size : size);
  }

  TextCursor& cursor_;
  const SymbolRanges& ranges_;
  int depth_ = 0;
};

}  // namespace

std::string to_string(const Dim& dim) {
  std::string text;
  append_sum(text, dim);
  return text;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ", ";
    append_sum(text, dims[i]);
  }
  return text += ']';
}

Dim parse_dim(TextCursor& cursor, const SymbolRanges& ranges) {
  return DimParser(cursor, ranges).sum();
}

Dim parse_dim(std::string_view text, const SymbolRanges& ranges) {
  TextCursor cursor{text, "extent"};
  Dim dim = parse_dim(cursor, ranges);
  if (!cursor.is_at_end()) cursor.fail("the end of the extent");
  return dim;
}

}  // namespace tenon::inline ir
