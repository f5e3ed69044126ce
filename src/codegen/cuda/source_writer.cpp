#include "codegen/cuda/source_writer.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/cuda/attention_writer.h"
#include "codegen/cuda/box_template.h"
#include "codegen/cuda/fragment_template.h"
#include "codegen/cuda/prelude.h"
#include "codegen/cuda/product_writer.h"
#include "codegen/cuda/value_writer.h"
#include "ir/float_formats.h"
#include "nests/index_map.h"
#include "nests/stride.h"
#include "ops/expr_names.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <set>

namespace tenon::codegen::cuda {
namespace {

// What the partial results of a block's warps take.
constexpr int kFoldBytes = 32 * 16;

bool holds_place(const Block& block, std::set<std::size_t>& locals) {
  for (const Statement& statement : block) {
    if (statement.kind == Statement::Kind::Fold && statement.place.is_defined())
      locals.insert(statement.id);
    holds_place(statement.body, locals);
  }
  return !locals.empty();
}

class KernelWriter {
 public:
  KernelWriter(const Kernel& kernel)
      : nest_(*kernel.nest),
        binding_(kernel.binding),
        symbol_(kernel.symbol),
        values_(nest_, lines_),
        lanes_(kernel.binding.lanes) {
    if (lanes_ > 1) lane_loop_ = binding_.items.back()->id;
    holds_place(nest_.body, placed_);
    std::set<std::size_t> read, written;
    for_each_load(nest_.body, [&](const Scalar& load) { read.insert(load->id); });
    collect_written(nest_.body, written);
    for (const std::size_t buffer : written) {
      if (read.contains(buffer)) exchanged_.insert(buffer);
    }
  }

  std::string run() {
    lines_.add(concat("// ", nest_.name));
    lines_.open(concat("extern \"C\" __global__ void ", cluster(), "__launch_bounds__(",
                       binding_.threads, together(), ") ", symbol_, "(", parameters(), ")"));
    if (!binding_.reads_boxes()) lines_.add("wait_for_kernel_before();");
    if (binding_.product) {
      write_product(nest_, *binding_.product, lines_, values_);
    } else if (binding_.weight_gradient) {
      write_weight_gradient(nest_, *binding_.weight_gradient, lines_, values_);
    } else if (binding_.convolution) {
      write_convolution(nest_, *binding_.convolution, lines_, values_);
    } else if (binding_.attention) {
      write_attention(nest_, *binding_.attention, lines_, values_);
    } else {
      declare();
      write_items();
    }
    lines_.close();
    return lines_.take();
  }

  std::string emulation() const {
    std::string call;
    std::size_t given = 0;
    for (const NestBuffer& buffer : nest_.buffers) {
      if (buffer.storage == Storage::Scratch) continue;
      call += concat("(", buffer.storage == Storage::Operand ? "const " : "",
                     stored_type(buffer.dtype), "*)emulated_buffers[", given++, "], ");
    }
    for (std::size_t k = 0; k < nest_.extents.size(); ++k)
      call += concat("emulated_extents[", k, "], ");
    return concat(
        "static void body_", symbol_, "() { ", symbol_, "(", call,
        "emulated_scratch, emulated_error); }\n", "extern \"C\" void emulate_", symbol_,
        "(void** buffers, const i64* extents, u8* scratch, i64* error, unsigned blocks) {\n",
        "  emulated_buffers = buffers; emulated_extents = extents; emulated_scratch = scratch; "
        "emulated_error = error;\n",
        "  emulated_launch(body_", symbol_, ", blocks, ", binding_.threads, ", ",
        binding_.group > 1 ? "true" : "false", ");\n}\n");
  }

 private:
  static void collect_written(const Block& block, std::set<std::size_t>& written) {
    for (const Statement& statement : block) {
      if (statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update)
        written.insert(statement.id);
      collect_written(statement.body, written);
    }
  }

  std::string parameters() const {
    std::vector<std::string> list;
    for (std::size_t k = 0; k < nest_.buffers.size(); ++k) {
      const NestBuffer& buffer = nest_.buffers[k];
      if (buffer.storage == Storage::Scratch) continue;
      // What one thread writes and another reads must not be taken for a thread's own: it would be
      // read before the barrier.
      list.push_back(concat(buffer.storage == Storage::Operand ? "const " : "",
                            stored_type(buffer.dtype),
                            exchanged_.contains(k) ? "* " : "* __restrict__ ", buffer.name));
    }
    for (std::size_t k = 0; k < nest_.extents.size(); ++k) list.push_back(concat("const i64 n", k));
    list.emplace_back("u8* __restrict__ scratch");
    list.emplace_back("i64* __restrict__ error");
    return join(list, ", ") + (binding_.reads_boxes() ? " TENSOR_MAPS" : "");
  }

  std::string cluster() const {
    return binding_.convolution ? concat("TOGETHER(", binding_.convolution->cluster, ") ") : "";
  }
  // So many blocks a multiprocessor is to have at once.
  std::string together() const {
    if (binding_.weight_gradient) return ", 1";
    return binding_.attention ? concat(", ", blocks_together(*binding_.attention)) : "";
  }

  unsigned groups() const { return binding_.threads / binding_.group; }
  bool is_shared() const { return binding_.group > 1; }

  void declare() {
    if (is_shared()) {
      lines_.add(concat("const int lane = (int)threadIdx.x % ", binding_.group,
                        ", g = (int)threadIdx.x / ", binding_.group, ";"));
      if (binding_.group > 32)
        lines_.add(concat("__shared__ __align__(16) u8 partial[", kFoldBytes, "];"));
      else
        lines_.add("u8* const partial = 0;");
    }
    if (binding_.has_global_scratch) {
      const std::string slot = is_shared() ? concat("(i64)blockIdx.x * ", groups(), " + g")
                                           : "(i64)blockIdx.x * blockDim.x + threadIdx.x";
      std::string size;
      for (const NestBuffer& buffer : nest_.buffers) {
        if (buffer.storage != Storage::Scratch) continue;
        size += concat(size.empty() ? "" : " + ", values_.extent(scratch_size(buffer)));
      }
      lines_.add(concat("u8* own = scratch + (", slot, ") * (", size, ");"));
    }
    for (const NestBuffer& buffer : nest_.buffers) {
      if (buffer.storage != Storage::Scratch) continue;
      const std::string type = stored_type(buffer.dtype);
      if (binding_.has_global_scratch) {
        lines_.add(concat(type, "* const ", buffer.name, " = (", type, "*)own;"));
        lines_.add(concat("own += ", values_.extent(scratch_size(buffer)), ";"));
        continue;
      }
      const std::int64_t count = std::max<std::int64_t>(1, product(buffer.dims).constant());
      if (is_shared()) {
        lines_.add(concat("__shared__ ", type, " all_", buffer.name, "[", groups() * count, "];"));
        lines_.add(
            concat(type, "* const ", buffer.name, " = all_", buffer.name, " + g * ", count, ";"));
      } else {
        lines_.add(concat(type, " ", buffer.name, "[", count, "];"));
      }
    }
    const std::string lanes = binding_.lanes > 1 ? concat("[", binding_.lanes, "]") : "";
    for (std::size_t k = 0; k < nest_.locals.size(); ++k) {
      lines_.add(concat(computed_type(nest_.locals[k]), " t", k, lanes, ";"));
      if (placed_.contains(k)) lines_.add(concat("i64 p", k, " = -1;"));
    }
  }

  // Positions of loops from one number, the last the fastest.
  void write_positions(const std::vector<const Statement*>& loops, std::string number,
                       const std::string& type, unsigned lanes) {
    for (std::size_t k = loops.size(); k-- > 0;) {
      const std::string name = concat("i", loops[k]->id);
      const unsigned width = k + 1 == loops.size() ? lanes : 1;
      const std::string factor = width > 1 ? concat(" * ", width) : "";
      values_.name_loop(loops[k]->id, name);
      if (k == 0) {
        lines_.add(concat("const ", type, " ", name, " = (", number, ")", factor, ";"));
        break;
      }
      const Dim& extent = loops[k]->extent;
      const std::string count =
          width > 1 ? std::to_string(extent.constant() / width) : values_.extent(extent);
      const std::string rest = concat("r", loops[k]->id, "_", unique_++);
      lines_.add(concat("const ", type, " ", name, " = (", number, ") % ", count, factor, ", ",
                        rest, " = (", number, ") / ", count, ";"));
      number = rest;
    }
  }

  static bool is_short(const std::vector<const Statement*>& loops) {
    double count = 1;
    for (const Statement* loop : loops)
      count *= loop->extent.is_constant() ? static_cast<double>(loop->extent.constant()) : 1e18;
    return count < 1 << 30;
  }
  std::string count_text(const std::vector<const Statement*>& loops, const std::string& type,
                         unsigned lanes) const {
    if (loops.empty()) return "1";
    std::string text;
    for (std::size_t k = 0; k < loops.size(); ++k) {
      const bool is_last = k + 1 == loops.size();
      const std::string count = is_last && lanes > 1
                                    ? std::to_string(loops[k]->extent.constant() / lanes)
                                    : values_.extent(loops[k]->extent);
      text += concat(k > 0 ? " * " : "", "(", type, ")", count);
    }
    return text;
  }

  void write_items() {
    const std::string type = is_short(binding_.items) ? "i32" : "i64";
    const std::string per_block = std::to_string(is_shared() ? groups() : binding_.threads);
    const std::string first = concat("(", type, ")blockIdx.x * ", per_block, " + ",
                                     is_shared() ? "g" : "(i32)threadIdx.x");
    lines_.add(
        concat("const ", type, " items = ", count_text(binding_.items, type, binding_.lanes), ";"));
    lines_.open(concat("for (", type, " item = ", first, "; item < items; item += (", type,
                       ")gridDim.x * ", per_block, ")"));
    if (!binding_.items.empty()) {
      write_positions(binding_.items, "item", type, binding_.lanes);
      if (lanes_ > 1) values_.set_lanes(lane_loop_, lanes_, true);
    }
    if (is_shared()) {
      keep_rows(*binding_.inner);
      write_shared(*binding_.inner);
      if (!exchanged_.empty()) sync();
    } else {
      write_block(*binding_.inner);
    }
    lines_.close();
  }

  void sync() { lines_.add(concat("group_sync<", binding_.group, ">();")); }

  // Statements that all threads of a group come to together.
  void write_shared(const Block& block) {
    for (const Statement& statement : block) {
      if (statement.kind == Statement::Kind::Define) {
        write_define(statement);
        continue;
      }
      if (statement.kind == Statement::Kind::Store) {
        lines_.open("if (lane == 0)");
        write_store(statement);
        lines_.close();
        if (!exchanged_.empty()) sync();
        continue;
      }
      const LoopBand band = band_of(statement);
      if (is_fold_band(band)) {
        write_shared_folds(band);
      } else {
        write_spread(band, [&] { write_block(*band.inner); });
      }
      if (!exchanged_.empty()) sync();
    }
  }

  // How threads share a loop along a row whose length is known: each takes `lanes` neighbours in
  // every pass, the same in every loop.
  struct RowPasses {
    std::int64_t count = 0;
    unsigned lanes = 1;
  };
  std::optional<RowPasses> row_passes(const LoopBand& band) const {
    constexpr std::int64_t kMostElements = 32;
    if (band.loops.size() != 1 || !band.loops.front()->extent.is_constant()) return std::nullopt;
    const std::int64_t extent = band.loops.front()->extent.constant();
    const std::int64_t elements = extent / binding_.group;
    if (extent % binding_.group != 0 || elements > kMostElements) return std::nullopt;
    // Locals are a thread's, not a lane's.
    const bool is_plain =
        std::all_of(band.inner->begin(), band.inner->end(), [](const Statement& statement) {
          return statement.kind == Statement::Kind::Store ||
                 (statement.kind == Statement::Kind::Fold && !statement.place.is_defined());
        });
    const unsigned lanes = !is_plain ? 1 : elements % 4 == 0 ? 4 : elements % 2 == 0 ? 2 : 1;
    return RowPasses{elements / lanes, lanes};
  }

  // Passes over a row, all written out.
  void write_passes(const Statement& loop, const RowPasses& passes,
                    const std::function<void()>& body) {
    pass_ = concat("u", unique_);
    const std::string at = concat("s", unique_);
    ++unique_;
    lines_.add("#pragma unroll");
    lines_.open(
        concat("for (int ", pass_, " = 0; ", pass_, " < ", passes.count, "; ++", pass_, ")"));
    lines_.add(concat("const i32 ", at, " = ", pass_, " * ", passes.lanes * binding_.group,
                      " + lane * ", passes.lanes, ";"));
    write_positions({&loop}, at, "i32", 1);
    lanes_ = passes.lanes;
    lane_loop_ = loop.id;
    if (lanes_ > 1) values_.set_lanes(loop.id, lanes_, false);
    body();
    lanes_ = 1;
    values_.set_lanes(std::nullopt, 1, false);
    lines_.close();
  }

  // What several loops read of a row stays in registers from the first to the last.
  void keep_rows(const Block& block) {
    constexpr std::int64_t kMostBytes = 192;  // of a thread's registers
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
            nest_.buffers[load->id].storage == Storage::Scratch ||
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
      const auto size = static_cast<std::int64_t>(info(dtype).storage_bytes) * use.passes.lanes *
                        use.passes.count;
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
            load->args.begin(),
            load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()));
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

  void write_spread(const LoopBand& band, const std::function<void()>& body) {
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

  void write_shared_folds(const LoopBand& band) {
    lines_.open("");
    // Each thread folds its own positions; what was there before comes last.
    for (const Statement& fold : *band.inner) {
      const DType dtype = nest_.locals[fold.id];
      lines_.add(concat("const ", computed_type(dtype), " before", fold.id, " = t", fold.id, ";"));
      const Scalar start = nests::identity_scalar(fold.reduction, dtype);
      lines_.add(
          concat("t", fold.id, " = ", literal_text(dtype, start->real, start->integer), ";"));
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

  static std::string fold_name(Reduction reduction, DType dtype) {
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

  // Statements of one thread.
  void write_block(const Block& block) {
    for (const Statement& statement : block) {
      switch (statement.kind) {
        case Statement::Kind::Loop:
          write_loop(statement);
          break;
        case Statement::Kind::Define:
          write_define(statement);
          break;
        case Statement::Kind::Fold:
          write_fold(statement);
          break;
        case Statement::Kind::Store:
          write_store(statement);
          break;
        case Statement::Kind::Update:
          write_update(statement);
          break;
      }
    }
  }

  void write_loop(const Statement& loop) {
    const std::string name = concat("i", loop.id);
    const bool has_number =
        loop.extent.is_constant() && loop.extent.constant() <= std::numeric_limits<int>::max();
    std::string count = values_.extent(loop.extent);
    if (loop.limit.is_defined()) {
      values_.begin_statement();
      count = values_.value(loop.limit);
    }
    const std::string type = has_number ? "i32" : "i64";
    values_.name_loop(loop.id, name);
    lines_.open(concat("for (", type, " ", name, " = 0; ", name, " < ", count, "; ++", name, ")"));
    write_block(loop.body);
    lines_.close();
  }

  // What a statement does, for every lane of the thread.
  void in_lanes(const Statement& statement, const std::function<void()>& write) {
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

  void load_packs(const Statement& statement) {
    std::unordered_map<const ScalarNode*, ValueWriter::PackedLoad> packed;
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

  void finish_store() {
    if (!store_) return;
    lines_.add(concat("store_pack<", store_->type, ", ", lanes_, ">(", store_->target, ", ",
                      store_->pack, ");"));
    store_ = std::nullopt;
  }

  // Whether there is one answer for all lanes: what moves with them lies inside.
  bool is_inside_together(const Scalar& load, std::size_t loop) const {
    if (load->bounds == Bounds::Inside) return true;
    for (std::size_t axis = 0; axis < load->view.size(); ++axis) {
      if (depends_on(load->args[axis], loop) &&
          !values_.is_surely_inside(load->args[axis], load->view[axis]))
        return false;
    }
    return true;
  }

  // Whether the lanes are one piece of the buffer that begins where such pieces do.
  bool is_packed(const std::vector<Scalar>& indices, const Dims& view, std::size_t loop) const {
    const std::vector<Scalar> coordinates(
        indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(view.size()));
    if (nests::stride_along(coordinates, view, loop) != nests::Stride::Unit) return false;
    std::size_t last = view.size();
    while (last > 0 && view[last - 1] == Dim(1)) --last;
    if (last == 0 || !values_.is_whole_pack(coordinates[last - 1])) return false;
    return last == 1 || (view[last - 1].is_constant() && view[last - 1].constant() % lanes_ == 0);
  }

  void write_define(const Statement& statement) {
    in_lanes(statement, [&] {
      const std::string value = values_.value(statement.value);
      lines_.add(concat(values_.local(statement.id), " = ", value, ";"));
      if (placed_.contains(statement.id))
        lines_.add(concat(values_.place_of(statement.id), " = -1;"));
    });
  }

  void write_fold(const Statement& statement) {
    in_lanes(statement, [&] {
      const DType dtype = nest_.locals[statement.id];
      const std::string local = values_.local(statement.id);
      const Scalar& value = statement.value;
      if (statement.place.is_defined()) {
        const bool is_max = statement.reduction == Reduction::ArgMax ||
                            statement.reduction == Reduction::ArgMaxLast;
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

  // What is rounded to the buffer's type where it is stored need not be before.
  static const Scalar& rounded_once(const Statement& store, const NestBuffer& to) {
    const Scalar& value = store.value;
    const bool is_rounded = value->kind == ScalarKind::Cast && value->dtype == to.dtype &&
                            (to.dtype == DType::F16 || to.dtype == DType::BF16) &&
                            value->args[0]->dtype == DType::F32;
    return is_rounded ? value->args[0] : value;
  }

  void write_store(const Statement& statement) {
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

  void write_update(const Statement& statement) {
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

  struct PackedStore {
    std::string pack, target, type;
  };
  // A load along a loop whose elements a thread keeps, by pass.
  struct KeptRow {
    Scalar load;
    std::size_t loop;
    std::string name;
  };

  const LoopNest& nest_;
  const Binding& binding_;
  const std::string& symbol_;
  Lines lines_;
  ValueWriter values_;
  std::set<std::size_t> placed_;     // locals that keep the place of an extreme
  std::set<std::size_t> exchanged_;  // buffers of which threads read what others wrote
  std::optional<PackedStore> store_;
  unsigned lanes_ = 1;  // neighbours that each statement is done for, and along which loop
  std::size_t lane_loop_ = 0;
  std::vector<KeptRow> rows_;
  std::string pass_;  // over a row
  std::size_t unique_ = 0;
};

// There are 256 at most: a table has them all. Only those that the kernels look up.
std::string tables(const std::string& kernels) {
  std::string text;
  for (const DTypeInfo& dtype : all_dtypes()) {
    const std::string name = concat("values_of_", dtype.name);
    if (kernels.find(name + "[") == std::string::npos) continue;
    std::vector<std::string> values;
    for (unsigned code = 0; code < 256; ++code) {
      const float value = narrow_float_to_f32(dtype.dtype, static_cast<std::uint8_t>(code));
      values.push_back(concat(std::bit_cast<std::uint32_t>(value), "u"));
    }
    // As bits: NaN and infinity are no constants of the language's.
    text += concat("__constant__ u32 ", name, "[256] = {", join(values, ", "), "};\n");
  }
  return text;
}

// The templates that some of the kernels call.
std::string templates(const std::vector<Kernel>& kernels) {
  const auto some = [&](const auto& property) {
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const Kernel& kernel) { return property(kernel.binding); });
  };
  const bool has_attention = some([](const Binding& made) { return made.attention.has_value(); });
  const bool has_product = some([](const Binding& made) { return made.product.has_value(); });
  const bool has_weight_gradient =
      some([](const Binding& made) { return made.weight_gradient.has_value(); });
  const bool has_convolution =
      some([](const Binding& made) { return made.convolution.has_value(); });
  const bool has_boxes = some([](const Binding& made) { return made.reads_boxes(); });
  std::string text;
  if (has_attention || has_boxes) text += fragment_template();
  if (has_attention) text += attention_template();
  if (has_boxes) text += box_template();
  if (has_convolution) text += convolution_template();
  if (has_product) text += product_template();
  if (has_weight_gradient) text += weight_gradient_template();
  return text;
}

}  // namespace

std::string write_source(const std::vector<Kernel>& kernels) {
  std::string text;
  for (const Kernel& kernel : kernels) text += "\n" + KernelWriter(kernel).run();
  return concat(prelude(), templates(kernels), tables(text), text);
}

std::string write_emulation(const std::vector<Kernel>& kernels) {
  std::string text = R"(static void** emulated_buffers;
static const i64* emulated_extents;
static u8* emulated_scratch;
static i64* emulated_error;
static void emulated_launch(void (*body)(), unsigned blocks, unsigned threads, bool has_barriers) {
  gridDim.x = blocks;
  blockDim.x = threads;
  emulated::body = body;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    if (has_barriers) { emulated::run_block(threads); continue; }
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) body();
  }
}
)";
  for (const Kernel& kernel : kernels) {
    KernelWriter writer(kernel);
    text += "\n" + writer.run() + writer.emulation();
  }
  return concat(device_emulation(), prelude(), templates(kernels), tables(text), text);
}

}  // namespace tenon::codegen::cuda
