#include "nests/schedule/trim_padding_loops.h"

#include "nests/affine.h"
#include "nests/scalar_walk.h"

#include <algorithm>

namespace tenon::nests {
namespace {

constexpr double kFewestSkipped = 0.1;

/// A loop over the rows of a window, with its access pattern.
struct WindowLoop {
  Statement* loop = nullptr;
  /// The row that the first iteration reads.
  Affine first;
  /// Rows per iteration.
  std::int64_t step = 0;
  /// Mean number of iterations that read interior rows.
  double mean_passes = 0;
};

class WindowLoopFinder {
 public:
  WindowLoopFinder(LoopNest& nest, const ZeroPadding& border) : nest_(nest), border_(border) {}

  /// Returns the only such loop, around the only contraction that reads the buffer.
  std::optional<WindowLoop> run() {
    visit(nest_.body);
    if (reads_ != 1 || !found_) return std::nullopt;
    return found_;
  }

 private:
  void visit(Block& block) {
    for (Statement& s : block) {
      if (s.kind == Statement::Kind::Loop) {
        around_.push_back(&s);
        visit(s.body);
        around_.pop_back();
        continue;
      }
      for (const Scalar* scalar : {&s.value, &s.place}) {
        if (scalar->is_defined()) count_reads(*scalar, s);
      }
    }
  }

  void count_reads(const Scalar& scalar, const Statement& statement) {
    any_node(scalar, [&](const ScalarNode& node) {
      if (node.kind == ScalarKind::Load && node.id == border_.buffer) {
        ++reads_;
        take(node, statement);
      }
      return false;
    });
  }

  // Matches the accumulation of the element times another factor.
  static bool is_product_of(const Statement& s, const ScalarNode& load) {
    if (s.kind != Statement::Kind::Fold || s.reduction != Reduction::Sum) return false;
    const ScalarNode& value = s.value.node();
    if (value.kind != ScalarKind::Binary || value.binary != BinaryOp::Multiply) return false;
    return &value.args[0].node() == &load || &value.args[1].node() == &load;
  }

  void take(const ScalarNode& load, const Statement& statement) {
    found_.reset();
    if (!is_product_of(statement, load)) return;
    if (load.view != border_.dims || nest_.buffers[border_.buffer].dims != border_.dims) return;
    const auto row = affine_of(load.args[border_.axis]);
    if (!row) return;
    const auto loop = std::find_if(around_.begin(), around_.end(), [&](const Statement* s) {
      return !s->is_independent && row->steps.contains(s->id);
    });
    if (loop == around_.end() || (*loop)->loop != LoopKind::Serial || (*loop)->width != 1) return;
    if ((*loop)->limit.is_defined() || !(*loop)->extent.is_constant()) return;
    WindowLoop window{*loop, *row, row->steps.at((*loop)->id), 0};
    window.first.steps.erase((*loop)->id);
    if (window.step < 1) return;
    for (auto inner = loop + 1; inner != around_.end(); ++inner) {
      if (window.first.steps.contains((*inner)->id)) return;
    }
    if (count_passes(window, {around_.begin(), loop})) found_ = window;
  }

  // The row range must be uniform over all lanes and rows of a register tile.
  bool count_passes(WindowLoop& window, const std::vector<Statement*>& outside) const {
    std::vector<std::int64_t> firsts{window.first.start};
    for (const auto& [id, step] : window.first.steps) {
      const auto loop = std::find_if(outside.begin(), outside.end(),
                                     [&, id = id](const Statement* s) { return s->id == id; });
      if (loop == outside.end() || !(*loop)->extent.is_constant() || (*loop)->limit.is_defined())
        return false;
      if ((*loop)->loop != LoopKind::Parallel && (*loop)->loop != LoopKind::Serial) return false;
      const std::int64_t extent = (*loop)->extent.constant();
      constexpr std::size_t kMost = 4096;
      if (extent <= 0 || firsts.size() * static_cast<std::size_t>(extent) > kMost) return false;
      std::vector<std::int64_t> all;
      for (const std::int64_t first : firsts) {
        for (std::int64_t k = 0; k < extent; ++k) all.push_back(first + k * step);
      }
      firsts = std::move(all);
    }
    const std::int64_t passes = window.loop->extent.constant();
    double total = 0;
    for (const std::int64_t first : firsts) {
      for (std::int64_t k = 0; k < passes; ++k) {
        const std::int64_t row = first + k * window.step - border_.before;
        total += row >= 0 && row < border_.extent ? 1 : 0;
      }
    }
    window.mean_passes = total / static_cast<double>(firsts.size());
    return true;
  }

  LoopNest& nest_;
  const ZeroPadding& border_;
  std::vector<Statement*> around_;
  std::size_t reads_ = 0;
  std::optional<WindowLoop> found_;
};

Scalar integers(BinaryOp op, const Scalar& a, const Scalar& b) {
  return binary_scalar(op, DType::I64, a, b);
}
Scalar integers(BinaryOp op, const Scalar& a, std::int64_t b) {
  return integers(op, a, integer_scalar(b));
}

}  // namespace

std::optional<ZeroPadding> zero_padding(const NestSequence::NestCall& copy,
                                        const NestSequence::NestCall& sum) {
  const Statement* store = copy.nest.body.empty() ? nullptr : &copy.nest.body.front();
  while (store != nullptr && store->kind == Statement::Kind::Loop) {
    store = store->body.empty() ? nullptr : &store->body.front();
  }
  if (store == nullptr || store->kind != Statement::Kind::Store) return std::nullopt;
  const ScalarNode& load = store->value.node();
  if (load.kind != ScalarKind::Load || load.bounds != Bounds::Fill) return std::nullopt;
  const Scalar& fill = load.args.back();
  if (fill->kind != ScalarKind::Real || fill->real != 0) return std::nullopt;
  const auto read = std::find(sum.buffers.begin(), sum.buffers.end(), copy.buffers[store->id]);
  if (read == sum.buffers.end()) return std::nullopt;
  // The last axis of the copy may merge several axes of the contraction.
  for (std::size_t axis = 0; axis + 1 < load.view.size(); ++axis) {
    const auto place = affine_of(load.args[axis]);
    if (!place || !load.view[axis].is_constant()) return std::nullopt;
    if (place->start == 0 && store->view[axis] == load.view[axis]) continue;
    const auto buffer = static_cast<std::size_t>(read - sum.buffers.begin());
    return ZeroPadding{buffer, axis, -place->start, load.view[axis].constant(),
                       sum.nest.buffers[buffer].dims};
  }
  return std::nullopt;
}

bool trim_padding_loops(LoopNest& nest, const ZeroPadding& border) {
  const std::optional<WindowLoop> window = WindowLoopFinder(nest, border).run();
  if (!window) return false;
  const std::int64_t passes = window->loop->extent.constant(), step = window->step;
  if (window->mean_passes > (1 - kFewestSkipped) * static_cast<double>(passes)) return false;
  const Scalar first = scalar_of(window->first);
  // Ceiling division of a nonnegative number: (before - first) / step.
  const Scalar missing =
      integers(BinaryOp::Subtract, integer_scalar(border.before + step - 1), first);
  const Scalar begin =
      integers(BinaryOp::FloorDivide, integers(BinaryOp::Maximum, missing, 0), step);
  const Scalar rows =
      integers(BinaryOp::Subtract, integer_scalar(border.before + border.extent - 1 + step), first);
  const Scalar end =
      integers(BinaryOp::Minimum,
               integers(BinaryOp::FloorDivide, integers(BinaryOp::Maximum, rows, 0), step), passes);
  substitute_loop(window->loop->body, window->loop->id, plus(begin, loop_scalar(window->loop->id)));
  window->loop->limit = integers(BinaryOp::Maximum, integers(BinaryOp::Subtract, end, begin), 0);
  return true;
}

}  // namespace tenon::nests
