#include "codegen/cuda/kernel_writer.h"
#include "codegen/cuda/library_conditions.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/stride.h"

#include <algorithm>

namespace tenon::codegen::cuda {
namespace {

bool holds_only(const Scalar& scalar, const std::set<std::size_t>& locals) {
  if (scalar->kind == ScalarKind::Position) return false;
  if (scalar->kind == ScalarKind::Local) return locals.contains(scalar->id);
  return std::all_of(scalar->args.begin(), scalar->args.end(),
                     [&](const Scalar& arg) { return holds_only(arg, locals); });
}

// True if the statements read only the given locals.
bool reads_only(const Block& block, const std::set<std::size_t>& locals) {
  return std::all_of(block.begin(), block.end(), [&](const Statement& statement) {
    const bool is_fold = statement.kind == Statement::Kind::Fold;
    return (!statement.value.is_defined() || holds_only(statement.value, locals)) &&
           !statement.place.is_defined() && (!is_fold || locals.contains(statement.id)) &&
           std::all_of(statement.indices.begin(), statement.indices.end(),
                       [&](const Scalar& index) { return holds_only(index, locals); }) &&
           reads_only(statement.body, locals);
  });
}

}  // namespace

std::optional<KernelWriter::RowPasses> KernelWriter::row_passes(const LoopBand& band) const {
  constexpr std::int64_t kMostElements = 32;
  if (binding_.lanes > 1 || band.loops.size() != 1 || !band.loops.front()->extent.is_constant())
    return std::nullopt;
  const std::int64_t extent = band.loops.front()->extent.constant();
  const std::int64_t elements = extent / binding_.group;
  if (extent % binding_.group != 0 || elements > kMostElements) return std::nullopt;
  const unsigned most = elements % 4 == 0 ? 4 : elements % 2 == 0 ? 2 : 1;
  if (most > 1 && folds_neighbours(band, most)) return RowPasses{elements / most, most, true};
  // Other locals exist once per thread, not once per lane.
  const bool is_plain =
      std::all_of(band.inner->begin(), band.inner->end(), [](const Statement& statement) {
        return statement.kind == Statement::Kind::Store ||
               (statement.kind == Statement::Kind::Fold && !statement.place.is_defined());
      });
  const unsigned lanes = is_plain ? most : 1;
  return RowPasses{elements / lanes, lanes};
}

// Index of a load's element in the thread's window: its `lanes` elements plus `lanes` neighbours on
// either side.
std::optional<std::string> KernelWriter::near_index(const Scalar& load, const Statement& loop,
                                                    unsigned lanes) const {
  if (!is_zero_outside(load)) return std::nullopt;
  std::size_t last = load->view.size();
  while (last > 0 && load->view[last - 1] == Dim(1)) --last;
  if (last == 0 || !(load->view[last - 1] == loop.extent)) return std::nullopt;
  for (std::size_t axis = 0; axis < load->view.size(); ++axis) {
    if (axis + 1 != last && (nests::depends_on(load->args[axis], loop.id) ||
                             !values_.is_surely_inside(load->args[axis], load->view[axis])))
      return std::nullopt;
  }
  const auto at = nests::affine_of(load->args[last - 1]);
  if (!at || at->steps.size() < 2 || !at->steps.contains(loop.id) || at->steps.at(loop.id) != 1)
    return std::nullopt;
  std::int64_t least = at->start, most = at->start;
  std::string index = concat(static_cast<std::int64_t>(lanes) + at->start, " + v");
  for (const auto& [id, step] : at->steps) {
    if (id == loop.id) continue;
    const auto extent = values_.loop_extents().find(id);
    if (extent == values_.loop_extents().end()) return std::nullopt;
    (step < 0 ? least : most) += step * (extent->second - 1);
    index += concat(" + ", step, " * ", loop_name(id));
  }
  const auto reach = static_cast<std::int64_t>(lanes);
  return least >= -reach && most <= reach ? std::optional(index) : std::nullopt;
}

// True if each element is a reduction over a few neighbours along the row, which the lanes of a
// thread share, and depends on no other per-thread state.
bool KernelWriter::folds_neighbours(const LoopBand& band, unsigned lanes) const {
  constexpr std::int64_t kMostTrips = 16;
  const Statement& loop = *band.loops.front();
  std::set<std::size_t> defined;
  bool is_near = false, suits = true;
  for (const Statement& statement : *band.inner) {
    if (statement.kind == Statement::Kind::Define) {
      suits &= !placed_.contains(statement.id);
      defined.insert(statement.id);
    } else if (statement.kind == Statement::Kind::Loop) {
      const LoopBand folds = band_of(statement);
      suits &= folds.loops.size() == 1 && statement.extent.is_constant() &&
               statement.extent.constant() <= kMostTrips && !statement.limit.is_defined() &&
               is_fold_band(folds);
      for_each_load(statement.body, [&](const Scalar& load) {
        const bool moves = std::any_of(load->args.begin(), load->args.end(), [&](const Scalar& at) {
          return nests::depends_on(at, loop.id);
        });
        const bool is_one = near_index(load, loop, lanes).has_value();
        is_near |= is_one;
        suits &= is_one || !moves;
      });
    } else if (statement.kind != Statement::Kind::Store) {
      return false;
    }
  }
  return is_near && suits && reads_only(*band.inner, defined);
}

// Loads the lanes' neighbourhood before the reduction.
void KernelWriter::load_neighbours(const Statement& fold) {
  for_each_load(fold.body, [&](const Scalar& load) {
    const auto index = near_index(load, *near_loop_, lanes_);
    if (!index || near_.contains(&load.node())) return;
    const NestBuffer& from = nest_.buffers[load->id];
    std::size_t last = load->view.size();
    while (load->view[last - 1] == Dim(1)) --last;
    std::vector<Scalar> row(load->args.begin(),
                            load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()));
    row[last - 1] = integer_scalar(0);
    values_.begin_statement();
    const std::string name = concat("q", unique_++), type = stored_type(from.dtype);
    lines_.add(concat("const Near<", type, ", ", lanes_, "> ", name, " = load_near<", type, ", ",
                      lanes_, ">(", from.name, " + ", values_.place(row, load->view, false).offset,
                      ", ", loop_name(near_loop_->id), ", ", values_.extent(near_loop_->extent),
                      ");"));
    near_[&load.node()] = {name, "", *index};
  });
}

// Unrolls the passes over a row.
void KernelWriter::write_passes(const Statement& loop, const RowPasses& passes,
                                const std::function<void()>& body) {
  pass_ = concat("u", unique_);
  const std::string at = concat("s", unique_);
  ++unique_;
  lines_.add("#pragma unroll");
  lines_.open(concat("for (int ", pass_, " = 0; ", pass_, " < ", passes.count, "; ++", pass_, ")"));
  lines_.add(concat("const i32 ", at, " = ", pass_, " * ", passes.lanes * binding_.group,
                    " + lane * ", passes.lanes, ";"));
  write_positions({&loop}, at, "i32", 1);
  lanes_ = passes.lanes;
  lane_loop_ = loop.id;
  if (lanes_ > 1) values_.set_lanes(loop.id, lanes_, passes.have_locals);
  if (passes.have_locals) {
    near_loop_ = &loop;
    for (const Statement& statement : loop.body) {
      if (statement.kind == Statement::Kind::Define)
        lines_.add(concat(computed_type(nest_.locals[statement.id]), " t", statement.id, "[",
                          lanes_, "];"));
    }
  }
  body();
  near_loop_ = nullptr;
  near_.clear();
  lanes_ = 1;
  values_.set_lanes(std::nullopt, 1, false);
  lines_.close();
}

// Row elements that several loops read stay in registers from the first loop to the last.
void KernelWriter::keep_rows(const Block& block) {
  constexpr std::int64_t kMostBytes = 192;  // register budget of a thread
  rows_.clear();
  struct Use {
    KeptRow row;
    const Statement* loop;
    RowPasses passes;
    std::size_t count;
  };
  std::vector<Use> uses;
  std::set<std::size_t> written;
  collect_written(block, written);
  for (const Statement& statement : block) {
    if (statement.kind != Statement::Kind::Loop) continue;
    const LoopBand band = band_of(statement);
    const auto passes = row_passes(band);
    if (!passes || passes->lanes == 1) continue;
    values_.set_lanes(statement.id, passes->lanes, false);
    lanes_ = passes->lanes;
    for_each_load(*band.inner, [&](const Scalar& load) {
      if (load->bounds == Bounds::Fill || written.contains(load->id) ||
          nest_.buffers[load->id].storage == StorageClass::Scratch ||
          !is_packed(load->args, load->view, statement.id) ||
          !is_inside_together(load, statement.id))
        return;
      const auto known = std::find_if(uses.begin(), uses.end(), [&](const Use& use) {
        return use.passes.lanes == passes->lanes && use.passes.count == passes->count &&
               is_same(use.row.load, load, use.row.loop, statement.id);
      });
      if (known == uses.end()) {
        uses.push_back({{load, statement.id, ""}, &statement, *passes, 1});
      } else if (known->loop != &statement) {
        known->loop = &statement;
        ++known->count;
      }
    });
    lanes_ = 1;
    values_.set_lanes(std::nullopt, 1, false);
  }
  std::int64_t bytes = 0;
  for (Use& use : uses) {
    const DType dtype = nest_.buffers[use.row.load->id].dtype;
    const auto size =
        static_cast<std::int64_t>(info(dtype).storage_bytes) * use.passes.lanes * use.passes.count;
    if (use.count < 2 || bytes + size > kMostBytes) continue;
    bytes += size;
    use.row.name = concat("row", rows_.size());
    const std::string type = concat("Pack<", stored_type(dtype), ", ", use.passes.lanes, ">");
    lines_.add(concat(type, " ", use.row.name, "[", use.passes.count, "];"));
    Statement loop;
    loop.id = use.row.loop;
    loop.extent = use.loop->extent;
    write_passes(loop, use.passes, [&] {
      values_.begin_statement();
      const Scalar& load = use.row.load;
      const std::vector<Scalar> indices(
          load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()));
      const auto at = values_.place(indices, load->view, load->bounds != Bounds::Inside);
      const std::string row = concat(use.row.name, "[", pass_, "] = "),
                        text = concat("load_pack<", stored_type(dtype), ", ", use.passes.lanes,
                                      ">(", nest_.buffers[load->id].name, " + ", at.offset, ");");
      if (at.inside.empty()) {
        lines_.add(row + text);
        return;
      }
      lines_.add(row + "{};");
      lines_.add(concat("if (", at.inside, ") ", row, text));
      lines_.add(concat("else ", ValueWriter::report(Check::Inside)));
    });
    rows_.push_back(use.row);
  }
}

void KernelWriter::write_spread(const LoopBand& band, const std::function<void()>& body) {
  const std::vector<const Statement*>& loops = band.loops;
  if (const auto passes = row_passes(band)) return write_passes(*loops.front(), *passes, body);
  const std::string type = is_short(loops) ? "i32" : "i64";
  const std::string at = concat("s", unique_++);
  lines_.open(concat("for (", type, " ", at, " = lane; ", at, " < ", count_text(loops, type, 1),
                     "; ", at, " += ", binding_.group, ")"));
  write_positions(loops, at, type, 1);
  body();
  lines_.close();
}

// Reductions of several neighbouring items: every thread has a partial result of each.
void KernelWriter::write_lane_folds(const LoopBand& band) {
  const auto in_every_lane = [&](const std::string& line) {
    lines_.add("#pragma unroll");
    lines_.add(concat("for (int v = 0; v < ", lanes_, "; ++v) ", line));
  };
  lines_.open("");
  for (const Statement& fold : *band.inner) {
    const DType dtype = nest_.locals[fold.id];
    const std::string before = concat("before", fold.id), local = concat("t", fold.id, "[v]");
    lines_.add(concat(computed_type(dtype), " ", before, "[", lanes_, "];"));
    const Scalar start = nests::identity_scalar(fold.reduction, dtype);
    in_every_lane(concat("{ ", before, "[v] = ", local, "; ", local, " = ",
                         literal_text(dtype, start->real, start->integer), "; }"));
  }
  write_spread(band, [&] {
    for (const Statement& fold : *band.inner) write_fold(fold);
  });
  for (const Statement& fold : *band.inner) {
    const DType dtype = nest_.locals[fold.id];
    const std::string local = concat("t", fold.id, "[v]");
    in_every_lane(concat("{ ", local, " = fold_group<", fold_name(fold.reduction, dtype), ", ",
                         binding_.group, ">(", local, ", partial, lane); ", local, " = ",
                         combined(fold.reduction, dtype, concat("before", fold.id, "[v]"), local),
                         "; }"));
  }
  lines_.close();
}

void KernelWriter::write_shared_folds(const LoopBand& band) {
  if (binding_.lanes > 1) return write_lane_folds(band);
  lines_.open("");
  // Each thread reduces its own positions from the identity; the previous value is combined last.
  for (const Statement& fold : *band.inner) {
    const DType dtype = nest_.locals[fold.id];
    lines_.add(concat("const ", computed_type(dtype), " before", fold.id, " = t", fold.id, ";"));
    const Scalar start = nests::identity_scalar(fold.reduction, dtype);
    lines_.add(concat("t", fold.id, " = ", literal_text(dtype, start->real, start->integer), ";"));
  }
  write_spread(band, [&] {
    for (const Statement& fold : *band.inner) write_fold(fold);
  });
  for (const Statement& fold : *band.inner) {
    const DType dtype = nest_.locals[fold.id];
    const std::string local = concat("t", fold.id);
    if (fold.place.is_defined()) {
      const bool is_max =
          fold.reduction == Reduction::ArgMax || fold.reduction == Reduction::ArgMaxLast;
      const bool takes_last =
          fold.reduction == Reduction::ArgMaxLast || fold.reduction == Reduction::ArgMinLast;
      lines_.add(concat("fold_places<", is_max ? "true" : "false", ", ",
                        takes_last ? "true" : "false", ", ", binding_.group, ">(", local, ", p",
                        fold.id, ", partial, lane);"));
      continue;
    }
    lines_.add(concat(local, " = fold_group<", fold_name(fold.reduction, dtype), ", ",
                      binding_.group, ">(", local, ", partial, lane);"));
    lines_.add(concat(local, " = ",
                      combined(fold.reduction, dtype, concat("before", fold.id), local), ";"));
  }
  lines_.close();
}

std::string KernelWriter::fold_name(Reduction reduction, DType dtype) {
  switch (reduction) {
    case Reduction::Sum:
      return dtype == DType::Bool ? "FoldOr" : "FoldSum";
    case Reduction::Product:
      return "FoldProduct";
    case Reduction::Max:
      return "FoldMost";
    default:
      return "FoldLeast";
  }
}

}  // namespace tenon::codegen::cuda
