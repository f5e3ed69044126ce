#pragma once

#include "expr/expr.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline expr {

/// Einstein summation: one label per axis of each operand and of the result. Axes of an ellipsis
/// have labels of their own, counted from the last, so that they broadcast.
class Equation {
 public:
  using Label = std::size_t;
  using Labels = std::vector<Label>;

  /// Throws Error for text that is not an equation or does not fit the operands.
  Equation(std::string_view text, const std::vector<Dims>& operands);

  const Labels& operand(std::size_t position) const { return operands_[position]; }
  const Labels& result() const { return result_; }
  std::size_t label_count() const { return extents_.size(); }
  const Dim& extent(Label label) const { return extents_[label]; }
  Dims result_dims() const;
  /// Returns whether an axis of extent 1 is broadcast along its label.
  bool repeats(std::size_t position, std::size_t axis) const;
  /// Appends a loop for every label without one. Returns the axes of the new loops.
  Axes add_missing_loops(std::vector<std::optional<std::size_t>>& loop_of, Dims& loops) const;
  /// Reads an operand at one index per label.
  Expr read(std::size_t position, const Expr& operand, const std::vector<Expr>& indices) const;

 private:
  Labels labels_of(std::string_view term, std::size_t rank);
  Label label_of(char letter);
  void set_result(std::optional<std::string_view> term, std::string_view terms);
  void set_extents();

  std::string text_;
  std::vector<Dims> dims_;
  std::vector<Labels> operands_;
  Labels result_;
  std::vector<Dim> extents_;
  std::string letters_;       // of the labels after those of the ellipsis
  std::size_t ellipsis_ = 0;  // number of its labels, which come first
};

/// Sums `product` over `space` along the given axes.
Expr sum_over_space(const Space& space, const Expr& product, const Axes& summed);

}  // namespace tenon::inline expr
