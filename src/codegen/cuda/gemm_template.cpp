#include "codegen/cuda/gemm.h"

namespace tenon::codegen::cuda {

// Persistent GEMM with TMA, wgmma and warp specialization. Tiles are 128 rows by COLUMNS; rows are
// those of a matrix, or pixels of an implicit GEMM (TMA im2col: one window tap and a slice of
// channels per step). The first of five warpgroups issues TMA copies (128-byte swizzle) into a
// pipeline of six or eight stages. Two pairs of consumer warpgroups alternate (ping-pong): one
// accumulates with wgmma while the other runs its epilogue and stores. Each warpgroup of a pair
// owns 64 rows. The grid has one block per multiprocessor, which loops over tiles.
std::string_view gemm_template() {
  return R"cuda(
struct Convolution {
  i32 channels, rows, columns, outputs;                 // of the image, of the result
  i32 window_columns, rows_before, columns_before;      // zeros before the image
  i32 row_stride, column_stride, row_dilation, column_dilation;
};
// Blocks of 128 bytes of each row, one after another: `deep` is where the other factor has them.
struct MatrixRows {
  i32 blocks, row, deep;
  FN void begin(i32 first) { row = first; deep = 0; }
  FN void copy(u32 to, const TensorMap* map, u32 barrier) const { copy_box(to, map, barrier, deep, row); }
  template <int DEPTH> FN void next() { deep += DEPTH; }
};
struct WindowPixels {
  i32 blocks;
  Convolution s;
  i32 deep, x, y, image, channel, q, r;
  FN void begin(i32 first) {
    x = first % s.columns * s.column_stride - s.columns_before;
    y = first / s.columns % s.rows * s.row_stride - s.rows_before;
    image = first / s.columns / s.rows;
    deep = channel = q = r = 0;
  }
  // … with a later block of the sum.
  template <int DEPTH> FN void begin(i32 first, i32 block) {
    begin(first);
    const i32 each = (s.channels + DEPTH - 1) / DEPTH;
    channel = block % each * DEPTH;
    q = block / each % s.window_columns;
    r = block / each / s.window_columns;
    deep = (r * s.window_columns + q) * s.channels + channel;
  }
  FN void copy(u32 to, const TensorMap* map, u32 barrier) const { copy_pixels(to, map, barrier, channel, x, y, image, q * s.column_dilation, r * s.row_dilation); }
  FN void copy_to(u32 blocks, u32 to, const TensorMap* map, u32 barrier) const {
    copy_pixels_to(blocks, to, map, barrier, channel, x, y, image, q * s.column_dilation, r * s.row_dilation);
  }
  template <int DEPTH> FN void next() {
    channel += DEPTH;
    if (channel >= s.channels) {
      channel = 0;
      if (++q == s.window_columns) { q = 0; ++r; }
    }
    deep = (r * s.window_columns + q) * s.channels + channel;
  }
};
// IN_PAIRS: what follows is computed of sums where they are, before results trade places: of columns it asks only what it reads there.
template <class FORMAT, int COLUMNS, bool TURNED, class VALUE, bool IN_PAIRS, class SOURCE, class RESULT, class FETCH_COLUMNS, class FETCH, class TRADE, class FINISH, class PLACE>
FN void product_tiles(const TensorMap* a, const TensorMap* b, i64 rows, i64 columns, SOURCE source, RESULT* y, const FETCH_COLUMNS& fetch_columns, const FETCH& fetch,
                      const TRADE& trade_fetched, const FINISH& finish, const PLACE& place) {
  constexpr int kHalf = 128 * 128, kStage = kHalf + COLUMNS * 128, kStages = 6 * 2 * kHalf / kStage, kDepth = 128 / sizeof(typename FORMAT::type);
  SHARED_TILES(stages);
  SHARED_BARRIERS(barriers, 2 * kStages);
  const u32 first = (shared_address(stages) + 1023) & ~1023u, full = shared_address(barriers), empty = full + 8 * kStages;
  if (threadIdx.x == 0) {
    for (int k = 0; k < kStages; ++k) { begin_barrier(full + 8 * k, 1); begin_barrier(empty + 8 * k, 2); }
    publish_barriers();
  }
  __syncthreads();
  wait_for_kernel_before();
  const i32 down = (i32)((rows + 127) / 128), across = (i32)((columns + COLUMNS - 1) / COLUMNS), tiles = down * across;
  const i32 blocks = source.blocks;
  const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
  // Eight tiles below each other, then the next eight: what they read stays near.
  const auto tile_row = [&](i32 tile) { const i32 band = tile / (8 * across), high = min(8, down - band * 8); return band * 8 + tile % (8 * across) % high; };
  const auto tile_column = [&](i32 tile) { const i32 band = tile / (8 * across), high = min(8, down - band * 8); return tile % (8 * across) / high; };
  if (group == 0) {
    leave_registers<32>();
    if (threadIdx.x == 0) {
      int stage = 0;
      u32 phase = 1;
      for (i32 tile = (i32)blockIdx.x; tile < tiles; tile += (i32)gridDim.x) {
        const i32 column = tile_column(tile) * COLUMNS;
        source.begin(tile_row(tile) * 128);
        for (i32 k = 0; k < blocks; ++k) {
          const u32 at = first + stage * kStage, barrier = full + 8 * stage;
          await(empty + 8 * stage, phase);
          expect_bytes(barrier, kStage);
          source.copy(at, a, barrier);
          if (TURNED) {
            UNROLL for (int c = 0; c < COLUMNS; c += 64) copy_box(at + kHalf + c * 128, b, barrier, column + c, source.deep);
          } else {
            copy_box(at + kHalf, b, barrier, source.deep, column);
          }
          source.template next<kDepth>();
          if (++stage == kStages) { stage = 0; phase ^= 1; }
        }
      }
    }
    return;
  }
  take_registers<112>();
  const int pair = (group - 1) / 2, half = (group - 1) % 2, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % 4;
  const u64 tile_a = tile_at(first + half * (kHalf / 2), 16), tile_b = tile_at(first + kHalf, TURNED ? kHalf / 2 : 16);
  if (pair == 1) pass<512>(1);
  // A thread has pairs of neighbours; four threads trade theirs, so that each has eight side by side. Beyond the edges the last is
  // computed once more: nothing there is stored.
  const auto row_at = [&](i32 tile, int piece) { return tile_row(tile) * 128 + half * 64 + warp * 16 + lane / 4 + piece % 2 * 8; };
  const auto column_at = [&](i32 tile, int piece) { return tile_column(tile) * COLUMNS + (lane & 3) * 8 + piece / 2 * 32; };
  const auto row_of = [&](i32 tile, int piece) { return row_at(tile, piece) < rows ? row_at(tile, piece) : (i32)rows - 1; };
  const auto inside = [&](i32 column) { return columns % COLUMNS == 0 || column < columns ? column : (i32)columns - 8; };
  const auto column_of = [&](i32 tile, int piece) { return inside(column_at(tile, piece)); };
  const auto fetch_piece = [&](i32 tile, int piece) { return fetch(row_of(tile, piece), column_of(tile, piece)); };
  const auto fetch_own = [&](i32 tile, int piece) {
    if constexpr (IN_PAIRS) {
      const i32 group = tile_column(tile) * COLUMNS + piece / 2 * 32, at = inside(group);
      const LoadPairs load = {{0, inside(group + 8) - at, inside(group + 16) - at, inside(group + 24) - at}};
      return fetch_columns(at + (lane & 3) * 2, load);
    } else {
      return fetch_columns(column_of(tile, piece), LoadNeighbours());
    }
  };
  // Bytes beside sums are fetched a tile ahead: their sums take less time than they do. What they are scaled by takes more registers,
  // and is read where it is used.
  constexpr int kPieces = COLUMNS / 16;
  constexpr bool kHasBytes = sizeof(typename FORMAT::type) == 1;
  constexpr bool kFetchesTiles = kHasBytes && sizeof(fetch(0, 0)) - sizeof(fetch_own(0, 0)) <= 8;
  constexpr int kAhead = kFetchesTiles ? kPieces : 2;
  decltype(fetch(0, 0)) fetched[kAhead];
  if constexpr (kFetchesTiles) {
    const i32 own = min((i32)blockIdx.x + pair * (i32)gridDim.x, tiles - 1);
    UNROLL for (int piece = 0; piece < kPieces; ++piece) fetched[piece] = fetch_piece(own, piece);
  }
  i32 index = 0;
  for (i32 tile = (i32)blockIdx.x; tile < tiles; tile += (i32)gridDim.x, ++index) {
    if ((index & 1) != pair) continue;
    typename FORMAT::sum d[COLUMNS / 2];
    int stage = (int)((i64)index * blocks % kStages), done = stage;
    u32 phase = (u32)((i64)index * blocks / kStages) & 1;
    meet<512>(1 + pair);
    for (i32 k = 0; k < blocks; ++k) {
      await(full + 8 * stage, phase);
      const u64 moved = (u64)(stage * (kStage >> 4));
      begin_sums();
      UNROLL for (int n = 0; n < 4; ++n)
        Multiply<FORMAT, COLUMNS, TURNED>::add(d, tile_a + moved + n * 2, tile_b + moved + n * (TURNED ? 128 : 2), k + n);
      commit_sums();
      await_sums<1>();
      if (k > 0) {
        if (threadIdx.x % 128 == 0) arrive(empty + 8 * done);
        if (++done == kStages) done = 0;
      }
      if (++stage == kStages) { stage = 0; phase ^= 1; }
    }
    pass<512>(2 - pair);
    await_sums<0>();
    if (threadIdx.x % 128 == 0) arrive(empty + 8 * done);
    if constexpr (!kFetchesTiles) {
      UNROLL for (int piece = 0; piece < kAhead; ++piece) fetched[piece] = fetch_piece(tile, piece);
    }
    const i32 next = tile + 2 * (i32)gridDim.x < tiles ? tile + 2 * (i32)gridDim.x : tile;
    UNROLL for (int piece = 0; piece < kPieces; ++piece) {
      Eight<typename FORMAT::sum> eight;
      UNROLL for (int k = 0; k < 8; ++k) eight.at[k] = d[(piece / 2 * 4 + k / 2) * 4 + piece % 2 * 2 + k % 2];
      auto found = fetched[piece % kAhead];
      if constexpr (kFetchesTiles) fetched[piece] = fetch_piece(next, piece);
      else if (piece + kAhead < kPieces) fetched[piece % kAhead] = fetch_piece(tile, piece + kAhead);
      if constexpr (kHasBytes) (decltype(fetch_own(0, 0))&)found = fetch_own(tile, piece);
      if constexpr (IN_PAIRS) trade_fetched(found, lane); else trade_eight(eight, lane);
      const Eight<VALUE> made = finish(eight.at, found, row_of(tile, piece), column_of(tile, piece));
      const bool is_stored = row_at(tile, piece) < rows && (columns % COLUMNS == 0 || column_at(tile, piece) < columns);
      RESULT* const to = y + place(row_of(tile, piece), column_of(tile, piece));
      if constexpr (IN_PAIRS) {
        Pack<u32, 2> words = {{made.words[0], made.words[1]}};
        trade_pairs(words.at, lane);
        if (is_stored) store_pack<u32, 2>((u32*)to, words);
      } else {
        if (is_stored) store_eight<FORMAT>(to, made);
      }
    }
  }
}
)cuda";
}

}  // namespace tenon::codegen::cuda
