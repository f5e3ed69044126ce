#include "codegen/cuda/weight_gradient.h"

namespace tenon::codegen::cuda {

// Warp-specialized weight gradient, in tiles of 64 outputs by 64 channels for up to three rows and
// columns of a window:
//   dW[k, r, s, c] = sum over positions of dy[y, q - s, k] * x[y + r, q, c]
// wgmma takes tf32 operands only K-major, but K is the position, and positions are strided by
// channels. The first warpgroup therefore transposes each row of x once in shared memory; dy is A
// from registers, which have no layout constraint, and is read shifted for each window column.
// Warpgroup s + 1 accumulates column s for all rows of the window, so one row of x serves one row
// of dy per window row. Short rows of several images share a strip, separated by zeros that shifted
// reads hit.
std::string_view weight_gradient_template() {
  return R"cuda(
struct WeightGradient {
  i32 batch, channels, rows, columns, outputs;  // of images; of the result's gradient; columns of images
  i32 rows_before, columns_before;              // zeros before the image
  i32 images, lines, groups, bands;             // of a piece; pieces
};
// A window's rows, or columns, in parts of up to three, longer ones first.
struct WindowPart {
  i32 first, count;
  FN WindowPart(i32 all, i32 part) {
    const i32 parts = (all + 2) / 3, longer = all % parts;
    first = part * (all / parts) + min(part, longer);
    count = all / parts + (part < longer ? 1 : 0);
  }
};
// The rows of images in the order in which they are turned: for each unit, image and strip those that
// its windows meet. Units of one part of the window follow each other, in an order of parts that brings large ones to blocks
// that had small ones: those take units in turns.
template <int WINDOW_ROWS, int WINDOW_COLUMNS, int STRIP, int TOGETHER> struct ImageRows {
  i32 unit, image, last, strip, row, first, count, output, channel, piece;
  i32 window_row, window_rows, window_column, window_columns;
  static FN i32 units(const WeightGradient& s) { return pieces(s) * tiles(s) * ((WINDOW_ROWS + 2) / 3) * kColumnParts; }
  static FN i32 strips(const WeightGradient& s) { return TOGETHER == 1 ? (s.columns + STRIP - 1) / STRIP : 1; }
  FN void begin_unit(const WeightGradient& s) {
    const i32 across = (s.channels + 63) / 64, tile = unit % tiles(s), part = unit / tiles(s) / pieces(s);
    piece = unit / tiles(s) % pieces(s);
    output = tile / across * 64;
    channel = tile % across * 64;
    image = piece / s.bands * s.images;
    last = min(image + s.images, s.batch);
    first = piece % s.bands * s.lines;
    count = min(s.lines, s.rows - first);
    strip = row = 0;
    const i32 row_part = part / kColumnParts, column_part = part % kColumnParts;
    const WindowPart down(WINDOW_ROWS, row_part), along(WINDOW_COLUMNS, row_part % 2 == 0 ? column_part : kColumnParts - 1 - column_part);
    window_row = down.first;
    window_rows = down.count;
    window_column = along.first;
    window_columns = along.count;
  }
  FN i32 segments(const WeightGradient& s) const { return (last - image + TOGETHER - 1) / TOGETHER * strips(s); }
 private:
  static constexpr int kColumnParts = (WINDOW_COLUMNS + 2) / 3;
  static FN i32 tiles(const WeightGradient& s) { return (s.outputs + 63) / 64 * ((s.channels + 63) / 64); }
  static FN i32 pieces(const WeightGradient& s) { return s.groups * s.bands; }
};
// Rows held, of images and of gradients, and of images as they came; their bytes.
template <int WINDOW_COLUMNS, int STRIP> struct GradientRoom {
  static constexpr int kTurned = 5, kLines = 3, kStaged = 2, kRow = 64 * 64 * 4, kBefore = WINDOW_COLUMNS - 1;
  static constexpr int kHalf = ((STRIP + kBefore) * 128 + 1023) / 1024 * 1024, kLine = 2 * kHalf;
};
// What groups of threads hand each other, and how far one of them is.
struct GradientRing {
  u32 full_row, empty_row, full_line, empty_line, lines;  // barriers; rows of the result's gradient
  u64 tiles;                                              // turned rows of images
  int row, line;
  u32 row_phase, line_phase;
};
// Sums of ROWS rows of the window and the group's column, over a unit.
template <int ROWS, int WINDOW_ROWS, int WINDOW_COLUMNS, int STRIP, class UNIT>
FN void sum_weight_gradient(const WeightGradient& s, const UNIT& at, GradientRing& ring, int group, float* y) {
  typedef GradientRoom<WINDOW_COLUMNS, STRIP> Room;
  constexpr int kTurned = Room::kTurned, kLines = Room::kLines, kRow = Room::kRow, kBefore = Room::kBefore;
  constexpr int kHalf = Room::kHalf, kLine = Room::kLine;
  const int thread = (int)threadIdx.x % 128, lane = thread % 32, warp = thread / 32, pair = lane / 4, own = lane % 4;
  const int shift = at.window_column + group - 1;
  // A group that has no column only keeps pace.
  const bool has_column = group - 1 < at.window_columns;
  const int c = (16 * warp + 2 * pair) % 32, p = 2 * own + kBefore - (has_column ? shift : 0);
  const u32 base = warp / 2 * kHalf + c % 4 * 4;
  const u32 even = base + p * 128 + ((c / 4 ^ (p & 7)) << 4), odd = base + (p + 1) * 128 + ((c / 4 ^ ((p + 1) & 7)) << 4);
  float sums[ROWS][32];
  UNROLL for (int r = 0; r < ROWS; ++r) {
    UNROLL for (int k = 0; k < 32; ++k) sums[r][k] = 0;
  }
  const i32 segments = at.segments(s);
  ROLLED for (i32 segment = 0; segment < segments; ++segment) {
    ROLLED for (i32 e = 0; e < at.count + ROWS - 1; ++e) {
      await(ring.full_row + 8 * ring.row, ring.row_phase);
      if (e >= ROWS - 1) {
        await(ring.full_line + 8 * ring.line, ring.line_phase);
        u64 tile[ROWS];
        int oldest = ring.row - (ROWS - 1);
        if (oldest < 0) oldest += kTurned;
        UNROLL for (int r = 0; r < ROWS; ++r) tile[r] = ring.tiles + (u64)((oldest + r < kTurned ? oldest + r : oldest + r - kTurned) * (kRow >> 4));
        const u32 from = ring.lines + ring.line * kLine;
        if (has_column) {
          UNROLL for (int k = 0; k < STRIP / 8; ++k) {
            u32 a[4];
            load_two(a, from + even + k * 1024);
            load_two(a + 2, from + odd + k * 1024);
            UNROLL for (int n = 0; n < 4; ++n) a[n] = as_tf32(a[n]);
            begin_sums();
            UNROLL for (int r = 0; r < ROWS; ++r) MultiplyRows<FormatTf32, 64>::add(sums[r], a, tile[r] + k / 4 * (kRow >> 5) + k % 4 * 2);
            commit_sums();
            await_sums<1>();
          }
          await_sums<0>();
        }
        if (lane == 0) {
          arrive(ring.empty_line + 8 * ring.line);
          // Rows that no window below meets: behind the last, all.
          const int left = e == at.count + ROWS - 2 ? ROWS : 1;
          for (int r = 0; r < left; ++r) arrive(ring.empty_row + 8 * (oldest + r < kTurned ? oldest + r : oldest + r - kTurned));
        }
        if (++ring.line == kLines) { ring.line = 0; ring.line_phase ^= 1; }
      }
      if (++ring.row == kTurned) { ring.row = 0; ring.row_phase ^= 1; }
    }
  }
  const i32 output = at.output + 16 * warp + 2 * pair;
  UNROLL for (int r = 0; r < ROWS; ++r) {
    UNROLL for (int k = 0; k < 16; ++k) {
      const i32 channel = at.channel + k / 2 * 8 + own * 2;
      const i64 place = ((((i64)at.piece * s.outputs + output + k % 2) * WINDOW_ROWS + at.window_row + r) * WINDOW_COLUMNS + shift) * s.channels + channel;
      if (has_column && output + k % 2 < s.outputs && channel < s.channels)
        *(float2*)(y + place) = make_float2(sums[r][k / 2 * 4 + k % 2 * 2], sums[r][k / 2 * 4 + k % 2 * 2 + 1]);
    }
  }
}
// Strips of rows: columns of one image, or of so many together, which are a pitch apart.
template <int WINDOW_ROWS, int WINDOW_COLUMNS, int STRIP, int TOGETHER, int PITCH>
FN void weight_gradient_units(const TensorMap* x, const TensorMap* dy, float* y, const WeightGradient s) {
  typedef GradientRoom<WINDOW_COLUMNS, STRIP> Room;
  constexpr int kTurned = Room::kTurned, kLines = Room::kLines, kStaged = Room::kStaged, kRow = Room::kRow, kBefore = Room::kBefore;
  constexpr int kHalf = Room::kHalf, kLine = Room::kLine;
  constexpr int kRowBytes = (TOGETHER == 1 ? STRIP : TOGETHER * PITCH) * 256, kLineBytes = TOGETHER == 1 ? (STRIP + kBefore) * 256 : kRowBytes;
  SHARED_TILES(stages);
  SHARED_BARRIERS(barriers, 2 * kTurned + 2 * kLines + kStaged);
  const u32 turned = (shared_address(stages) + 1023) & ~1023u, lines = turned + kTurned * kRow, staged = lines + kLines * kLine;
  const u32 full_row = shared_address(barriers), empty_row = full_row + 8 * kTurned, full_line = empty_row + 8 * kTurned,
            empty_line = full_line + 8 * kLines, full_stage = empty_line + 8 * kLines;
  if (threadIdx.x == 0) {
    for (int k = 0; k < kTurned; ++k) { begin_barrier(full_row + 8 * k, 128); begin_barrier(empty_row + 8 * k, 12); }
    for (int k = 0; k < kLines; ++k) { begin_barrier(full_line + 8 * k, 1); begin_barrier(empty_line + 8 * k, 12); }
    for (int k = 0; k < kStaged; ++k) begin_barrier(full_stage + 8 * k, 1);
    publish_barriers();
  }
  // What lies behind the last image is read and never copied to.
  if (TOGETHER > 1) {
    for (u32 at = lines + 16 * threadIdx.x; at < staged + kStaged * kRow; at += 16 * 512) store_four(at, 0, 0, 0, 0);
    show_stores_to_copies();
  }
  __syncthreads();
  wait_for_kernel_before();
  const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0), thread = (int)threadIdx.x % 128, lane = thread % 32;
  typedef ImageRows<WINDOW_ROWS, WINDOW_COLUMNS, STRIP, TOGETHER> Rows;
  const i32 units = Rows::units(s);
  Rows at;
  at.unit = (i32)blockIdx.x;
  if (group == 0) {
    leave_registers<80>();
    Rows next = at;  // what is copied: the first thread's
    int stage = 0, line = 0;
    u32 line_phase = 1;
    const auto copy_row = [&] {
      if (next.unit >= units) return;
      const u32 to = staged + stage * kRow, barrier = full_stage + 8 * stage;
      const i32 column = next.strip * STRIP, above = next.first + next.row, from = above + next.window_row - s.rows_before;
      expect_bytes(barrier, kRowBytes);
      copy_box(to, x, barrier, next.channel, column, from, next.image);
      copy_box(to + kRow / 2, x, barrier, next.channel + 32, column, from, next.image);
      if (++stage == kStaged) stage = 0;
      if (next.row >= next.window_rows - 1) {
        const i32 line_column = column + s.columns_before - kBefore, line_row = above - (next.window_rows - 1);
        const u32 line_at = lines + line * kLine, line_barrier = full_line + 8 * line;
        await(empty_line + 8 * line, line_phase);
        expect_bytes(line_barrier, kLineBytes);
        copy_box(line_at, dy, line_barrier, next.output, line_column, line_row, next.image);
        copy_box(line_at + kHalf, dy, line_barrier, next.output + 32, line_column, line_row, next.image);
        if (++line == kLines) { line = 0; line_phase ^= 1; }
      }
      if (++next.row < next.count + next.window_rows - 1) return;
      next.row = 0;
      if (++next.strip < Rows::strips(s)) return;
      next.strip = 0;
      if ((next.image += TOGETHER) < next.last) return;
      next.unit += (i32)gridDim.x;
      if (next.unit < units) next.begin_unit(s);
    };
    if (thread == 0) {
      if (next.unit < units) next.begin_unit(s);
      for (int k = 0; k < kStaged; ++k) copy_row();
    }
    // Eight neighbouring threads read eight quads of channels of a position, and write as many pieces of four
    // positions, each into other banks. Even positions of eight come before the odd ones: so do those of dy.
    const int eighth = lane % 8, half = thread / 8 % 2, block = thread / 16;
    const int piece = (block & 4) | ((block & 3) ^ (eighth >> 1)), position = 8 * (piece >> 1) + (piece & 1);
    u32 from[4], to[4];
    UNROLL for (int k = 0; k < 4; ++k) {
      const int p = position + 2 * k, c = (half * 8 + eighth) * 4 + k;
      from[k] = half * (kRow / 2) + p * 128 + ((eighth ^ (p & 7)) << 4);
      to[k] = c * 128 + ((piece ^ (c & 7)) << 4);
    }
    int row = 0, taken = 0;
    u32 row_phase = 1, stage_phase = 0;
    for (; at.unit < units; at.unit += (i32)gridDim.x) {
      at.begin_unit(s);
      const i32 all = at.segments(s) * (at.count + at.window_rows - 1);
      ROLLED for (i32 e = 0; e < all; ++e) {
        await(full_stage + 8 * taken, stage_phase);
        u32 v[2][4][4];
        UNROLL for (int h = 0; h < 2; ++h) {
          UNROLL for (int k = 0; k < 4; ++k) load_four(v[h][k], staged + taken * kRow + h * (kRow / 4) + from[k]);
        }
        await(empty_row + 8 * row, row_phase);
        UNROLL for (int h = 0; h < 2; ++h) {
          UNROLL for (int k = 0; k < 4; ++k)
            store_four(turned + row * kRow + h * (kRow / 2) + to[k], as_tf32(v[h][0][k]), as_tf32(v[h][1][k]), as_tf32(v[h][2][k]), as_tf32(v[h][3][k]));
        }
        show_stores_to_copies();
        arrive(full_row + 8 * row);
        if (++row == kTurned) { row = 0; row_phase ^= 1; }
        if (++taken == kStaged) { taken = 0; stage_phase ^= 1; }
        meet<128>(1);
        if (thread == 0) copy_row();
      }
    }
    return;
  }
  take_registers<144>();
  GradientRing ring = {full_row, empty_row, full_line, empty_line, lines, tile_at(turned, 16), 0, 0, 0, 0};
  constexpr int kParts = (WINDOW_ROWS + 2) / 3, kMost = (WINDOW_ROWS + kParts - 1) / kParts, kFewest = WINDOW_ROWS / kParts;
  for (; at.unit < units; at.unit += (i32)gridDim.x) {
    at.begin_unit(s);
    if (kMost == kFewest || at.window_rows == kMost) sum_weight_gradient<kMost, WINDOW_ROWS, WINDOW_COLUMNS, STRIP>(s, at, ring, group, y);
    else sum_weight_gradient<kFewest, WINDOW_ROWS, WINDOW_COLUMNS, STRIP>(s, at, ring, group, y);
  }
}
)cuda";
}

}  // namespace tenon::codegen::cuda
