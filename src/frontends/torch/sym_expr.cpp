#include "frontends/torch/sym_expr.h"

#include "base/error.h"
#include "base/text.h"

#include <cctype>
#include <charconv>
#include <functional>
#include <vector>

namespace tenon::frontends::torch {
namespace {

constexpr int kMaxDepth = 100;
constexpr std::int64_t kMaxPower = 16;

class Parser {
 public:
  Parser(std::string_view text, const SymbolRanges& ranges) : text_(text), ranges_(ranges) {}

  Dim run() {
    const Dim value = expression(0);
    if (at_ != text_.size()) throw fault("the end of the expression");
    return value;
  }

 private:
  Error fault(std::string_view expected) const {
    return Error("an extent's expression is malformed")
        .expected(expected, " at character ", at_ + 1)
        .got(text_);
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    if (at_ == begin) throw fault("a name");
    return text_.substr(begin, at_ - begin);
  }

  bool skip(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return true;
  }
  void require(char c) {
    if (!skip(c)) throw fault(concat("'", c, "'"));
  }

  Dim expression(int depth) {
    if (depth > kMaxDepth) throw fault("fewer than 100 levels");
    const std::string_view name = word();
    require('(');
    if (name == "Integer") return integer();
    if (name == "Symbol") return symbol();
    std::vector<Dim> args;
    do {
      if (!args.empty() && is_keyword()) {  // evaluate=False
        word(), require('='), word();
      } else {
        args.push_back(expression(depth + 1));
      }
    } while (skip(','));
    require(')');
    return call(name, args);
  }

  bool is_keyword() const {
    const std::size_t end = text_.find_first_of("(=,)", at_);
    return end != std::string_view::npos && text_[end] == '=';
  }

  Dim integer() {
    std::int64_t number = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc()) throw fault("an integer of 64 bits");
    at_ = static_cast<std::size_t>(end - text_.data());
    require(')');
    return number;
  }

  // Assumptions of the symbol follow its name.
  Dim symbol() {
    require('\'');
    const std::string_view name = word();
    require('\'');
    while (skip(',')) word(), require('='), word();
    require(')');
    const auto range = ranges_.find(name);
    return range == ranges_.end() ? Dim::symbol(std::string(name))
                                  : Dim::symbol(std::string(name), range->second);
  }

  Dim call(std::string_view name, const std::vector<Dim>& args) const {
    using Fold = std::function<Dim(const Dim&, const Dim&)>;
    const auto folded = [&](const Fold& fold) {
      Dim value = args.front();
      for (std::size_t k = 1; k < args.size(); ++k) value = fold(value, args[k]);
      return value;
    };
    if (name == "Identity" && args.size() == 1) return args[0];
    if (name == "Add") return folded([](const Dim& a, const Dim& b) { return a + b; });
    if (name == "Mul") return folded([](const Dim& a, const Dim& b) { return a * b; });
    if (name == "Max") return folded([](const Dim& a, const Dim& b) { return max(a, b); });
    if (name == "Min") return folded([](const Dim& a, const Dim& b) { return min(a, b); });
    if (args.size() == 2) {
      const Dim &a = args[0], &b = args[1];
      if (name == "FloorDiv" || name == "CleanDiv") return floor_div(a, b);
      if (name == "CeilDiv") return ceil_div(a, b);
      if (name == "Mod" || name == "PythonMod") return mod(a, b);
      if ((name == "Pow" || name == "PowByNatural") && b.is_constant() && b.constant() >= 0 &&
          b.constant() <= kMaxPower) {
        Dim value = 1;
        for (std::int64_t k = 0; k < b.constant(); ++k) value = value * a;
        return value;
      }
    }
    throw Error(concat("extents cannot be computed by '", name, "'"), ErrorKind::Unsupported)
        .got(text_);
  }

  std::string_view text_;
  const SymbolRanges& ranges_;
  std::size_t at_ = 0;
};

}  // namespace

Dim parse_sym_expr(std::string_view text, const SymbolRanges& ranges) {
  if (text.find("Symbol(") == std::string_view::npos &&
      text.find("Integer(") == std::string_view::npos)
    return parse_dim(text, ranges);
  return Parser(text, ranges).run();
}

}  // namespace tenon::frontends::torch
