#include "codegen/cuda/mma.h"

namespace tenon::codegen::cuda {

// GEMM on mma.sync with a cp.async pipeline. A block of four warps computes one tile, each warp a
// quarter. Copies of 64 bytes per row run two to five stages ahead and fill elements past an edge
// with zero. Fragments are double-buffered in registers: ldmatrix of the next step overlaps the mma
// of the current one.
std::string_view mma_template() {
  return R"cuda(
#ifdef TENON_EMULATION
#define SHARED_STAGES(name, bytes) static __align__(16) u8 name[bytes]
#else
#define SHARED_STAGES(name, bytes) extern __shared__ __align__(1024) u8 name[]
#endif
// Lines of a matrix, of which a thread copies 16 bytes each.
struct MatrixLines {
  const u8* from;
  i64 pitch;        // bytes from a line to the next
  i32 lines, bytes; // that there are, of each
  FN void begin(i32 line, i32 byte) { from += line * pitch + byte; lines -= line; bytes -= byte; }
  template <int COUNT, int APART, int PITCH> FN void copy(u8* to) const {
    UNROLL for (int k = 0; k < COUNT; ++k) copy_ahead((u16*)(to + k * APART * PITCH), (const u16*)(from + k * APART * pitch), k * APART < lines && bytes > 0);
  }
  FN void go_along(i32 count) { from += count; bytes -= count; }
  FN void go_down(i32 count) { from += count * pitch; lines -= count; }
};
// … of pixels that a window is moved to: its places one after another, all channels of each, or those of a group.
struct WindowLines {
  const u8* image;
  i32 pixels, pixel_bytes, channel_bytes, image_rows, image_columns;
  i32 rows, columns, window_rows, window_columns;  // of the result, of the window
  i32 rows_before, columns_before, row_stride, column_stride, row_dilation, column_dilation;
  const u8* from[4];
  i32 x[4], y[4], byte, q, r;
  FN void begin(i32 line, i32 first) {
    UNROLL for (int k = 0; k < 4; ++k) {
      const i32 pixel = line + k * 32, image_of = pixel / columns / rows;
      x[k] = pixel % columns * column_stride - columns_before;
      y[k] = pixel < pixels ? pixel / columns % rows * row_stride - rows_before : -(1 << 30);
      from[k] = image + (((i64)image_of * image_rows + y[k]) * image_columns + x[k]) * pixel_bytes;
    }
    byte = q = r = 0;
    go_along(first);
  }
  template <int COUNT, int APART, int PITCH> FN void copy(u8* to) const {
    const i32 dy = r * row_dilation, dx = q * column_dilation;
    const i64 moved = ((i64)dy * image_columns + dx) * pixel_bytes + byte;
    UNROLL for (int k = 0; k < COUNT; ++k) {
      const bool is_inside = (u32)(y[k] + dy) < (u32)image_rows && (u32)(x[k] + dx) < (u32)image_columns && r < window_rows;
      copy_ahead((u16*)(to + k * APART * PITCH), (const u16*)(from[k] + moved), is_inside);
    }
  }
  FN void go_along(i32 count) {
    byte += count;
    while (byte >= channel_bytes) {
      byte -= channel_bytes;
      if (++q == window_columns) { q = 0; ++r; }
    }
  }
};
template <class FORMAT, int ROWS, int COLUMNS, bool TURNED, int SHARED, class VALUE, class LINES, class RESULT, class FETCH, class FINISH, class PLACE>
FN void mma_tile(i32 tile, i32 group, i32 groups, LINES a, MatrixLines b, i32 blocks, i64 rows, i32 columns, RESULT* y, const FETCH& fetch, const FINISH& finish, const PLACE& place) {
  typedef typename FORMAT::sum Sum;
  constexpr int kLine = 64, kHalf = ROWS * kLine, kStage = kHalf + COLUMNS * kLine, kStages = SHARED / kStage, kSize = sizeof(typename FORMAT::type);
  constexpr int kDown = ROWS / 32, kAcross = COLUMNS / 16;        // of a warp: fragments of 16 rows, of 8 columns
  constexpr int kTurnedLine = COLUMNS * kSize, kPieces = TURNED ? kTurnedLine / 16 : 4, kApart = 128 / kPieces;
  SHARED_STAGES(stages, kStages * kStage);
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, own = (int)threadIdx.x;
  // Eight tiles below each other, then the next eight: what they read stays near.
  const i32 down = (i32)((rows + ROWS - 1) / ROWS), across = (columns + COLUMNS - 1) / COLUMNS, band = tile / (8 * across);
  const i32 high = down - band * 8 < 8 ? down - band * 8 : 8;
  const i32 row = (band * 8 + tile % (8 * across) % high) * ROWS, column = tile % (8 * across) / high * COLUMNS;
  a.begin(row + own / 4, own % 4 * 16);
  if (TURNED) b.begin(own / kPieces, column * kSize + own % kPieces * 16); else b.begin(column + own / 4, own % 4 * 16);
  // Pieces of 16 bytes change places within a line, so that eight lines are read from different banks.
  u8* const a_to = stages + own / 4 * kLine + ((own % 4 ^ (own >> 3 & 3)) << 4);
  u8* const b_to = stages + kHalf + (TURNED ? own / kPieces * kTurnedLine + ((own % kPieces ^ (own / kPieces & 7)) << 4) : own / 4 * kLine + ((own % 4 ^ (own >> 3 & 3)) << 4));
  const auto copy_stage = [&](int stage) {
    a.template copy<ROWS / 32, 32, kLine>(a_to + stage * kStage);
    if (TURNED) b.template copy<kLine / kSize / kApart, kApart, kTurnedLine>(b_to + stage * kStage); else b.template copy<COLUMNS / 32, 32, kLine>(b_to + stage * kStage);
    a.go_along(kLine);
    if (TURNED) b.go_down(kLine / kSize); else b.go_along(kLine);
  };
  const int a_at = (warp / 2 * (ROWS / 2) + lane % 16) * kLine + ((lane / 16 ^ (lane >> 1 & 3)) << 4);
  const int b_at = kHalf + (TURNED ? lane % 16 * kTurnedLine + ((warp % 2 * (COLUMNS / 16) + lane / 16 ^ (lane & 7)) << 4)
                                   : (warp % 2 * (COLUMNS / 2) + lane / 16 * 8 + lane % 8) * kLine + ((lane / 8 % 2 ^ (lane >> 1 & 3)) << 4));
  u32 of_a[2][kDown][4], of_b[2][kAcross / 2][4];
  const auto load_step = [&](int stage, int step) {
    const u8* const at = stages + stage * kStage;
    UNROLL for (int m = 0; m < kDown; ++m) load_matrices<false>(of_a[step][m], (const u16*)(at + (a_at ^ step * 32) + m * 16 * kLine));
    UNROLL for (int n = 0; n < kAcross / 2; ++n)
      load_matrices<TURNED>(of_b[step][n], (const u16*)(at + (TURNED ? (b_at ^ n * 32) + step * 16 * kTurnedLine : (b_at ^ step * 32) + n * 16 * kLine)));
  };
  Sum d[kDown][kAcross][4];
  UNROLL for (int m = 0; m < kDown; ++m) UNROLL for (int n = 0; n < kAcross; ++n) UNROLL for (int c = 0; c < 4; ++c) d[m][n][c] = 0;
  const auto multiply_step = [&](int step) {
    UNROLL for (int m = 0; m < kDown; ++m) UNROLL for (int n = 0; n < kAcross; ++n) multiply<FORMAT>(d[m][n], of_a[step][m], of_b[step][n / 2] + n % 2 * 2);
  };
  UNROLL for (int k = 0; k < kStages - 1; ++k) {
    if (k < blocks) copy_stage(k);
    end_copies();
  }
  await_copies<kStages - 2>();
  __syncthreads();
  load_step(0, 0);
  int stage = 0, to = kStages - 1;
  ROLLED for (i32 k = 0; k < blocks; ++k) {
    load_step(stage, 1);
    if (k + kStages - 1 < blocks) copy_stage(to);
    end_copies();
    multiply_step(0);
    to = stage;
    if (++stage == kStages) stage = 0;
    await_copies<kStages - 2>();
    __syncthreads();
    load_step(stage, 0);  // behind the last stage: of numbers that nobody uses
    multiply_step(1);
  }
  // A thread has pairs of neighbours; four threads trade theirs, so that each has eight side by side. Beyond the
  // edges the last is computed once more: nothing there is stored.
  constexpr int kMade = kDown * 2 * (kAcross / 4), kAhead = 2;
  const i32 upper = row + warp / 2 * (ROWS / 2) + lane / 4, left = column + warp % 2 * (COLUMNS / 2) + (lane & 3) * 8;
  const auto line_of = [&](int piece) { return upper + piece % (kDown * 2) * 8; };
  const auto place_of = [&](int piece) { return left + piece / (kDown * 2) * 32; };
  const auto row_of = [&](int piece) { const i32 line = line_of(piece); return (line < rows ? line : (i32)rows - 1) * groups + group; };
  const auto column_of = [&](int piece) { const i32 at = place_of(piece); return at < columns ? at : columns - 8; };
  decltype(fetch(0, 0)) fetched[kAhead];
  UNROLL for (int piece = 0; piece < kAhead; ++piece) fetched[piece] = fetch(row_of(piece), column_of(piece));
  UNROLL for (int piece = 0; piece < kMade; ++piece) {
    const int m = piece % (kDown * 2) / 2, r = piece % 2, n = piece / (kDown * 2) * 4;
    Sum eight[8];
    UNROLL for (int c = 0; c < 2; ++c) {
      Sum four[4] = {d[m][n][r * 2 + c], d[m][n + 1][r * 2 + c], d[m][n + 2][r * 2 + c], d[m][n + 3][r * 2 + c]};
      trade(four, lane);
      UNROLL for (int k = 0; k < 4; ++k) eight[2 * k + c] = four[k];
    }
    const auto found = fetched[piece % kAhead];
    if (piece + kAhead < kMade) fetched[piece % kAhead] = fetch(row_of(piece + kAhead), column_of(piece + kAhead));
    const Eight<VALUE> made = finish(eight, found, row_of(piece), column_of(piece));
    if (line_of(piece) < rows && place_of(piece) < columns) store_eight<FORMAT>(y + place(row_of(piece), column_of(piece)), made);
  }
}
)cuda";
}

}  // namespace tenon::codegen::cuda
