#include "expr/equation.h"

#include "base/error.h"
#include "expr/broadcasting.h"
#include "ir/assumptions.h"

#include <algorithm>
#include <set>

namespace tenon::inline expr {
namespace {

constexpr std::string_view dots = "...";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string without_spaces(std::string_view text) {
  std::string kept;
  std::ranges::copy_if(text, std::back_inserter(kept), [](char c) { return c != ' '; });
  return kept;
}

std::vector<std::string> split_terms(std::string_view text) {
  std::vector<std::string> terms;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = text.find(',', begin);
    terms.emplace_back(text.substr(begin, comma - begin));
    if (comma == std::string_view::npos) return terms;
    begin = comma + 1;
  }
}

struct EquationTerm {
  std::string letters;                  // in order
  std::optional<std::size_t> ellipsis;  // index of the letter after it
};

EquationTerm parse_term(std::string_view equation, std::string_view text) {
  const auto fail = [&](std::string_view why) {
    throw Error(concat("einsum: the equation does not read as one: ", why))
        .expected("letters and at most one ... for each operand, as in 'b...ij,jk->b...ik'")
        .got("'", equation, "'");
  };
  EquationTerm term;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (is_letter(text[k])) {
      term.letters += text[k];
    } else if (text.substr(k, dots.size()) == dots) {
      if (term.ellipsis) fail("an operand has two ellipses");
      term.ellipsis = term.letters.size();
      k += dots.size() - 1;
    } else {
      fail(concat("it has a '", std::string(1, text[k]), "'"));
    }
  }
  return term;
}

}  // namespace

Equation::Equation(std::string_view text, const std::vector<Dims>& operands)
    : text_(text), dims_(operands) {
  const std::string equation = without_spaces(text);
  const std::size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  const std::vector<std::string> terms = split_terms(left);
  if (terms.size() != operands.size()) {
    throw Error("einsum: the equation has another number of operands than the node")
        .expected(operands.size(), " terms")
        .got("'", text, "'");
  }
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const EquationTerm term = parse_term(text, terms[k]);
    const std::size_t rank = operands[k].size(), named = term.letters.size();
    if (term.ellipsis ? rank < named : rank != named) {
      throw Error("einsum: a term does not fit its operand's rank")
          .expected("an operand of rank ", term.ellipsis ? "at least " : "", named, " for '",
                    terms[k], "'")
          .got(operands[k]);
    }
    if (term.ellipsis) ellipsis_ = std::max(ellipsis_, rank - named);
  }
  for (std::size_t k = 0; k < terms.size(); ++k) {
    operands_.push_back(labels_of(terms[k], operands[k].size()));
  }
  std::optional<std::string_view> result;
  if (arrow != std::string::npos) result = std::string_view(equation).substr(arrow + 2);
  set_result(result, left);
  set_extents();
}

Equation::Label Equation::label_of(char letter) {
  std::size_t position = letters_.find(letter);
  if (position == std::string::npos) {
    position = letters_.size();
    letters_ += letter;
  }
  return ellipsis_ + position;
}

Equation::Labels Equation::labels_of(std::string_view text, std::size_t rank) {
  const EquationTerm term = parse_term(text_, text);
  Labels labels;
  const std::size_t under_dots = rank - term.letters.size();
  for (std::size_t k = 0; k <= term.letters.size(); ++k) {
    for (std::size_t d = 0; term.ellipsis == k && d < under_dots; ++d) {
      labels.push_back(ellipsis_ - under_dots + d);
    }
    if (k < term.letters.size()) labels.push_back(label_of(term.letters[k]));
  }
  return labels;
}

// Without an arrow, the result has the ellipsis, then the letters that occur once, in alphabetical
// order.
void Equation::set_result(std::optional<std::string_view> term, std::string_view terms) {
  std::string implied(dots);
  if (!term) {
    for (char letter : std::set<char>(terms.begin(), terms.end())) {
      if (is_letter(letter) && std::ranges::count(terms, letter) == 1) implied += letter;
    }
    term = implied;
  }
  const EquationTerm parsed = parse_term(text_, *term);
  for (char letter : parsed.letters) {
    const bool is_known = letters_.find(letter) != std::string::npos;
    if (is_known && std::ranges::count(parsed.letters, letter) == 1) continue;
    throw Error(concat("einsum: the result's label '", std::string(1, letter),
                       is_known ? "' comes twice" : "' is in no operand"))
        .got("'", text_, "'");
  }
  result_ = labels_of(*term, parsed.letters.size() + (parsed.ellipsis ? ellipsis_ : 0));
}

void Equation::set_extents() {
  extents_.assign(ellipsis_ + letters_.size(), 1);
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    for (std::size_t axis = 0; axis < operands_[k].size(); ++axis) {
      const Dim& extent = dims_[k][axis];
      Dim& known = extents_[operands_[k][axis]];
      const std::optional<Dim> common = assume_broadcast(known, extent);
      if (!common) {
        throw Error("einsum: a label stands for different extents")
            .expected("one extent for each label of '", text_, "'")
            .got(known, " and ", extent);
      }
      known = *common;
    }
  }
}

Dims Equation::result_dims() const {
  Dims dims;
  for (Label label : result_) dims.push_back(extents_[label]);
  return dims;
}

bool Equation::repeats(std::size_t position, std::size_t axis) const {
  return dims_[position][axis] == Dim(1) && !(extents_[operands_[position][axis]] == Dim(1));
}

Axes Equation::add_missing_loops(std::vector<std::optional<std::size_t>>& loop_of,
                                 Dims& loops) const {
  Axes added;
  for (Label label = 0; label < label_count(); ++label) {
    if (loop_of[label]) continue;
    loop_of[label] = loops.size();
    added.push_back(static_cast<std::int64_t>(loops.size()));
    loops.push_back(extents_[label]);
  }
  return added;
}

Expr Equation::read(std::size_t position, const Expr& operand,
                    const std::vector<Expr>& indices) const {
  std::vector<Expr> at;
  for (std::size_t axis = 0; axis < operands_[position].size(); ++axis) {
    const Label label = operands_[position][axis];
    at.push_back(repeats(position, axis)
                     ? integer(0)
                     : broadcast_index(indices[label], dims_[position][axis], extents_[label]));
  }
  return operand.at(std::move(at));
}

Expr sum_over_space(const Space& space, const Expr& product, const Axes& summed) {
  const Expr whole = broadcast(product, space.dims());
  return summed.empty() ? whole : sum_out(whole, summed);
}

}  // namespace tenon::inline expr
