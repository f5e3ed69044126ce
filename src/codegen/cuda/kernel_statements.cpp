#include "codegen/cuda/kernel_writer.h"
#include "nests/index_map.h"
#include "nests/stride.h"

#include <unordered_map>

namespace tenon::codegen::cuda {

// Writes a statement for every lane of the thread.
void KernelWriter::in_lanes(const Statement& statement, const std::function<void()>& write) {
  values_.begin_statement();
  if (lanes_ == 1) {
    lines_.open("");
    write();
    lines_.close();
    return;
  }
  lines_.open("");
  load_packs(statement);
  values_.begin_statement();
  lines_.add("#pragma unroll");
  lines_.open(concat("for (int v = 0; v < ", lanes_, "; ++v)"));
  values_.set_in_lanes(true);
  write();
  values_.set_in_lanes(false);
  lines_.close();
  finish_store();
  lines_.close();
}

void KernelWriter::load_packs(const Statement& statement) {
  std::unordered_map<const ScalarNode*, ValueWriter::PackedLoad> packed = near_;
  const std::size_t loop = lane_loop_;
  const Block alone{statement};
  for_each_load(alone, [&](const Scalar& load) {
    if (!is_packed(load->args, load->view, loop) || !is_inside_together(load, loop)) return;
    for (const KeptRow& row : rows_) {
      if (!is_same(row.load, load, row.loop, loop)) continue;
      packed[&load.node()] = {concat(row.name, "[", pass_, "]"), ""};
      return;
    }
    const std::vector<Scalar> indices(
        load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()));
    const NestBuffer& from = nest_.buffers[load->id];
    const auto at = values_.place(indices, load->view, load->bounds != Bounds::Inside);
    const std::string pack = concat("q", unique_++),
                      type = concat("Pack<", stored_type(from.dtype), ", ", lanes_, ">");
    const std::string text = concat("load_pack<", stored_type(from.dtype), ", ", lanes_, ">(",
                                    from.name, " + ", at.offset, ")");
    if (at.inside.empty()) {
      lines_.add(concat("const ", type, " ", pack, " = ", text, ";"));
      packed[&load.node()] = {pack, ""};
      return;
    }
    const std::string guard = concat("g", unique_++);
    lines_.add(concat("const bool ", guard, " = ", at.inside, ";"));
    lines_.add(concat(type, " ", pack, ";"));
    lines_.add(concat("if (", guard, ") ", pack, " = ", text, ";"));
    if (load->bounds == Bounds::Checked)
      lines_.add(concat("else ", ValueWriter::report(Check::Inside)));
    packed[&load.node()] = {pack, guard};
  });
  values_.set_packed(std::move(packed));
  store_ = std::nullopt;
  if (statement.kind == Statement::Kind::Store &&
      is_packed(statement.indices, statement.view, loop)) {
    const NestBuffer& to = nest_.buffers[statement.id];
    const auto at = values_.place(statement.indices, statement.view, false);
    store_ = PackedStore{concat("q", unique_++), concat(to.name, " + ", at.offset),
                         stored_type(to.dtype)};
    lines_.add(concat("Pack<", store_->type, ", ", lanes_, "> ", store_->pack, ";"));
  }
}

void KernelWriter::finish_store() {
  if (!store_) return;
  lines_.add(concat("store_pack<", store_->type, ", ", lanes_, ">(", store_->target, ", ",
                    store_->pack, ");"));
  store_ = std::nullopt;
}

// True if one bounds check covers all lanes: every index that depends on the lane is in bounds.
bool KernelWriter::is_inside_together(const Scalar& load, std::size_t loop) const {
  if (load->bounds == Bounds::Inside) return true;
  for (std::size_t axis = 0; axis < load->view.size(); ++axis) {
    if (depends_on(load->args[axis], loop) &&
        !values_.is_surely_inside(load->args[axis], load->view[axis]))
      return false;
  }
  return true;
}

// True if the lanes access one aligned vector of the buffer.
bool KernelWriter::is_packed(const std::vector<Scalar>& indices, const Dims& view,
                             std::size_t loop) const {
  const std::vector<Scalar> coordinates(indices.begin(),
                                        indices.begin() + static_cast<std::ptrdiff_t>(view.size()));
  if (nests::stride_along(coordinates, view, loop) != nests::Stride::Unit) return false;
  std::size_t last = view.size();
  while (last > 0 && view[last - 1] == Dim(1)) --last;
  if (last == 0 || !values_.is_whole_pack(coordinates[last - 1])) return false;
  return last == 1 || (view[last - 1].is_constant() && view[last - 1].constant() % lanes_ == 0);
}

void KernelWriter::write_define(const Statement& statement) {
  in_lanes(statement, [&] {
    const std::string value = values_.value(statement.value);
    lines_.add(concat(values_.local(statement.id), " = ", value, ";"));
    if (placed_.contains(statement.id))
      lines_.add(concat(values_.place_of(statement.id), " = -1;"));
  });
}

void KernelWriter::write_fold(const Statement& statement) {
  in_lanes(statement, [&] {
    const DType dtype = nest_.locals[statement.id];
    const std::string local = values_.local(statement.id);
    const Scalar& value = statement.value;
    if (statement.place.is_defined()) {
      const bool is_max =
          statement.reduction == Reduction::ArgMax || statement.reduction == Reduction::ArgMaxLast;
      const bool takes_last = statement.reduction == Reduction::ArgMaxLast ||
                              statement.reduction == Reduction::ArgMinLast;
      const std::string next = values_.value(value), place = values_.value(statement.place),
                        known = values_.place_of(statement.id);
      lines_.add(concat("if (is_better<", computed_type(dtype), ", ", is_max ? "true" : "false",
                        ", ", takes_last ? "true" : "false", ">(", local, ", ", known, ", ", next,
                        ", ", place, ")) { ", local, " = ", next, "; ", known, " = ", place,
                        "; }"));
      return;
    }
    const bool is_product = statement.reduction == Reduction::Sum &&
                            value->kind == ScalarKind::Binary &&
                            value->binary == BinaryOp::Multiply && is_float(value->dtype);
    if (is_product) {
      const std::string a = values_.value(value->args[0]), b = values_.value(value->args[1]);
      lines_.add(concat(local, " = ", dtype == DType::F64 ? "fma(" : "fmaf(", a, ", ", b, ", ",
                        local, ");"));
      return;
    }
    const std::string next = values_.value(value);
    lines_.add(concat(local, " = ", combined(statement.reduction, dtype, local, next), ";"));
  });
}

// A rounding to the buffer's type directly before the store is redundant.
const Scalar& KernelWriter::rounded_once(const Statement& store, const NestBuffer& to) {
  const Scalar& value = store.value;
  const bool is_rounded = value->kind == ScalarKind::Cast && value->dtype == to.dtype &&
                          (to.dtype == DType::F16 || to.dtype == DType::BF16) &&
                          value->args[0]->dtype == DType::F32;
  return is_rounded ? value->args[0] : value;
}

void KernelWriter::write_store(const Statement& statement) {
  in_lanes(statement, [&] {
    const NestBuffer& to = nest_.buffers[statement.id];
    const std::string value = to_stored(to.dtype, values_.value(rounded_once(statement, to)));
    if (store_) {
      lines_.add(concat(store_->pack, ".at[v] = ", value, ";"));
      return;
    }
    const auto at = values_.place(statement.indices, statement.view, false);
    lines_.add(concat(to.name, "[", at.offset, "] = ", value, ";"));
  });
}

void KernelWriter::write_update(const Statement& statement) {
  in_lanes(statement, [&] {
    const NestBuffer& to = nest_.buffers[statement.id];
    const std::string value = values_.value(statement.value);
    const auto at = values_.place(statement.indices, statement.view, true);
    const std::string element = concat(to.name, "[", at.offset, "]");
    const std::string before = from_stored(to.dtype, element);
    const std::string write =
        concat(element, " = ",
               to_stored(to.dtype, combined(statement.reduction, to.dtype, before, value)), ";");
    if (at.inside.empty()) {
      lines_.add(write);
    } else {
      lines_.add(concat("if (", at.inside, ") ", write,
                        " else *error = ", static_cast<int>(Check::Inside), ";"));
    }
  });
}

}  // namespace tenon::codegen::cuda
