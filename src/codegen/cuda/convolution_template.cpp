#include "codegen/cuda/convolution.h"

namespace tenon::codegen::cuda {

// One tile to a cluster of blocks: TILE_ROWS x TILE_COLUMNS pixels by 64 outputs. Each block sums
// its share of window places and channels: the fifth warp has rectangles of the image, moved by the
// window's place, and weights copied (TMA, zeros around the image), the others multiply (wgmma).
// Then each block adds up all blocks' sums of some of the pixels, in order, and does what follows.
std::string_view convolution_template() {
  return R"cuda(
struct Convolution {
  i32 batch, image_rows, image_columns, channels, rows, columns, outputs;  // of the image, of the result
  i32 window_rows, window_columns, rows_before, columns_before;            // zeros before the image
  i32 row_stride, column_stride, row_dilation, column_dilation;
};
template <class FORMAT, int TILE_ROWS, int TILE_COLUMNS, int CLUSTER, class RESULT, class FINISH, class PLACE>
FN void convolution_tile(const TensorMap* x, const TensorMap* w, RESULT* y, const Convolution s, const FINISH& finish, const PLACE& place) {
  constexpr int kStages = 6, kHalf = 64 * 128, kStage = 2 * kHalf, kDepth = 128 / sizeof(typename FORMAT::type), kPixels = TILE_ROWS * TILE_COLUMNS, kPitch = 66;
  typedef typename FORMAT::sum Sum;
  SHARED_TILES(stages);
  SHARED_BARRIERS(barriers, 2 * kStages);
  const u32 first = (shared_address(stages) + 1023) & ~1023u, full = shared_address(barriers), empty = full + 8 * kStages;
  if (threadIdx.x == 128) {
    prefetch_map(x);
    prefetch_map(w);
  }
  if (threadIdx.x == 0) {
    for (int k = 0; k < kStages; ++k) { begin_barrier(full + 8 * k, 1); begin_barrier(empty + 8 * k, 4); }
    publish_barriers();
  }
  __syncthreads();
  wait_for_kernel_before();
  const int lane = (int)threadIdx.x % 32, warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
  const i32 rank = (i32)blockIdx.x % CLUSTER, tile = (i32)blockIdx.x / CLUSTER, beside = s.outputs / 64;
  const i32 across = (s.columns + TILE_COLUMNS - 1) / TILE_COLUMNS, down = (s.rows + TILE_ROWS - 1) / TILE_ROWS;
  const i32 output = tile % beside * 64, column = tile / beside % across * TILE_COLUMNS, row = tile / beside / across % down * TILE_ROWS,
            image = tile / beside / across / down;
  const i32 deep = (s.channels + kDepth - 1) / kDepth, blocks = s.window_rows * s.window_columns * deep, begin = blocks * rank / CLUSTER, end = blocks * (rank + 1) / CLUSTER;
  Sum* const sums = (Sum*)(stages + (first - shared_address(stages)));
  if (warp == 4) {
    if (lane == 0) {
      int stage = 0;
      u32 phase = 1;
      for (i32 k = begin; k < end; ++k) {
        const i32 channel = k % deep * kDepth, q = k / deep % s.window_columns, r = k / deep / s.window_columns;
        const u32 at = first + stage * kStage, barrier = full + 8 * stage;
        await(empty + 8 * stage, phase);
        expect_bytes(barrier, kPixels * 128 + kHalf);
        copy_box(at, x, barrier, channel, column * s.column_stride + q * s.column_dilation - s.columns_before,
                 row * s.row_stride + r * s.row_dilation - s.rows_before, image);
        copy_box(at + kHalf, w, barrier, k / deep * s.channels + channel, output);
        if (++stage == kStages) { stage = 0; phase ^= 1; }
      }
    }
    __syncwarp();
    meet<160>(1);
  } else {
    Sum d[32];
    UNROLL for (int k = 0; k < 32; ++k) d[k] = 0;
    int stage = 0, done = 0;
    u32 phase = 0;
    for (i32 k = begin; k < end; ++k) {
      await(full + 8 * stage, phase);
      const u64 a = tile_at(first + stage * kStage, 16), b = tile_at(first + stage * kStage + kHalf, 16);
      begin_sums();
      UNROLL for (int n = 0; n < 4; ++n) Multiply<FORMAT, 64, false>::add(d, a + 2 * n, b + 2 * n, 1);
      commit_sums();
      await_sums<1>();
      if (k > begin) {
        if (lane == 0) arrive(empty + 8 * done);
        if (++done == kStages) done = 0;
      }
      if (++stage == kStages) { stage = 0; phase ^= 1; }
    }
    await_sums<0>();
    meet<160>(1);  // all stages are read: sums take their place
    UNROLL for (int k = 0; k < 16; ++k) {
      const int line = warp * 16 + lane / 4 + k % 2 * 8, at = k / 2 * 8 + lane % 4 * 2;
      *(Neighbours<Sum>*)(sums + line * kPitch + at) = {d[k / 2 * 4 + k % 2 * 2], d[k / 2 * 4 + k % 2 * 2 + 1]};
    }
  }
  meet_cluster();
  const i32 upper = kPixels * rank / CLUSTER, lower = kPixels * (rank + 1) / CLUSTER;
  u32 others[CLUSTER];
  UNROLL for (int k = 0; k < CLUSTER; ++k) others[k] = address_in(shared_address(sums), (u32)k);
  for (i32 e = (i32)threadIdx.x; e < (lower - upper) * 32; e += (i32)blockDim.x) {
    const i32 line = upper + e / 32, at = e % 32 * 2, v = row + line / TILE_COLUMNS, u = column + line % TILE_COLUMNS;
    if (v >= s.rows || u >= s.columns) continue;
    Sum low = 0, high = 0;
    UNROLL for (int k = 0; k < CLUSTER; ++k) {
      Sum pair[2];
      load_from_block(pair, others[k] + (line * kPitch + at) * 4);
      low += pair[0];
      high += pair[1];
    }
    const i32 pixel = (image * s.rows + v) * s.columns + u, k = output + at;
    RESULT* const to = y + place(pixel, k);
    if constexpr (sizeof(RESULT) == 4) *(Neighbours<RESULT>*)to = {finish(low, pixel, k), finish(high, pixel, k + 1)};
    else if constexpr (sizeof(RESULT) == 2) *(u32*)to = stored_pair<FORMAT, RESULT>(finish(low, pixel, k), finish(high, pixel, k + 1));
    else *(u16*)to = (u16)stored_pair<FORMAT, RESULT>(finish(low, pixel, k), finish(high, pixel, k + 1));
  }
  // None ends while another reads its sums.
  meet_cluster();
}
)cuda";
}

}  // namespace tenon::codegen::cuda
