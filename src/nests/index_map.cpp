#include "nests/index_map.h"

#include "base/error.h"
#include "nests/scalar_walk.h"

#include <set>
#include <unordered_map>

namespace tenon::nests {
namespace {

// Row-major flat position within axes [begin, end).
Scalar flat_position(LoopNest& nest, const Dims& dims, std::size_t begin, std::size_t end,
                     const std::vector<Scalar>& at) {
  Scalar flat = integer_scalar(0);
  for (std::size_t axis = begin; axis < end; ++axis)
    flat = plus(times(flat, nest.extent(dims[axis])), at[axis]);
  return flat;
}

void unflatten(LoopNest& nest, const Dims& dims, std::size_t begin, std::size_t end, Scalar flat,
               std::vector<Scalar>& out) {
  // The leading axis of extent other than 1 needs no remainder.
  std::size_t leading = begin;
  while (leading < end && dims[leading] == Dim(1)) ++leading;
  for (std::size_t axis = end; axis-- > begin;) {
    if (dims[axis] == Dim(1)) {
      out[axis] = integer_scalar(0);
    } else if (axis == leading) {
      out[axis] = flat;
    } else {
      const Scalar extent = nest.extent(dims[axis]);
      out[axis] = binary_scalar(BinaryOp::Modulo, DType::I64, flat, extent);
      flat = binary_scalar(BinaryOp::FloorDivide, DType::I64, flat, extent);
    }
  }
}

class IndexRewriter {
 public:
  explicit IndexRewriter(const std::map<std::size_t, BufferUse>& uses) : uses_(uses) {}

  void rewrite(Block& block) {
    for (Statement& statement : block) {
      if (statement.value.is_defined()) statement.value = rewrite(statement.value);
      if (statement.place.is_defined()) statement.place = rewrite(statement.place);
      for (Scalar& index : statement.indices) index = rewrite(index);
      if (statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update) {
        const BufferUse& use = uses_.at(statement.id);
        statement.id = use.id;
        if (use.is_local) {
          TENON_ASSERT(statement.kind == Statement::Kind::Store,
                       "one number is stored, not updated");
          statement.kind = Statement::Kind::Define;
          statement.indices.clear();
        } else {
          shrink(use, statement.indices, statement.view);
        }
      }
      rewrite(statement.body);
    }
  }

 private:
  static void shrink(const BufferUse& use, std::vector<Scalar>& indices, Dims& view) {
    for (std::size_t axis : use.shrunk) {
      indices[axis] = integer_scalar(0);
      view[axis] = 1;
    }
  }

  Scalar rewrite(const Scalar& scalar) {
    const auto known = done_.find(&scalar.node());
    if (known != done_.end()) return known->second;
    ScalarNode node = scalar.node();
    for (Scalar& arg : node.args) arg = rewrite(arg);
    Scalar made;
    if (node.kind == ScalarKind::Load) {
      const BufferUse& use = uses_.at(node.id);
      node.id = use.id;
      if (use.is_local) {
        made = local_scalar(use.id, node.dtype);
      } else {
        shrink(use, node.args, node.view);
      }
    }
    if (!made.is_defined()) made = Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    kept_.push_back(scalar);
    done_.emplace(&scalar.node(), made);
    return made;
  }

  const std::map<std::size_t, BufferUse>& uses_;
  std::unordered_map<const ScalarNode*, Scalar> done_;
  std::vector<Scalar> kept_;
};

class Ranges {
 public:
  explicit Ranges(const std::map<std::size_t, std::int64_t>& extents) : extents_(extents) {}
  std::optional<Range> of(const Scalar& scalar) {
    return known_.of(scalar, [&] { return found(scalar); });
  }

 private:
  std::optional<Range> found(const Scalar& scalar) {
    if (scalar->kind == ScalarKind::Integer) return Range{scalar->integer, scalar->integer};
    if (scalar->kind == ScalarKind::Loop) {
      const auto extent = extents_.find(scalar->id);
      if (extent == extents_.end() || extent->second == 0) return std::nullopt;
      return Range{0, extent->second - 1};
    }
    if (scalar->kind != ScalarKind::Binary) return std::nullopt;
    const auto a = of(scalar->args[0]);
    const auto b = a ? of(scalar->args[1]) : std::nullopt;
    return b ? combined(scalar->binary, *a, *b) : std::nullopt;
  }

  // No value on overflow.
  static std::optional<Range> combined(BinaryOp op, const Range& a, const Range& b) {
    Range range;
    switch (op) {
      case BinaryOp::Add:
        if (__builtin_add_overflow(a.lo, b.lo, &range.lo) ||
            __builtin_add_overflow(a.hi, b.hi, &range.hi))
          return {};
        return range;
      case BinaryOp::Subtract:
        if (__builtin_sub_overflow(a.lo, b.hi, &range.lo) ||
            __builtin_sub_overflow(a.hi, b.lo, &range.hi))
          return {};
        return range;
      case BinaryOp::Multiply: {
        const bool is_by_second = b.lo == b.hi && b.lo >= 0;
        if (!is_by_second && (a.lo != a.hi || a.lo < 0)) return {};
        const Range& moving = is_by_second ? a : b;
        const std::int64_t factor = is_by_second ? b.lo : a.lo;
        if (__builtin_mul_overflow(moving.lo, factor, &range.lo) ||
            __builtin_mul_overflow(moving.hi, factor, &range.hi)) {
          return {};
        }
        return range;
      }
      case BinaryOp::Divide:
      case BinaryOp::FloorDivide:
        if (a.lo < 0 || b.lo != b.hi || b.lo <= 0) return {};
        return Range{a.lo / b.lo, a.hi / b.lo};
      case BinaryOp::Remainder:
      case BinaryOp::Modulo:
        if (a.lo < 0 || b.lo != b.hi || b.lo <= 0) return {};
        return a.hi < b.lo ? a : Range{0, b.lo - 1};
      default:
        return {};
    }
  }

  const std::map<std::size_t, std::int64_t>& extents_;
  ScalarMemo<std::optional<Range>> known_;
};

void visit_loads(const Scalar& scalar, std::set<const ScalarNode*>& seen,
                 const std::function<void(const Scalar&)>& visit) {
  if (!seen.insert(&scalar.node()).second) return;
  if (scalar->kind == ScalarKind::Load) visit(scalar);
  for (const Scalar& arg : scalar->args) visit_loads(arg, seen, visit);
}

void visit_loads(const Block& block, std::set<const ScalarNode*>& seen,
                 const std::function<void(const Scalar&)>& visit) {
  for (const Statement& statement : block) {
    if (statement.value.is_defined()) visit_loads(statement.value, seen, visit);
    if (statement.place.is_defined()) visit_loads(statement.place, seen, visit);
    for (const Scalar& index : statement.indices) visit_loads(index, seen, visit);
    visit_loads(statement.body, seen, visit);
  }
}

}  // namespace

std::vector<Scalar> reshaped_position(LoopNest& nest, const Dims& from, const Dims& to,
                                      const std::vector<Scalar>& at) {
  std::vector<Scalar> out(to.size());
  std::size_t a = 0, b = 0;
  while (a < from.size() || b < to.size()) {
    // The shortest groups of axes on both sides with equal element counts.
    std::size_t a_end = a, b_end = b;
    Dim left = 1, right = 1;
    if (a_end < from.size()) left = from[a_end++];
    if (b_end < to.size()) right = to[b_end++];
    while (left != right) {
      const bool grows_left =
          b_end == to.size() || (a_end < from.size() && left.is_constant() && right.is_constant()
                                     ? left.constant() < right.constant()
                                     : a_end < from.size() && provably_at_most(left, right));
      if (grows_left && a_end < from.size()) {
        left = left * from[a_end++];
      } else if (b_end < to.size()) {
        right = right * to[b_end++];
      } else if (a_end < from.size()) {
        left = left * from[a_end++];
      } else {
        break;  // Both sides are exhausted; their counts are equal by precondition.
      }
    }
    // Trailing extents of 1 belong to the group.
    while (a_end < from.size() && from[a_end] == Dim(1)) ++a_end;
    while (b_end < to.size() && to[b_end] == Dim(1)) ++b_end;
    unflatten(nest, to, b, b_end, flat_position(nest, from, a, a_end, at), out);
    a = a_end;
    b = b_end;
  }
  return out;
}

std::optional<Range> range_of(const Scalar& scalar,
                              const std::map<std::size_t, std::int64_t>& extents) {
  return Ranges(extents).of(scalar);
}

void for_each_load(const Block& block, const std::function<void(const Scalar&)>& visit) {
  std::set<const ScalarNode*> seen;
  visit_loads(block, seen, visit);
}

std::vector<bool> looked_up(const LoopNest& nest) {
  std::vector<bool> is_read(nest.buffers.size()), is_elsewhere_read(nest.buffers.size());
  for_each_load(nest.body, [&](const Scalar& load) {
    is_read[load->id] = true;
    if (load->bounds != Bounds::Checked) is_elsewhere_read[load->id] = true;
  });
  for (std::size_t k = 0; k < is_read.size(); ++k) is_read[k] = is_read[k] && !is_elsewhere_read[k];
  return is_read;
}

void renumber_buffers(LoopNest& nest, const std::map<std::size_t, BufferUse>& uses) {
  IndexRewriter(uses).rewrite(nest.body);
}

void substitute_loop(Block& block, std::size_t loop, const Scalar& value) {
  std::unordered_map<const ScalarNode*, Scalar> done;
  std::vector<Scalar> kept;
  const std::function<Scalar(const Scalar&)> rewrite = [&](const Scalar& scalar) {
    if (scalar->kind == ScalarKind::Loop && scalar->id == loop) return value;
    const auto known = done.find(&scalar.node());
    if (known != done.end()) return known->second;
    ScalarNode node = scalar.node();
    bool changes = false;
    for (Scalar& arg : node.args) {
      Scalar made = rewrite(arg);
      changes |= &made.node() != &arg.node();
      arg = std::move(made);
    }
    const Scalar made =
        changes ? Scalar(std::make_shared<const ScalarNode>(std::move(node))) : scalar;
    kept.push_back(scalar);
    done.emplace(&scalar.node(), made);
    return made;
  };
  const std::function<void(Block&)> visit = [&](Block& statements) {
    for (Statement& statement : statements) {
      for (Scalar* scalar : {&statement.value, &statement.place, &statement.limit}) {
        if (scalar->is_defined()) *scalar = rewrite(*scalar);
      }
      for (Scalar& index : statement.indices) index = rewrite(index);
      visit(statement.body);
    }
  };
  visit(block);
}

void list_extents(LoopNest& nest) {
  const auto list = [&](const Dims& dims) {
    for (const Dim& dim : dims) nest.extent(dim);
  };
  const std::function<void(const Block&)> visit = [&](const Block& block) {
    for (const Statement& statement : block) {
      if (statement.kind == Statement::Kind::Loop) nest.extent(statement.extent);
      list(statement.view);
      visit(statement.body);
    }
  };
  visit(nest.body);
  for_each_load(nest.body, [&](const Scalar& load) { list(load->view); });
  for (const NestBuffer& buffer : nest.buffers) {
    if (buffer.storage == StorageClass::Scratch) nest.extent(scratch_size(buffer));
  }
}

}  // namespace tenon::nests
