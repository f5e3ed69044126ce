#include "nests/in_place.h"

#include "nests/stride.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
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

class Reading {
 public:
  Reading(const LoopNest& nest, std::size_t result, std::size_t operand)
      : nest_(nest), result_(result), operand_(operand) {}

  bool allows() {
    visit(nest_.body);
    if (!is_allowed_ || store_ == nullptr) return false;
    // A loop around the store that it does not move along would write each element more than once.
    for (const Statement* loop : store_loops_) {
      const bool moves = std::ranges::any_of(
          store_->indices, [&](const Scalar& index) { return depends_on(index, loop->id); });
      if (!moves && !(loop->extent == Dim(1))) return false;
    }
    for (const auto& [load, loops] : loads_) {
      if (loops != store_loops_ || load->bounds != Bounds::Inside || load->view != store_->view)
        return false;
      if (!std::equal(load->args.begin(), load->args.end(), store_->indices.begin(),
                      store_->indices.end(), is_same)) {
        return false;
      }
    }
    return !loads_.empty();
  }

 private:
  void visit(const Block& block) {
    for (const Statement& statement : block) {
      seen_.clear();
      for (const Scalar* scalar : {&statement.value, &statement.place, &statement.limit}) {
        if (scalar->is_defined()) visit(*scalar);
      }
      for (const Scalar& index : statement.indices) visit(index);
      const bool is_given =
          statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update;
      if (is_given && nest_.buffers[statement.id].storage != Storage::Scratch) {
        // Behind the store nothing may need what it took the place of.
        is_allowed_ &= statement.kind == Statement::Kind::Store && statement.id == result_ &&
                       store_ == nullptr && &statement == &block.back();
        store_ = &statement;
        store_loops_ = loops_;
      }
      if (statement.kind != Statement::Kind::Loop) continue;
      loops_.push_back(&statement);
      visit(statement.body);
      loops_.pop_back();
    }
  }

  void visit(const Scalar& scalar) {
    if (!seen_.insert(&scalar.node()).second) return;
    if (scalar->kind == ScalarKind::Load) {
      if (scalar->id == result_) is_allowed_ = false;
      if (scalar->id == operand_) {
        is_allowed_ &= store_ == nullptr;
        loads_.emplace_back(scalar, loops_);
      }
    }
    for (const Scalar& arg : scalar->args) visit(arg);
  }

  const LoopNest& nest_;
  std::size_t result_, operand_;
  bool is_allowed_ = true;
  std::unordered_set<const ScalarNode*> seen_;  // in this statement
  const Statement* store_ = nullptr;
  std::vector<const Statement*> loops_, store_loops_;
  std::vector<std::pair<Scalar, std::vector<const Statement*>>> loads_;
};

}  // namespace

bool may_overwrite(const LoopNest& nest, std::size_t result, std::size_t operand) {
  if (nest.buffers[result].storage != Storage::Result ||
      nest.buffers[operand].storage != Storage::Operand)
    return false;
  return Reading(nest, result, operand).allows();
}

}  // namespace tenon::nests
