#include "codegen/cuda/kernel_writer.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/cuda/attention_writer.h"
#include "codegen/cuda/gemm_writer.h"
#include "nests/index_map.h"
#include "nests/reports.h"

#include <algorithm>
#include <limits>

namespace tenon::codegen::cuda {
namespace {

// Shared memory for the partial results of a block's warps.
constexpr int kFoldBytes = 32 * 16;

bool holds_place(const Block& block, std::set<std::size_t>& locals) {
  for (const Statement& statement : block) {
    if (statement.kind == Statement::Kind::Fold && statement.place.is_defined())
      locals.insert(statement.id);
    holds_place(statement.body, locals);
  }
  return !locals.empty();
}

}  // namespace

KernelWriter::KernelWriter(const BoundNest& kernel)
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

std::string KernelWriter::run() {
  lines_.add(concat("// ", nest_.name));
  lines_.open(concat("extern \"C\" __global__ void ", cluster(), "__launch_bounds__(",
                     binding_.threads, together(), ") ", symbol_, "(", parameters(), ")"));
  if (!binding_.uses_tma()) lines_.add("wait_for_kernel_before();");
  if (binding_.gemm) {
    write_gemm(nest_, *binding_.gemm, lines_, values_);
  } else if (binding_.weight_gradient) {
    write_weight_gradient(nest_, *binding_.weight_gradient, lines_, values_);
  } else if (binding_.convolution) {
    write_convolution(nest_, *binding_.convolution, lines_, values_);
  } else if (binding_.mma) {
    write_mma(nest_, *binding_.mma, lines_, values_);
  } else if (binding_.wgmma_attention) {
    write_wgmma_attention(nest_, *binding_.attention, *binding_.wgmma_attention, lines_, values_);
  } else if (binding_.split_attention) {
    write_split_attention(nest_, *binding_.attention, *binding_.split_attention, lines_, values_);
  } else if (binding_.attention) {
    write_attention(nest_, *binding_.attention, lines_, values_);
  } else {
    declare();
    write_items();
  }
  lines_.close();
  std::string text = lines_.take();
  TENON_ASSERT(nests::may_report(nest_) || text.find("*error") == std::string::npos,
               "a kernel reports nothing that its nest does not tell of");
  return text;
}

void KernelWriter::collect_written(const Block& block, std::set<std::size_t>& written) {
  for (const Statement& statement : block) {
    if (statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update)
      written.insert(statement.id);
    collect_written(statement.body, written);
  }
}

std::string KernelWriter::parameters() const {
  std::vector<std::string> list;
  for (std::size_t k = 0; k < nest_.buffers.size(); ++k) {
    const NestBuffer& buffer = nest_.buffers[k];
    if (buffer.storage == StorageClass::Scratch) continue;
    // Buffers through which threads exchange values are not `__restrict__`: the compiler could
    // otherwise move a read above the barrier.
    list.push_back(concat(buffer.storage == StorageClass::Operand ? "const " : "",
                          stored_type(buffer.dtype),
                          exchanged_.contains(k) ? "* " : "* __restrict__ ", buffer.name));
  }
  for (std::size_t k = 0; k < nest_.extents.size(); ++k) list.push_back(concat("const i64 n", k));
  list.emplace_back("u8* __restrict__ scratch");
  list.emplace_back("i64* __restrict__ error");
  return join(list, ", ") + (binding_.uses_tma() ? " TENSOR_MAPS" : "");
}

// Minimum number of resident blocks per multiprocessor, for `__launch_bounds__`.
std::string KernelWriter::together() const {
  if (binding_.weight_gradient || binding_.wgmma_attention) return ", 1";
  if (binding_.split_attention) return concat(", ", binding_.split_attention->resident_blocks);
  return binding_.attention ? concat(", ", min_blocks_per_multiprocessor(*binding_.attention)) : "";
}

std::string KernelWriter::cluster() const {
  const bool has_clusters = binding_.convolution || binding_.split_attention;
  return has_clusters ? concat("TOGETHER(", binding_.cluster(), ") ") : "";
}

void KernelWriter::declare() {
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
      if (buffer.storage != StorageClass::Scratch) continue;
      size += concat(size.empty() ? "" : " + ", values_.extent(scratch_size(buffer)));
    }
    lines_.add(concat("u8* own = scratch + (", slot, ") * (", size, ");"));
  }
  for (const NestBuffer& buffer : nest_.buffers) {
    if (buffer.storage != StorageClass::Scratch) continue;
    const std::string type = stored_type(buffer.dtype);
    if (binding_.has_global_scratch) {
      lines_.add(concat(type, "* const ", buffer.name, " = (", type, "*)own;"));
      lines_.add(concat("own += ", values_.extent(scratch_size(buffer)), ";"));
      continue;
    }
    const std::int64_t count = std::max<std::int64_t>(1, product(buffer.dims).constant());
    if (is_shared()) {
      lines_.add(concat("__shared__ __align__(16) ", type, " all_", buffer.name, "[",
                        groups() * count, "];"));
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

// Splits a linear index into loop positions; the last loop varies fastest.
void KernelWriter::write_positions(const std::vector<const Statement*>& loops, std::string number,
                                   const std::string& type, unsigned lanes) {
  for (std::size_t k = loops.size(); k-- > 0;) {
    const std::string name = loop_name(loops[k]->id);
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
    lines_.add(concat("const ", type, " ", name, " = (", number, ") % ", count, factor, ", ", rest,
                      " = (", number, ") / ", count, ";"));
    number = rest;
  }
}

bool KernelWriter::is_short(const std::vector<const Statement*>& loops) {
  double count = 1;
  for (const Statement* loop : loops)
    count *= loop->extent.is_constant() ? static_cast<double>(loop->extent.constant()) : 1e18;
  return count < 1 << 30;
}

std::string KernelWriter::count_text(const std::vector<const Statement*>& loops,
                                     const std::string& type, unsigned lanes) const {
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

void KernelWriter::write_items() {
  const std::string type = is_short(binding_.items) ? "i32" : "i64";
  const std::string per_block = std::to_string(is_shared() ? groups() : binding_.threads);
  const std::string first =
      concat("(", type, ")blockIdx.x * ", per_block, " + ", is_shared() ? "g" : "(i32)threadIdx.x");
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
  } else {
    write_block(*binding_.inner);
  }
  lines_.close();
}

// Writes statements that all threads of a group execute together.
void KernelWriter::write_shared(const Block& block) {
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

// Writes statements that one thread executes.
void KernelWriter::write_block(const Block& block) {
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

void KernelWriter::write_loop(const Statement& loop) {
  const std::string name = loop_name(loop.id);
  const bool has_number =
      loop.extent.is_constant() && loop.extent.constant() <= std::numeric_limits<int>::max();
  std::string count = values_.extent(loop.extent);
  if (loop.limit.is_defined()) {
    values_.begin_statement();
    count = values_.value(loop.limit);
  }
  const std::string type = has_number ? "i32" : "i64";
  values_.name_loop(loop.id, name);
  if (near_loop_ != nullptr) {
    load_neighbours(loop);
    lines_.add("#pragma unroll");  // the values are in registers
  }
  lines_.open(concat("for (", type, " ", name, " = 0; ", name, " < ", count, "; ++", name, ")"));
  write_block(loop.body);
  lines_.close();
}

}  // namespace tenon::codegen::cuda
