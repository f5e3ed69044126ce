// Dependence analysis for in-place results.
#include "nests/in_place.h"

#include "nests/stride.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

namespace tenon::nests {
namespace {

bool is_same(const Scalar& a, const Scalar& b) {
  if (&a.node() == &b.node()) return true;
  const bool is_alike = a->kind == b->kind && a->dtype == b->dtype && a->integer == b->integer &&
                        a->id == b->id && a->unary == b->unary && a->binary == b->binary &&
                        a->real == b->real && a->bounds == b->bounds && a->view == b->view &&
                        a->args.size() == b->args.size();
  return is_alike && std::equal(a->args.begin(), a->args.end(), b->args.begin(), is_same);
}

// The remainder of a division, if it is the same for all positions.
std::optional<std::int64_t> remainder(const Scalar& scalar, std::int64_t divisor) {
  const auto positive = [&](std::int64_t value) { return ((value % divisor) + divisor) % divisor; };
  if (scalar->kind == ScalarKind::Integer) return positive(scalar->integer);
  if (scalar->kind != ScalarKind::Binary) return std::nullopt;
  const auto a = remainder(scalar->args[0], divisor), b = remainder(scalar->args[1], divisor);
  switch (scalar->binary) {
    case BinaryOp::Add:
      return a && b ? std::optional(positive(*a + *b)) : std::nullopt;
    case BinaryOp::Subtract:
      return a && b ? std::optional(positive(*a - *b)) : std::nullopt;
    case BinaryOp::Multiply:
      if ((a && *a == 0) || (b && *b == 0)) return 0;
      return a && b ? std::optional(positive(*a * *b)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// Returns whether two stores write disjoint elements for all positions of their loops, proved by
// distinct remainders, as between the elements of a tile.
bool are_apart(const Statement& one, const Statement& other) {
  constexpr std::int64_t kMost = 8;
  if (one.view != other.view) return false;
  for (std::size_t axis = 0; axis < one.indices.size(); ++axis) {
    for (std::int64_t divisor = 2; divisor <= kMost; ++divisor) {
      const auto a = remainder(one.indices[axis], divisor),
                 b = remainder(other.indices[axis], divisor);
      if (a && b && *a != *b) return true;
    }
  }
  return false;
}

class InPlaceAnalysis {
 public:
  InPlaceAnalysis(const LoopNest& nest, std::size_t result, std::size_t operand)
      : nest_(nest), result_(result), operand_(operand) {}

  bool allows() {
    visit(nest_.body);
    if (!is_allowed_ || stores_.empty() || loads_.empty()) return false;
    for (std::size_t k = 0; k < stores_.size(); ++k) {
      if (!writes_once(stores_[k])) return false;
      for (std::size_t other = 0; other < k; ++other) {
        if (!are_apart(*stores_[k].statement, *stores_[other].statement)) return false;
      }
    }
    return std::ranges::all_of(loads_, [&](const Read& read) {
      return std::ranges::any_of(stores_,
                                 [&](const Store& store) { return is_before(read, store); });
    });
  }

 private:
  using Loops = std::vector<const Statement*>;
  struct Store {
    const Statement* statement = nullptr;
    Loops loops;
    std::size_t place = 0;  // Position in statement order.
  };
  struct Read {
    Scalar load;
    Loops loops;
    std::size_t place = 0;
  };

  // A loop that the store does not depend on would write each element repeatedly.
  static bool writes_once(const Store& store) {
    return std::ranges::all_of(store.loops, [&](const Statement* loop) {
      return loop->extent == Dim(1) ||
             std::ranges::any_of(store.statement->indices,
                                 [&](const Scalar& index) { return depends_on(index, loop->id); });
    });
  }

  // Returns whether an element is read in the iteration that writes it, before the write.
  static bool is_before(const Read& read, const Store& store) {
    return read.place <= store.place && read.loops == store.loops &&
           read.load->bounds == Bounds::Inside && read.load->view == store.statement->view &&
           std::equal(read.load->args.begin(), read.load->args.end(),
                      store.statement->indices.begin(), store.statement->indices.end(), is_same);
  }

  void visit(const Block& block) {
    for (const Statement& statement : block) {
      ++place_;
      seen_.clear();
      for (const Scalar* scalar : {&statement.value, &statement.place, &statement.limit}) {
        if (scalar->is_defined()) visit(*scalar);
      }
      for (const Scalar& index : statement.indices) visit(index);
      const bool is_update = statement.kind == Statement::Kind::Update;
      if ((statement.kind == Statement::Kind::Store || is_update) && statement.id == result_) {
        is_allowed_ &= !is_update;
        stores_.push_back({&statement, loops_, place_});
      }
      if (statement.kind != Statement::Kind::Loop) continue;
      loops_.push_back(&statement);
      visit(statement.body);
      loops_.pop_back();
    }
  }

  void visit(const Scalar& scalar) {
    if (!seen_.insert(&scalar.node()).second) return;
    if (scalar->kind == ScalarKind::Load && scalar->id == operand_)
      loads_.push_back({scalar, loops_, place_});
    for (const Scalar& arg : scalar->args) visit(arg);
  }

  const LoopNest& nest_;
  std::size_t result_, operand_;
  bool is_allowed_ = true;
  std::unordered_set<const ScalarNode*> seen_;  // In this statement.
  std::size_t place_ = 0;
  Loops loops_;
  std::vector<Store> stores_;
  std::vector<Read> loads_;
};

}  // namespace

bool may_overwrite(const LoopNest& nest, std::size_t result, std::size_t operand) {
  if (nest.buffers[result].storage != StorageClass::Result ||
      nest.buffers[operand].storage != StorageClass::Operand)
    return false;
  return InPlaceAnalysis(nest, result, operand).allows();
}

}  // namespace tenon::nests
