#include "codegen/cuda/gemm_writer.h"

#include "base/error.h"
#include "base/text.h"
#include "nests/index_map.h"
#include "nests/stride.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace tenon::codegen::cuda {

namespace {

// Type of the epilogue's result before it is rounded for the store.
std::string value_type(const GemmTile& tile) {
  return tile.has_bytes() ? stored_type(tile.result_dtype) : "float";
}

// Nests list the extents of single loops, not their product.
std::string row_count(const GemmTile& tile, ValueWriter& values) {
  std::string count = "(i64)1";
  for (const Statement* row : tile.rows) count += concat(" * ", values.extent(row->extent));
  return count;
}

// True if the load reads eight contiguous columns, aligned to eight elements.
bool is_piece(const Scalar& load, std::size_t columns) {
  if (load->bounds != Bounds::Inside) return false;
  const Dims& view = load->view;
  const std::vector<Scalar> at(load->args.begin(),
                               load->args.begin() + static_cast<std::ptrdiff_t>(view.size()));
  if (nests::stride_along(at, view, columns) != nests::Stride::Unit) return false;
  std::size_t last = view.size();
  while (last > 0 && view[last - 1] == Dim(1)) --last;
  if (last == 0 || at[last - 1]->kind != ScalarKind::Loop || at[last - 1]->id != columns)
    return false;
  return last == 1 || (view[last - 1].is_constant() && view[last - 1].constant() % kTogether == 0);
}

// Vector loads of the epilogue: those that are equal for all rows, and the others.
struct FetchedPieces {
  std::vector<Scalar> of_columns, of_rows;
};
FetchedPieces find_pieces(const GemmTile& tile) {
  FetchedPieces found;
  nests::for_each_load({tile.store}, [&](const Scalar& load) {
    if (!is_piece(load, tile.columns->id)) return;
    const bool is_of_row = std::ranges::any_of(
        tile.rows, [&](const Statement* row) { return nests::depends_on(load, row->id); });
    (is_of_row ? found.of_rows : found.of_columns).push_back(load);
  });
  return found;
}

// True if the epilogue depends on a loop other than through its vector loads.
bool asks_for(const GemmTile& tile, const Statement* loop) {
  std::unordered_set<const ScalarNode*> seen;
  std::vector<Scalar> work{tile.store.value};
  while (!work.empty()) {
    const Scalar at = work.back();
    work.pop_back();
    if (!seen.insert(&at.node()).second) continue;
    if (at->kind == ScalarKind::Loop && at->id == loop->id) return true;
    if (at->kind == ScalarKind::Load && is_piece(at, tile.columns->id)) continue;
    work.insert(work.end(), at->args.begin(), at->args.end());
  }
  return false;
}

// True if the epilogue converts accumulators to bytes in fragment layout and shuffles the bytes
// afterwards.
bool is_in_pairs(const GemmTile& tile) {
  return tile.has_bytes() && info(tile.result_dtype).storage_bytes == 1 &&
         !asks_for(tile, tile.columns);
}

// Indices and view of a load or the store.
struct AccessedElement {
  std::vector<Scalar> at;
  Dims view;
};
AccessedElement seen_by(const Scalar& load) {
  return {{load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size())},
          load->view};
}

// True if the row loops also collapse into one index here, each with a known stride.
bool has_rows_as_one(const AccessedElement& seen, const GemmTile& tile) {
  const std::size_t count = tile.rows.size();
  if (count == 0 || seen.view.size() <= count) return false;
  for (std::size_t k = 0; k < count; ++k) {
    if (seen.at[k]->kind != ScalarKind::Loop || seen.at[k]->id != tile.rows[k]->id ||
        !(seen.view[k] == tile.rows[k]->extent))
      return false;
  }
  return std::all_of(seen.view.begin() + static_cast<std::ptrdiff_t>(count), seen.view.end(),
                     [](const Dim& dim) { return dim.is_constant(); });
}

// Offset of the element at the given row and column.
std::string offset_of(const AccessedElement& seen, const GemmTile& tile, ValueWriter& values) {
  if (!has_rows_as_one(seen, tile)) return values.place(seen.at, seen.view, false).offset;
  const auto count = static_cast<std::ptrdiff_t>(tile.rows.size());
  const Dims inner(seen.view.begin() + count, seen.view.end());
  const std::optional<std::int64_t> all = product(seen.view).value();
  const bool is_short = all && *all <= std::numeric_limits<int>::max();
  return concat(is_short ? "" : "(i64)", "row * ", product(inner).constant(), " + ",
                values.place({seen.at.begin() + count, seen.at.end()}, inner, false).offset);
}

// Writes the epilogue of eight columns (four pairs in fragment layout, or contiguous), with its
// prefetched operands and its store. It receives the collapsed row index and the first column.
void write_finish(const LoopNest& nest, const GemmTile& tile, bool in_pairs, Lines& lines,
                  ValueWriter& values) {
  // Opens a function; recovers the positions of the row loops only if the body needs them.
  const auto open_at_row = [&](const std::string& head, bool has_positions) {
    lines.open(head);
    if (has_positions) lines.add("i32 rest = row;");
    for (std::size_t k = tile.rows.size(); has_positions && k-- > 0;) {
      const std::string name = loop_name(tile.rows[k]->id);
      values.name_loop(tile.rows[k]->id, name);
      const std::string count = values.extent(tile.rows[k]->extent);
      lines.add(k == 0 ? concat("const i32 ", name, " = rest;")
                       : concat("const i32 ", name, " = rest % (i32)", count, "; rest /= (i32)",
                                count, ";"));
    }
    values.name_loop(tile.columns->id, "column");
    values.begin_statement();
  };
  const auto close = [&] {
    lines.close();
    lines.add(";");
  };
  const AccessedElement result{tile.store.indices, tile.store.view};
  open_at_row("const auto place = [&](i32 row, i32 column) -> i64", !has_rows_as_one(result, tile));
  lines.add(concat("return ", offset_of(result, tile, values), ";"));
  close();
  const FetchedPieces pieces = find_pieces(tile);
  std::unordered_map<const ScalarNode*, ValueWriter::PackedLoad> packed;
  const auto members = [&](const std::vector<Scalar>& loads) {
    std::string text;
    for (const Scalar& load : loads) {
      const std::string name = concat("q", packed.size());
      text += concat(" Eight<", stored_type(nest.buffers[load->id].dtype), "> ", name, ";");
      packed[&load.node()] = {"fetched." + name, ""};
    }
    return text;
  };
  const auto load_all = [&](const std::vector<Scalar>& loads, const char* load_pieces) {
    for (const Scalar& load : loads) {
      const NestBuffer& from = nest.buffers[load->id];
      lines.add(concat(packed.at(&load.node()).pack, " = ", load_pieces, "(", from.name, " + ",
                       offset_of(seen_by(load), tile, values), ");"));
    }
    lines.add("return fetched;");
  };
  lines.add(concat("struct Columns {", members(pieces.of_columns), " };"));
  lines.add(concat("struct Fetched : Columns {", members(pieces.of_rows), " };"));
  open_at_row(concat("const auto fetch_columns = [&](i32 column, const ",
                     in_pairs ? "LoadPairs" : "LoadNeighbours", "& load) -> Columns"),
              false);
  lines.add("Columns fetched;");
  load_all(pieces.of_columns, "load");
  close();
  open_at_row("const auto fetch = [&](i32 row, i32 column) -> Fetched",
              !std::ranges::all_of(pieces.of_rows, [&](const Scalar& load) {
                return has_rows_as_one(seen_by(load), tile);
              }));
  lines.add(in_pairs
                ? "Fetched fetched;"
                : "Fetched fetched; (Columns&)fetched = fetch_columns(column, LoadNeighbours());");
  load_all(pieces.of_rows, "load_eight");
  close();
  lines.open("const auto trade_fetched = [&](Fetched& fetched, int lane)");
  for (const Scalar& load : pieces.of_rows)
    lines.add(concat("trade_eight(", packed.at(&load.node()).pack, ", lane);"));
  close();
  const bool has_bytes = tile.has_bytes();
  values.set_narrow(info(tile.result_dtype).storage_bytes == 2);
  values.set_packed(std::move(packed));
  const std::string sum = has_bytes ? "i32" : "float";
  open_at_row(
      concat("const auto finish = [&](const ", sum,
             "* sums, const Fetched& fetched, i32 row, i32 column) -> Eight<", value_type(tile),
             ">"),
      std::ranges::any_of(tile.rows, [&](const Statement* row) { return asks_for(tile, row); }));
  lines.add(concat("Eight<", value_type(tile), "> made;"));
  lines.open("UNROLL for (int v = 0; v < 8; ++v)");
  lines.add(concat("const ", sum, " ", values.local(tile.sum), " = sums[v];"));
  values.set_lanes(tile.columns->id, 8, false);
  values.set_in_lanes(true);
  const std::string value = values.value(tile.store.value);
  lines.add(concat("made.at[v] = ",
                   has_bytes ? to_stored(tile.result_dtype, value) : concat("(float)(", value, ")"),
                   ";"));
  lines.close();
  lines.add("return made;");
  close();
}

std::string format_of(const GemmTile& tile) {
  if (tile.dtype == DType::F32) return "FormatTf32";
  if (!tile.has_bytes()) return tile.dtype == DType::F16 ? "FormatF16" : "FormatBf16";
  const auto is_signed = [](DType dtype) { return dtype == DType::I8 ? "true" : "false"; };
  return concat("FormatBytes<", is_signed(tile.dtype), ", ", is_signed(tile.b_dtype), ">");
}

}  // namespace

void write_gemm(const LoopNest& nest, const GemmTile& tile, Lines& lines, ValueWriter& values) {
  write_finish(nest, tile, is_in_pairs(tile), lines, values);
  const std::int64_t depth = tile_depth(tile.dtype),
                     blocks = (tile.inner_count + depth - 1) / depth;
  lines.add(concat("product_tiles<", format_of(tile), ", ", tile.tile_columns(), ", ",
                   tile.is_b_n_major ? "true" : "false", ", ", value_type(tile),
                   is_in_pairs(tile) ? ", true" : ", false", ">(&map_a, &map_b, ",
                   row_count(tile, values), ", ", tile.column_count, ", MatrixRows{", blocks, "}, ",
                   nest.buffers[tile.store.id].name,
                   ", fetch_columns, fetch, trade_fetched, finish, place);"));
}

void write_convolution(const LoopNest& nest, const ConvolutionTile& tile, Lines& lines,
                       ValueWriter& values) {
  const bool in_pairs = tile.is_large && is_in_pairs(tile.gemm);
  write_finish(nest, tile.gemm, in_pairs, lines, values);
  std::string numbers;
  for (const std::int64_t number :
       {tile.channels, tile.rows, tile.columns, tile.outputs, tile.window_columns, tile.rows_before,
        tile.columns_before, tile.row_stride, tile.column_stride, tile.row_dilation,
        tile.column_dilation})
    numbers += concat(numbers.empty() ? "" : ", ", number);
  lines.add(concat("const WindowPixels source = {", tile.stage_count(), ", {", numbers, "}};"));
  const std::string pixels = row_count(tile.gemm, values), format = format_of(tile.gemm),
                    value = value_type(tile.gemm), result = nest.buffers[tile.gemm.store.id].name;
  if (tile.is_large) {
    lines.add(concat("product_tiles<", format, ", ", tile.tile_outputs, ", false, ", value,
                     in_pairs ? ", true" : ", false", ">(&map_a, &map_b, ", pixels, ", ",
                     tile.outputs, ", source, ", result,
                     ", fetch_columns, fetch, trade_fetched, finish, place);"));
  } else {
    lines.add(concat("convolution_tile<", format, ", ", tile.parts, ", ", tile.siblings, ", ",
                     tile.stages, ", ", value, ">(&map_a, &map_b, ", pixels, ", source, ", result,
                     ", fetch, finish, place);"));
  }
}

void write_weight_gradient(const LoopNest& nest, const WeightGradientTile& tile, Lines& lines,
                           ValueWriter& values) {
  std::vector<std::string> numbers;
  const Dims &image = tile.image->view, &gradient = tile.gradient->view;
  for (const Dim& dim : {gradient[0], image[3], gradient[1], image[2], gradient[3],
                         Dim(tile.rows_before), Dim(tile.columns_before), tile.images->extent,
                         tile.lines->extent, tile.groups->extent, tile.bands->extent})
    numbers.push_back(concat("(i32)", values.extent(dim)));
  lines.add(concat("const WeightGradient shape = {", join(numbers, ", "), "};"));
  const GradientStrip strip = strip_of(tile);
  lines.add(concat("weight_gradient_units<", tile.rows->extent.constant(), ", ",
                   tile.columns->extent.constant(), ", ", strip.columns, ", ", strip.images, ", ",
                   strip.pitch, ">(&map_a, &map_b, ", nest.buffers[tile.result].name, ", shape);"));
}

void write_mma(const LoopNest& nest, const MmaTile& tile, Lines& lines, ValueWriter& values) {
  const GemmTile& gemm = tile.gemm;
  write_finish(nest, gemm, false, lines, values);
  const auto element_bytes = static_cast<std::int64_t>(info(gemm.dtype).storage_bytes);
  const auto address = [&](const Scalar& load) {
    return concat("(const u8*)", nest.buffers[load->id].name);
  };
  // Groups are rows of the epilogue, and have blocks of their own.
  std::string rows = row_count(gemm, values), of_a = address(gemm.a), of_b = address(gemm.b);
  if (tile.groups == 1) {
    lines.add("const i32 tile = (i32)blockIdx.x, group = 0;");
  } else {
    rows = concat("(", rows, ") / ", tile.groups);
    lines.add(concat("const i32 tiles = (i32)((", rows, " + ", tile.rows - 1, ") / ", tile.rows,
                     ") * ", (gemm.column_count + tile.columns - 1) / tile.columns,
                     ", tile = (i32)blockIdx.x % tiles, group = (i32)blockIdx.x / tiles;"));
    of_a += concat(" + group * ", tile.convolution->channels * element_bytes);
    of_b += concat(" + (i64)group * ", gemm.column_count * gemm.b_pitch * element_bytes);
  }
  if (tile.convolution) {
    const ConvolutionTile& window = *tile.convolution;
    const Dims& image = window.image->view;
    const std::int64_t channel_bytes = window.channels * element_bytes;
    std::string numbers;
    for (const std::int64_t number :
         {tile.groups * channel_bytes, channel_bytes, image[1].constant(), image[2].constant(),
          window.rows, window.columns, window.window_rows, window.window_columns,
          window.rows_before, window.columns_before, window.row_stride, window.column_stride,
          window.row_dilation, window.column_dilation})
      numbers += concat(", ", number);
    lines.add(concat("const WindowLines a = {", of_a, ", (i32)(", rows, ")", numbers, "};"));
  } else {
    lines.add(concat("const MatrixLines a = {", of_a, ", ", gemm.a_pitch * element_bytes,
                     ", (i32)(", rows, "), ", gemm.inner_count * element_bytes, "};"));
  }
  const std::int64_t b_lines = gemm.is_b_n_major ? gemm.inner_count : gemm.column_count,
                     along = gemm.is_b_n_major ? gemm.column_count : gemm.inner_count;
  lines.add(concat("const MatrixLines b = {", of_b, ", ", gemm.b_pitch * element_bytes, ", ",
                   b_lines, ", ", along * element_bytes, "};"));
  const std::int64_t blocks =
      (gemm.inner_count * element_bytes + kMmaTileBytes - 1) / kMmaTileBytes;
  lines.add(concat("mma_tile<", format_of(gemm), ", ", tile.rows, ", ", tile.columns, ", ",
                   gemm.is_b_n_major ? "true" : "false", ", ", kMmaSharedBytes, ", ",
                   value_type(gemm), ">(tile, group, ", tile.groups, ", a, b, ", blocks, ", ", rows,
                   ", ", gemm.column_count, ", ", nest.buffers[gemm.store.id].name,
                   ", fetch, finish, place);"));
}

}  // namespace tenon::codegen::cuda
