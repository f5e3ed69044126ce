#include "codegen/cuda/product.h"

namespace tenon::codegen::cuda {

// Tiles of 128 x 128. The first of five groups of threads has tiles of the operands copied to
// shared memory (TMA, 128 bytes swizzled), up to six of them ahead; two pairs of groups take turns:
// while one sums (wgmma), the other computes what follows its sums and stores it. Each group of a
// pair has 64 rows. A grid of as many blocks as there are multiprocessors goes through all tiles.
std::string_view product_template() {
  return R"cuda(
template <class FORMAT, bool TURNED, class RESULT, class FINISH, class PLACE>
FN void product_tiles(const TensorMap* a, const TensorMap* b, i64 rows, i64 columns, i64 inner, RESULT* y, const FINISH& finish, const PLACE& place) {
  constexpr int kStages = 6, kHalf = 128 * 128, kStage = 2 * kHalf, kDepth = 128 / sizeof(typename FORMAT::type);
  SHARED_TILES(stages);
  SHARED_BARRIERS(barriers, 2 * kStages);
  const u32 first = (shared_address(stages) + 1023) & ~1023u, full = shared_address(barriers), empty = full + 8 * kStages;
  if (threadIdx.x == 0) {
    for (int k = 0; k < kStages; ++k) { begin_barrier(full + 8 * k, 1); begin_barrier(empty + 8 * k, 2); }
    publish_barriers();
  }
  __syncthreads();
  wait_for_kernel_before();
  const i32 down = (i32)((rows + 127) / 128), across = (i32)((columns + 127) / 128), tiles = down * across;
  const i32 blocks = (i32)((inner + kDepth - 1) / kDepth);
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
        const i32 row = tile_row(tile) * 128, column = tile_column(tile) * 128;
        for (i32 k = 0; k < blocks; ++k) {
          const u32 at = first + stage * kStage, barrier = full + 8 * stage;
          await(empty + 8 * stage, phase);
          expect_bytes(barrier, kStage);
          copy_box(at, a, barrier, k * kDepth, row);
          if (TURNED) {
            copy_box(at + kHalf, b, barrier, column, k * 64);
            copy_box(at + kHalf + kHalf / 2, b, barrier, column + 64, k * 64);
          } else {
            copy_box(at + kHalf, b, barrier, k * kDepth, column);
          }
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
  i32 index = 0;
  for (i32 tile = (i32)blockIdx.x; tile < tiles; tile += (i32)gridDim.x, ++index) {
    if ((index & 1) != pair) continue;
    typename FORMAT::sum d[64];
    int stage = (int)((i64)index * blocks % kStages), done = stage;
    u32 phase = (u32)((i64)index * blocks / kStages) & 1;
    meet<512>(1 + pair);
    for (i32 k = 0; k < blocks; ++k) {
      await(full + 8 * stage, phase);
      const u64 moved = (u64)(stage * (kStage >> 4));
      begin_sums();
      UNROLL for (int n = 0; n < 4; ++n)
        Multiply<FORMAT, 128, TURNED>::add(d, tile_a + moved + n * 2, tile_b + moved + n * (TURNED ? 128 : 2), k + n);
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
    // A thread has pairs of neighbours; four threads trade theirs, so that each stores eight.
    const i32 row = tile_row(tile) * 128 + half * 64 + warp * 16 + lane / 4, column = tile_column(tile) * 128;
    const int own = lane & 3;
    // Beyond the edges the last is computed once more: nothing there is stored.
    const auto low = [&](int j, int r) { const i32 at = column + j * 8 + own * 2, line = row + r * 8; return finish(d[j * 4 + r * 2], line < rows ? line : (i32)rows - 1, at < columns ? at : (i32)columns - 2); };
    const auto high = [&](int j, int r) { const i32 at = column + j * 8 + own * 2, line = row + r * 8; return finish(d[j * 4 + r * 2 + 1], line < rows ? line : (i32)rows - 1, at < columns ? at + 1 : (i32)columns - 1); };
    if constexpr (sizeof(RESULT) == 4) {
      UNROLL for (int j = 0; j < 16; ++j) {
        UNROLL for (int r = 0; r < 2; ++r) {
          const Neighbours<RESULT> both = {low(j, r), high(j, r)};
          const i32 at = column + j * 8 + own * 2, line = row + r * 8;
          if (line < rows && at < columns) *(Neighbours<RESULT>*)(y + place(line, at)) = both;
        }
      }
      continue;
    }
    UNROLL for (int j = 0; j < 16; j += 4) {
      u32 v[2][4];
      UNROLL for (int c = 0; c < 4; ++c) {
        UNROLL for (int r = 0; r < 2; ++r) v[r][c] = stored_pair<FORMAT, RESULT>(low(j + c, r), high(j + c, r));
      }
      UNROLL for (int r = 0; r < 2; ++r) {
        u32* const w = v[r];
        u32 x = own & 1 ? w[0] : w[1], z = own & 1 ? w[2] : w[3];
        x = __shfl_xor_sync(~0u, x, 1);
        z = __shfl_xor_sync(~0u, z, 1);
        if (own & 1) { w[0] = x; w[2] = z; } else { w[1] = x; w[3] = z; }
        x = own & 2 ? w[0] : w[2];
        z = own & 2 ? w[1] : w[3];
        x = __shfl_xor_sync(~0u, x, 2);
        z = __shfl_xor_sync(~0u, z, 2);
        if (own & 2) { w[0] = x; w[1] = z; } else { w[2] = x; w[3] = z; }
        const i32 at = column + (j + own) * 8, line = row + r * 8;
        if (line >= rows || at >= columns) continue;
        if constexpr (sizeof(RESULT) == 2) *(uint4*)(y + place(line, at)) = make_uint4(w[0], w[1], w[2], w[3]);
        else *(uint2*)(y + place(line, at)) = make_uint2(w[0] | w[1] << 16, w[2] | w[3] << 16);
      }
    }
  }
}
)cuda";
}

}  // namespace tenon::codegen::cuda
