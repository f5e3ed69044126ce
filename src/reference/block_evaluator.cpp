#include "expr/names.h"
#include "ops/families/scatters.h"
#include "reference/block_math.h"
#include "reference/block_program.h"
#include "reference/evaluate.h"
#include "reference/parallel.h"

#include <algorithm>
#include <map>
#include <type_traits>

namespace tenon::reference {
namespace {

// Below this number of elements another thread does not pay off.
constexpr std::int64_t kParallelElements = 32768;

// Iterates over positions of some axes of a space, the last one fastest.
class Positions {
 public:
  Positions(const Shape& space, std::vector<std::size_t> axes)
      : space_(space), axes_(std::move(axes)) {
    count_ =
        std::ranges::any_of(axes_, [&](std::size_t axis) { return space_[axis] == 0; }) ? 0 : 1;
    for (std::size_t axis : axes_) count_ = count_ == 0 ? 0 : count_ * space_[axis];
  }
  std::int64_t count() const { return count_; }
  void seek(std::int64_t flat, std::vector<std::int64_t>& at) const {
    for (std::size_t k = axes_.size(); k-- > 0;) {
      at[axes_[k]] = flat % space_[axes_[k]];
      flat /= space_[axes_[k]];
    }
  }
  void advance(std::vector<std::int64_t>& at) const {
    for (std::size_t k = axes_.size(); k-- > 0;) {
      if (++at[axes_[k]] < space_[axes_[k]]) return;
      at[axes_[k]] = 0;
    }
  }

 private:
  const Shape& space_;
  std::vector<std::size_t> axes_;
  std::int64_t count_ = 1;
};

std::vector<std::size_t> axes_where(std::size_t rank,
                                    const std::function<bool(std::size_t)>& wanted) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (wanted(axis)) axes.push_back(axis);
  }
  return axes;
}

std::int64_t dot(const std::vector<std::int64_t>& at, const std::vector<std::int64_t>& strides) {
  std::int64_t offset = 0;
  for (std::size_t k = 0; k < at.size(); ++k) offset += at[k] * strides[k];
  return offset;
}

// Integers wrap around.
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                          static_cast<std::make_unsigned_t<T>>(b));
  } else {
    return a + b;
  }
}

// Accumulators of one thread: totals for a block of results, or the best elements with their
// indices.
template <class T>
struct Folded {
  using Accumulator = AccumulatorOf<T>;
  std::vector<Accumulator> totals;
  std::vector<T> best;
  std::vector<std::int64_t> places;
};

class BlockEvaluator {
 public:
  BlockEvaluator(const std::vector<const Tensor*>& operands, int thread_count)
      : operands_(operands), thread_count_(thread_count) {}

  Buffer buffer_of(const Expr& expr) {
    const ExprNode& node = expr.node();
    if (const auto found = made_.find(&node); found != made_.end()) return found->second;
    Buffer buffer;
    // Empty results need no evaluation, and their other extents may overflow loop counters. A
    // scatter into an empty tensor still validates its indices.
    const bool is_made = node.kind != ExprKind::Operand && node.kind != ExprKind::Scatter;
    if (is_made && checked_element_count(constants(node.dims)) == 0) {
      return made_.emplace(&node, make_buffer(lane_of(node.dtype), constants(node.dims)))
          .first->second;
    }
    switch (node.kind) {
      case ExprKind::Operand:
        TENON_ASSERT(node.operand < operands_.size() && operands_[node.operand],
                     "an operand that is read is given");
        buffer = Buffer::of(*operands_[node.operand]);
        break;
      case ExprKind::Reshape:
        buffer = buffer_of(node.args[0]).reshaped(constants(node.dims));
        break;
      case ExprKind::Concat:
        buffer = concatenated(node);
        break;
      case ExprKind::Reduce:
        buffer = reduced(node);
        break;
      case ExprKind::Scan:
        buffer = scanned(node);
        break;
      case ExprKind::Scatter:
        buffer = scattered(node);
        break;
      default: {
        buffer = make_buffer(lane_of(node.dtype), constants(node.dims));
        fill(buffer, 0, buffer.strides, expr);
      }
    }
    made_.emplace(&node, buffer);
    return buffer;
  }

 private:
  BufferSource source() {
    return [this](const Expr& expr) { return buffer_of(expr); };
  }

  int threads_for(std::int64_t elements) const {
    return elements < kParallelElements ? 1 : thread_count_;
  }

  // Evaluates `expr` into a strided region of `out` that starts at `offset`.
  void fill(Buffer& out, std::int64_t offset, std::vector<std::int64_t> strides, const Expr& expr) {
    const Shape space = constants(expr.dims());
    const std::int64_t elements = checked_element_count(space);
    if (elements == 0) return;
    const BlockProgram program(expr, space, std::vector<int>(space.size(), 0), std::move(strides),
                               source());
    with_lane(program.lane(), [&](auto zero) {
      using T = decltype(zero);
      // Text elements are stored as pointers in integers.
      T* to = reinterpret_cast<T*>(out.tensor.mutable_bytes().data()) + offset;
      run_over(
          program, elements,
          [&](std::int64_t at, std::int64_t stride, std::int64_t count, BlockProgram::Block block) {
            for (std::int64_t i = 0; i < count; ++i) to[at + i * stride] = block.at<T>(i);
          });
    });
  }

  // Runs a program over its whole space; `use` receives each block and its offset by extra_strides.
  template <class Use>
  void run_over(const BlockProgram& program, std::int64_t elements, Use use) const {
    const Shape& space = program.space();
    if (space.empty()) {
      BlockProgram::Scratch scratch(program);
      use(0, 1, 1, program.run(scratch, {}, 0, 1));
      return;
    }
    std::size_t axis = space.size() - 1;
    for (std::size_t k = 0; k < space.size(); ++k) {
      if (program.cost_along(k) < program.cost_along(axis)) axis = k;
    }
    const Positions outer(space,
                          axes_where(space.size(), [&](std::size_t k) { return k != axis; }));
    parallel_for(outer.count(), threads_for(elements), [&](std::int64_t begin, std::int64_t end) {
      BlockProgram::Scratch scratch(program);
      std::vector<std::int64_t> at(space.size(), 0);
      outer.seek(begin, at);
      for (std::int64_t k = begin; k < end; ++k, outer.advance(at)) {
        for (at[axis] = 0; at[axis] < space[axis]; at[axis] += BlockProgram::kBlock) {
          const std::int64_t count = std::min(BlockProgram::kBlock, space[axis] - at[axis]);
          const BlockProgram::Block block = program.run(scratch, at, axis, count);
          use(dot(at, program.extra_strides()), program.extra_strides()[axis], count, block);
        }
        at[axis] = 0;
      }
    });
  }

  Buffer concatenated(const ExprNode& node) {
    Buffer out = make_buffer(lane_of(node.dtype), constants(node.dims));
    const std::size_t axis = node.axes.front();
    std::int64_t offset = 0;
    for (const Expr& part : node.args) {
      fill(out, offset, out.strides, part);
      offset += part.dims()[axis].constant() * out.strides[axis];
    }
    return out;
  }

  Buffer reduced(const ExprNode& node) {
    Buffer out = make_buffer(lane_of(node.dtype), constants(node.dims));
    const Expr& body = node.args[0];
    Shape space = constants(body.dims());
    std::vector<int> is_reduced(space.size(), 0);
    for (std::size_t axis : node.axes) is_reduced[axis] = 1;
    std::vector<std::int64_t> strides = out.strides;
    for (std::size_t axis : node.axes) strides[axis] = 0;
    // A scalar is a space with one position.
    if (space.empty()) {
      return reduced_over_nothing(node, body, std::move(out));
    }
    const BlockProgram program(body, std::move(space), is_reduced, std::move(strides), source());
    with_lane(program.lane(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_same_v<T, Text>) {
        throw Error("strings cannot be reduced");
      } else {
        reduce_with<T>(node, program, out);
      }
    });
    return out;
  }

  Buffer reduced_over_nothing(const ExprNode& node, const Expr& body, Buffer out) {
    if (!is_arg(node.reduction)) fill(out, 0, out.strides, body);
    return out;
  }

  template <class T>
  void reduce_with(const ExprNode& node, const BlockProgram& program, Buffer& out) const {
    const Shape& space = program.space();
    const std::vector<int>& is_reduced = program.groups();
    const std::vector<std::size_t> kept =
        axes_where(space.size(), [&](auto k) { return !is_reduced[k]; });
    const std::vector<std::size_t> folded =
        axes_where(space.size(), [&](auto k) { return is_reduced[k]; });
    // Blocks run along a kept axis or along the last reduced one. Both accumulate in row-major
    // order, so the result does not depend on the choice.
    std::size_t axis = folded.empty() ? kept.back() : folded.back();
    for (std::size_t k : kept) {
      if (program.cost_along(k) < program.cost_along(axis)) axis = k;
    }
    const bool along_kept = !is_reduced[axis];
    const auto others = [&](std::vector<std::size_t> axes) {
      std::erase(axes, axis);
      return axes;
    };
    const Positions results(space, others(kept));
    const Positions terms(space, others(folded));
    const std::int64_t block_starts =
        along_kept ? space[axis] / BlockProgram::kBlock + (space[axis] % BlockProgram::kBlock != 0)
                   : 1;
    const std::int64_t elements =
        Positions(space, axes_where(space.size(), [](auto) { return true; })).count();
    using Result = std::conditional_t<std::is_same_v<T, Text>, std::int64_t, T>;
    Result* values =
        is_arg(node.reduction) ? nullptr : out.tensor.template as_mutable<Result>().data();
    std::int64_t* indices =
        is_arg(node.reduction) ? out.tensor.template as_mutable<std::int64_t>().data() : nullptr;
    const std::int64_t stride = program.extra_strides()[axis];

    parallel_for(
        results.count() * block_starts, threads_for(elements),
        [&](std::int64_t begin, std::int64_t end) {
          BlockProgram::Scratch scratch(program);
          std::vector<std::int64_t> at(space.size(), 0);
          Folded<T> state;
          for (std::int64_t k = begin; k < end; ++k) {
            std::fill(at.begin(), at.end(), 0);
            results.seek(k / block_starts, at);
            std::int64_t width = 1;
            if (along_kept) {
              at[axis] = k % block_starts * BlockProgram::kBlock;
              width = std::min(BlockProgram::kBlock, space[axis] - at[axis]);
            }
            start(node, state, width);
            for (std::int64_t term = 0; term < terms.count(); ++term, terms.advance(at)) {
              if (along_kept) {
                fold_across(node.reduction, state, program.run(scratch, at, axis, width), width,
                            term);
              } else {
                for (at[axis] = 0; at[axis] < space[axis]; at[axis] += BlockProgram::kBlock) {
                  const std::int64_t count = std::min(BlockProgram::kBlock, space[axis] - at[axis]);
                  fold_along(node.reduction, state, program.run(scratch, at, axis, count), count,
                             term * space[axis] + at[axis]);
                }
                at[axis] = 0;
              }
            }
            const std::int64_t first = dot(at, program.extra_strides());
            for (std::int64_t i = 0; i < width; ++i) {
              if (indices) {
                indices[first + i * stride] = state.places[static_cast<std::size_t>(i)];
              } else {
                values[first + i * stride] =
                    finish<T>(node.dtype, state.totals[static_cast<std::size_t>(i)]);
              }
            }
          }
        });
  }

  template <class T>
  static void start(const ExprNode& node, Folded<T>& state, std::int64_t width) {
    const auto size = static_cast<std::size_t>(width);
    if (is_arg(node.reduction)) {
      state.best.assign(size, T{});
      state.places.assign(size, 0);
    } else {
      state.totals.assign(size, identity_element<AccumulatorOf<T>>(node.reduction, node.dtype));
    }
  }

  // Accumulates one term into each result of the block.
  template <class T>
  static void fold_across(Reduction reduction, Folded<T>& state, BlockProgram::Block block,
                          std::int64_t width, std::int64_t term) {
    using Accumulator = AccumulatorOf<T>;
    if (is_arg(reduction)) {
      for (std::int64_t i = 0; i < width; ++i)
        keep_better(reduction, state, i, block.at<T>(i), term);
    } else if (reduction == Reduction::Sum && !block.is_uniform) {
      const T* next = static_cast<const T*>(block.data);
      Accumulator* totals = state.totals.data();
      for (std::int64_t i = 0; i < width; ++i)
        totals[i] = plus(totals[i], static_cast<Accumulator>(next[i]));
    } else {
      for (std::int64_t i = 0; i < width; ++i) {
        Accumulator& total = state.totals[static_cast<std::size_t>(i)];
        total = combine(reduction, total, static_cast<Accumulator>(block.at<T>(i)));
      }
    }
  }

  // Accumulates many terms into one result.
  template <class T>
  static void fold_along(Reduction reduction, Folded<T>& state, BlockProgram::Block block,
                         std::int64_t count, std::int64_t first_term) {
    using Accumulator = AccumulatorOf<T>;
    if (is_arg(reduction)) {
      for (std::int64_t i = 0; i < count; ++i)
        keep_better(reduction, state, 0, block.at<T>(i), first_term + i);
    } else {
      Accumulator total = state.totals[0];
      if (reduction == Reduction::Sum && !block.is_uniform) {
        const T* next = static_cast<const T*>(block.data);
        for (std::int64_t i = 0; i < count; ++i)
          total = plus(total, static_cast<Accumulator>(next[i]));
      } else {
        for (std::int64_t i = 0; i < count; ++i) {
          total = combine(reduction, total, static_cast<Accumulator>(block.at<T>(i)));
        }
      }
      state.totals[0] = total;
    }
  }

  template <class T>
  static void keep_better(Reduction reduction, Folded<T>& state, std::int64_t result, T next,
                          std::int64_t term) {
    const auto k = static_cast<std::size_t>(result);
    if (term == 0 || is_better(reduction, state.best[k], next)) {
      state.best[k] = next;
      state.places[k] = term;
    }
  }

  template <class T>
  static T finish(DType dtype, AccumulatorOf<T> total) {
    if constexpr (std::is_same_v<T, std::int64_t>) return wrap(dtype, total);
    return static_cast<T>(total);
  }

  Buffer scanned(const ExprNode& node) {
    const Buffer in = buffer_of(node.args[0]);
    Buffer out = make_buffer(lane_of(node.dtype), constants(node.dims));
    const std::size_t axis = node.axes.front();
    const std::int64_t extent = out.shape[axis], stride = out.strides[axis];
    const Positions lines(out.shape,
                          axes_where(out.shape.size(), [&](auto k) { return k != axis; }));
    const Loader load = loader_of(in);
    with_lane(lane_of(node.dtype), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_same_v<T, Text>) {
        throw Error("strings cannot be scanned");
      } else {
        T* to = out.tensor.template as_mutable<T>().data();
        std::vector<T> line(static_cast<std::size_t>(extent));
        std::vector<std::int64_t> at(out.shape.size(), 0);
        for (std::int64_t k = 0; k < lines.count() && extent > 0; ++k, lines.advance(at)) {
          const std::int64_t first = dot(at, out.strides);
          load(in, first, stride, extent, line.data());
          auto total = identity_element<AccumulatorOf<T>>(node.reduction, node.dtype);
          for (std::int64_t i = 0; i < extent; ++i) {
            const std::int64_t place = node.is_reverse ? extent - 1 - i : i;
            const auto next = static_cast<AccumulatorOf<T>>(line[static_cast<std::size_t>(place)]);
            const auto after = combine(node.reduction, total, next);
            to[first + place * stride] = finish<T>(node.dtype, node.is_exclusive ? total : after);
            total = after;
          }
        }
      }
    });
    return out;
  }

  Buffer scattered(const ExprNode& node) {
    Buffer out = make_buffer(lane_of(node.dtype), constants(node.dims));
    fill(out, 0, out.strides, node.args[0]);
    const Expr& updates = node.args[1];
    const Shape space = constants(updates.dims());
    const std::int64_t count = checked_element_count(space);
    Buffer values = make_buffer(lane_of(node.dtype), space);
    fill(values, 0, values.strides, updates);
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(count), 0);
    for (std::size_t axis = 0; axis < out.shape.size(); ++axis) {
      Buffer coordinate = make_buffer(LaneType::I64, space);
      fill(coordinate, 0, coordinate.strides, broadcast(node.args[axis + 2], updates.dims()));
      const std::span<const std::int64_t> places = coordinate.tensor.as<std::int64_t>();
      for (std::size_t k = 0; k < offsets.size(); ++k) {
        if (places[k] < 0 || places[k] >= out.shape[axis]) {
          throw Error("an index lies outside its tensor")
              .expected("0 to ", out.shape[axis] - 1, " along axis ", axis)
              .got(places[k]);
        }
        offsets[k] += places[k] * out.strides[axis];
      }
    }
    with_lane(lane_of(node.dtype), [&](auto zero) {
      using T = decltype(zero);
      T* to = reinterpret_cast<T*>(out.tensor.mutable_bytes().data());
      const T* from = reinterpret_cast<const T*>(values.tensor.bytes().data());
      for (std::size_t k = 0; k < offsets.size(); ++k) {
        T& place = to[offsets[k]];
        if (node.reduction == Reduction::Last) {
          place = from[k];
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          place = wrap(node.dtype, combine(node.reduction, place, from[k]));
        } else {
          place = combine(node.reduction, place, from[k]);
        }
      }
    });
    return out;
  }

  const std::vector<const Tensor*>& operands_;
  int thread_count_;
  std::map<const ExprNode*, Buffer> made_;
};

}  // namespace

std::vector<Tensor> evaluate(const std::vector<Expr>& exprs,
                             const std::vector<const Tensor*>& operands, int thread_count) {
  // One evaluator for all results, so that shared subexpressions are evaluated once.
  BlockEvaluator evaluator(operands, thread_count);
  std::vector<Tensor> tensors;
  for (const Expr& expr : exprs) {
    if (expr.is_defined() && std::ranges::find(expr.dims(), Dim(0)) != expr.dims().end()) {
      for (const Expr& scatter : scatters_in(expr)) evaluator.buffer_of(scatter);
    }
    tensors.push_back(expr.is_defined() ? to_tensor(evaluator.buffer_of(expr), expr.dtype())
                                        : Tensor());
  }
  return tensors;
}

Tensor evaluate(const Expr& expr, const std::vector<const Tensor*>& operands, int thread_count) {
  return evaluate(std::vector<Expr>{expr}, operands, thread_count).front();
}

}  // namespace tenon::reference
