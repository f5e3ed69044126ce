#include "reference/block_program.h"

#include "reference/block_math.h"

#include <algorithm>

namespace tenon::reference {

std::size_t element_bytes(LaneType lane) {
  return with_lane(lane, [](auto zero) { return sizeof(zero); });
}

bool is_inline(ExprKind kind) {
  switch (kind) {
    case ExprKind::Literal:
    case ExprKind::Extent:
    case ExprKind::Index:
    case ExprKind::Unary:
    case ExprKind::Binary:
    case ExprKind::Select:
    case ExprKind::Cast:
    case ExprKind::Read:
      return true;
    default:
      return false;
  }
}

BlockProgram::BlockProgram(const Expr& root, Shape space, const std::vector<int>& groups,
                           std::vector<std::int64_t> extra_strides, const BufferSource& buffers)
    : space_(std::move(space)), groups_(groups), extra_strides_(std::move(extra_strides)) {
  Seen seen;
  add_step(root, buffers, seen);
  merge_axes();
}

std::size_t BlockProgram::add_step(const Expr& expr, const BufferSource& buffers, Seen& seen) {
  const ExprNode& node = expr.node();
  if (const auto known = seen.steps.find(&node); known != seen.steps.end()) return known->second;
  Instruction step;
  step.node = &node;
  step.kind = node.kind;
  step.lane = lane_of(node.dtype);
  const std::size_t skipped = space_.size() - node.dims.size();
  if (node.kind == ExprKind::Index) {
    step.index_axis = skipped + node.axes.front();
    if (node.dims[node.axes.front()] == Dim(1)) {
      step.kind = ExprKind::Extent;  // the axis has a single position
    }
  } else if (!is_inline(node.kind)) {
    step.kind = ExprKind::Operand;
    step.buffer = buffers(expr);
    step.load = loader_of(step.buffer);
    step.strides.assign(space_.size(), 0);
    for (std::size_t axis = 0; axis < step.buffer.shape.size(); ++axis) {
      const bool repeats = step.buffer.shape[axis] == 1;
      step.strides[skipped + axis] = repeats ? 0 : step.buffer.strides[axis];
    }
  } else if (node.kind == ExprKind::Read) {
    const Expr& source = node.args.front();
    step.buffer = buffers(source);
    step.load = loader_of(step.buffer);
    const std::size_t rank = source.rank();
    for (std::size_t k = 0; k < rank; ++k) {
      std::optional<AffineRead> affine = affine_of(node.args[k + 1], seen);
      if (!affine) {
        step.coordinates.clear();
        break;
      }
      step.coordinates.push_back(std::move(*affine));
    }
    if (step.coordinates.size() == rank) {
      step.read_strides.assign(space_.size(), 0);
      for (std::size_t k = 0; k < rank; ++k) {
        for (std::size_t axis = 0; axis < space_.size(); ++axis) {
          step.read_strides[axis] +=
              step.coordinates[k].coefficients[axis] * step.buffer.strides[k];
        }
      }
      if (node.has_fill) step.args.push_back(add_step(node.args.back(), buffers, seen));
    } else {
      for (std::size_t k = 1; k < node.args.size(); ++k) {
        step.args.push_back(add_step(node.args[k], buffers, seen));
      }
    }
  } else {
    for (const Expr& arg : node.args) step.args.push_back(add_step(arg, buffers, seen));
  }
  steps_.push_back(std::move(step));
  seen.steps.emplace(&node, steps_.size() - 1);
  return steps_.size() - 1;
}

std::optional<AffineRead> BlockProgram::affine_of(const Expr& expr, Seen& seen) const {
  const ExprNode& node = expr.node();
  if (node.args.empty()) return found_affine(node, seen);
  if (const auto known = seen.affine.find(&node); known != seen.affine.end()) return known->second;
  return seen.affine.emplace(&node, found_affine(node, seen)).first->second;
}

namespace {

// Returns a + factor * b; nullopt on overflow.
std::optional<AffineRead> combined(AffineRead a, const AffineRead& b, std::int64_t factor) {
  bool wraps = false;
  const auto add = [&](std::int64_t& to, std::int64_t number) {
    std::int64_t product = 0;
    wraps |= __builtin_mul_overflow(number, factor, &product) ||
             __builtin_add_overflow(to, product, &to);
  };
  add(a.constant, b.constant);
  for (std::size_t k = 0; k < a.coefficients.size(); ++k) add(a.coefficients[k], b.coefficients[k]);
  return wraps ? std::nullopt : std::optional(std::move(a));
}

}  // namespace

std::optional<AffineRead> BlockProgram::found_affine(const ExprNode& node, Seen& seen) const {
  AffineRead affine{0, std::vector<std::int64_t>(space_.size(), 0)};
  const auto is_number = [](const AffineRead& a) {
    return std::all_of(a.coefficients.begin(), a.coefficients.end(), [](auto c) { return c == 0; });
  };
  switch (node.kind) {
    case ExprKind::Literal:
      affine.constant = node.integer;
      return affine;
    case ExprKind::Extent:
      affine.constant = node.extent.constant();
      return affine;
    case ExprKind::Index:
      if (node.dims[node.axes.front()] != Dim(1)) {
        affine.coefficients[space_.size() - node.dims.size() + node.axes.front()] = 1;
      }
      return affine;
    case ExprKind::Unary: {
      if (node.unary != UnaryOp::Negate) return std::nullopt;
      std::optional<AffineRead> x = affine_of(node.args[0], seen);
      if (!x) return std::nullopt;
      return combined(affine, *x, -1);
    }
    case ExprKind::Binary: {
      const std::optional<AffineRead> a = affine_of(node.args[0], seen);
      const std::optional<AffineRead> b = a ? affine_of(node.args[1], seen) : std::nullopt;
      if (!b) return std::nullopt;
      if (node.binary == BinaryOp::Add || node.binary == BinaryOp::Subtract) {
        return combined(*a, *b, node.binary == BinaryOp::Add ? 1 : -1);
      }
      if (node.binary != BinaryOp::Multiply || (!is_number(*a) && !is_number(*b)))
        return std::nullopt;
      const AffineRead& form = is_number(*b) ? *a : *b;
      const std::int64_t factor = is_number(*b) ? b->constant : a->constant;
      return combined(affine, form, factor);
    }
    default:
      return std::nullopt;
  }
}

void BlockProgram::merge_axes() {
  // In an empty space the product of the other extents may overflow.
  if (std::ranges::find(space_, 0) != space_.end()) return;
  for (const Instruction& step : steps_) {
    if (step.kind == ExprKind::Index || step.kind == ExprKind::Read) return;
  }
  for (std::size_t axis = space_.size(); axis-- > 1;) {
    const std::size_t outer = axis - 1;
    const auto is_even = [&](const std::vector<std::int64_t>& strides) {
      return strides[outer] == strides[axis] * space_[axis];
    };
    bool fits = groups_[outer] == groups_[axis] && is_even(extra_strides_);
    for (const Instruction& step : steps_)
      fits &= step.kind != ExprKind::Operand || is_even(step.strides);
    if (!fits) continue;
    const auto merge = [&](auto& list) {
      list[outer] = list[axis];
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(axis));
    };
    const std::int64_t extent = space_[outer] * space_[axis];
    merge(space_);
    space_[outer] = extent;
    merge(groups_);
    merge(extra_strides_);
    for (Instruction& step : steps_) {
      if (step.kind == ExprKind::Operand) merge(step.strides);
    }
  }
}

double BlockProgram::cost_along(std::size_t axis) const {
  const auto stride_cost = [](std::int64_t stride) {
    return stride == 0 ? 0.05 : stride == 1 ? 0.3 : 1.5;
  };
  double cost = 0;
  for (const Instruction& step : steps_) {
    if (step.kind == ExprKind::Operand) {
      cost += stride_cost(step.strides[axis]);
    } else if (step.kind == ExprKind::Read) {
      cost += step.read_strides.empty() && !step.buffer.shape.empty() ? 4.0
              : step.read_strides.empty()                             ? 0.05
                                          : stride_cost(step.read_strides[axis]);
    } else {
      cost += 0.3;
    }
  }
  const auto length = static_cast<double>(std::clamp<std::int64_t>(space_[axis], 1, kBlock));
  return cost + 15.0 * static_cast<double>(steps_.size()) / length;
}

BlockProgram::Scratch::Scratch(const BlockProgram& program)
    : is_uniform_(program.steps_.size(), 0) {
  for (const Instruction& step : program.steps_) {
    slots_.push_back(
        std::make_unique<std::byte[]>(static_cast<std::size_t>(kBlock) * element_bytes(step.lane)));
  }
}

BlockProgram::Block BlockProgram::block(const Scratch& scratch, std::size_t step) const {
  return {scratch.slots_[step].get(), scratch.is_uniform_[step] != 0};
}

BlockProgram::Block BlockProgram::run(Scratch& scratch, std::span<const std::int64_t> at,
                                      std::size_t axis, std::int64_t count) const {
  const Cursor cursor{scratch, at, axis, count};
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    scratch.is_uniform_[k] = run_step(steps_[k], k, cursor) ? 1 : 0;
  }
  return block(scratch, steps_.size() - 1);
}

// Returns true if one element represents the whole block.
bool BlockProgram::run_step(const Instruction& step, std::size_t slot, const Cursor& cursor) const {
  std::byte* out = cursor.scratch.slots_[slot].get();
  const ExprNode& node = *step.node;
  const auto arg = [&](std::size_t k) { return block(cursor.scratch, step.args[k]); };
  const auto arg_lane = [&](std::size_t k) { return steps_[step.args[k]].lane; };
  switch (step.kind) {
    case ExprKind::Literal:
      store_literal(node, step.lane, out);
      return true;
    case ExprKind::Extent:
      *reinterpret_cast<std::int64_t*>(out) =
          node.kind == ExprKind::Extent ? node.extent.constant() : 0;
      return true;
    case ExprKind::Index: {
      auto* positions = reinterpret_cast<std::int64_t*>(out);
      const std::int64_t first = cursor.at[step.index_axis];
      if (step.index_axis != cursor.axis) {
        *positions = first;
        return true;
      }
      for (std::int64_t i = 0; i < cursor.count; ++i) positions[i] = first + i;
      return false;
    }
    case ExprKind::Operand: {
      std::int64_t offset = 0;
      for (std::size_t k = 0; k < step.strides.size(); ++k)
        offset += cursor.at[k] * step.strides[k];
      const std::int64_t stride = cursor.at.empty() ? 0 : step.strides[cursor.axis];
      step.load(step.buffer, offset, stride, stride == 0 ? 1 : cursor.count, out);
      return stride == 0;
    }
    case ExprKind::Unary:
      return run_unary(node, arg_lane(0), arg(0), cursor.count, out);
    case ExprKind::Binary:
      return run_binary(node, arg_lane(0), arg(0), arg(1), cursor.count, out);
    case ExprKind::Select:
      return run_select(step.lane, arg(0), arg(1), arg(2), cursor.count, out);
    case ExprKind::Cast:
      return run_cast(node.dtype, arg_lane(0), arg(0), cursor.count, out);
    case ExprKind::Read:
      return step.coordinates.size() == step.buffer.shape.size()
                 ? run_affine_read(step, slot, cursor)
                 : run_read(step, slot, cursor);
    default:
      TENON_ASSERT(false, "a step is in line");
  }
}

namespace {
[[noreturn]] void refuse_coordinate(std::size_t axis, std::int64_t coordinate,
                                    const Buffer& buffer) {
  throw Error("an index lies outside its tensor")
      .expected("0 to ", buffer.shape[axis] - 1, " along axis ", axis)
      .got(coordinate);
}
}  // namespace

// Writes the fill value to elements [begin, end) of a read.
void BlockProgram::fill_elements(const Instruction& step, const Cursor& cursor, std::byte* out,
                                 std::int64_t begin, std::int64_t end) const {
  const Block fill = block(cursor.scratch, step.args.back());
  with_lane(step.lane, [&](auto zero) {
    using T = decltype(zero);
    T* elements = reinterpret_cast<T*>(out);
    for (std::int64_t i = begin; i < end; ++i) elements[i] = fill.at<T>(i);
  });
}

bool BlockProgram::run_affine_read(const Instruction& step, std::size_t slot,
                                   const Cursor& cursor) const {
  std::byte* out = cursor.scratch.slots_[slot].get();
  std::int64_t offset = 0, stride = 0;
  // Coordinates are affine, so the in-bounds positions are one interval [begin, end).
  std::int64_t begin = 0, end = cursor.count;
  for (std::size_t k = 0; k < step.coordinates.size(); ++k) {
    const AffineRead& form = step.coordinates[k];
    std::int64_t first = form.constant;
    for (std::size_t axis = 0; axis < form.coefficients.size(); ++axis) {
      first += form.coefficients[axis] * cursor.at[axis];
    }
    const std::int64_t step_size = cursor.at.empty() ? 0 : form.coefficients[cursor.axis];
    const std::int64_t extent = step.buffer.shape[k];
    const std::int64_t last = first + step_size * (cursor.count - 1);
    if (first < 0 || first >= extent || last < 0 || last >= extent) {
      if (!step.node->has_fill) {
        refuse_coordinate(k, first < 0 || first >= extent ? first : last, step.buffer);
      }
      if (step_size == 0) {
        end = begin;
      } else if (step_size > 0) {
        begin = std::max(begin, first < 0 ? (-first + step_size - 1) / step_size : 0);
        end = std::min(end, first >= extent ? 0 : (extent - 1 - first) / step_size + 1);
      } else {
        begin = std::max(begin, first >= extent ? (first - extent) / -step_size + 1 : 0);
        end = std::min(end, first < 0 ? 0 : first / -step_size + 1);
      }
    }
    offset += first * step.buffer.strides[k];
    stride += step_size * step.buffer.strides[k];
  }
  end = std::max(begin, end);
  begin = std::min(begin, cursor.count);
  end = std::min(end, cursor.count);
  if (stride == 0 && begin == 0 && end == cursor.count) {
    step.load(step.buffer, offset, 0, 1, out);
    return true;
  }
  if (begin < end) {
    step.load(step.buffer, offset + begin * stride, stride, end - begin,
              out + static_cast<std::size_t>(begin) * element_bytes(step.lane));
  }
  if (begin > 0) fill_elements(step, cursor, out, 0, begin);
  if (end < cursor.count) fill_elements(step, cursor, out, end, cursor.count);
  return false;
}

bool BlockProgram::run_read(const Instruction& step, std::size_t slot, const Cursor& cursor) const {
  std::byte* out = cursor.scratch.slots_[slot].get();
  const std::size_t rank = step.buffer.shape.size();
  std::vector<Block> coordinates;
  bool is_uniform = true;
  for (std::size_t k = 0; k < step.args.size(); ++k) {
    coordinates.push_back(block(cursor.scratch, step.args[k]));
    is_uniform &= coordinates.back().is_uniform;
  }
  const std::int64_t count = is_uniform ? 1 : cursor.count;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    bool is_inside = true;
    for (std::size_t k = 0; k < rank; ++k) {
      const std::int64_t coordinate = coordinates[k].at<std::int64_t>(i);
      if (coordinate < 0 || coordinate >= step.buffer.shape[k]) {
        if (!step.node->has_fill) refuse_coordinate(k, coordinate, step.buffer);
        is_inside = false;
        break;
      }
      offset += coordinate * step.buffer.strides[k];
    }
    std::byte* element = out + static_cast<std::size_t>(i) * element_bytes(step.lane);
    if (is_inside) {
      step.load(step.buffer, offset, 1, 1, element);
    } else {
      fill_elements(step, cursor, out, i, i + 1);
    }
  }
  return is_uniform;
}

}  // namespace tenon::reference
