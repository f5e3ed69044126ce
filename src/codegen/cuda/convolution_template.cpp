#include "codegen/cuda/convolution.h"

namespace tenon::codegen::cuda {

// One tile to a cluster of blocks: 64 pixels, on from row to row and from image to image, by 64
// outputs. Each block sums its share of window places and channels: the fifth warp has pixels and
// weights copied (TMA), the others multiply (wgmma). Then each block adds up all blocks' sums of
// some of the pixels, in order, and does what follows, for which it fetched what it could ahead.
std::string_view convolution_template() {
  return R"cuda(
template <class FORMAT, int CLUSTER, class VALUE, class RESULT, class FETCH, class FINISH, class PLACE>
FN void convolution_tile(const TensorMap* x, const TensorMap* w, i64 pixels, WindowPixels source, RESULT* y, const FETCH& fetch, const FINISH& finish,
                         const PLACE& place) {
  constexpr int kStages = 6, kHalf = 64 * 128, kStage = 2 * kHalf, kDepth = 128 / sizeof(typename FORMAT::type), kPitch = 68;
  typedef typename FORMAT::sum Sum;
  SHARED_TILES(stages);
  SHARED_BARRIERS(barriers, 2 * kStages);
  const u32 first = (shared_address(stages) + 1023) & ~1023u, full = shared_address(barriers), empty = full + 8 * kStages;
  const int lane = (int)threadIdx.x % 32, warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
  const i32 rank = (i32)blockIdx.x % CLUSTER, tile = (i32)blockIdx.x / CLUSTER, beside = source.s.outputs / 64;
  const i32 output = tile % beside * 64, pixel = tile / beside * 64;
  const i32 begin = source.blocks * rank / CLUSTER, end = source.blocks * (rank + 1) / CLUSTER;
  const i32 upper = 64 * rank / CLUSTER, pieces = (64 * (rank + 1) / CLUSTER - upper) * 8;
  const auto row_of = [&](i32 piece) { const i32 at = pixel + upper + piece / 8; return at < pixels ? at : (i32)pixels - 1; };
  const auto column_of = [&](i32 piece) { return output + piece % 8 * 8; };
  Sum* const sums = (Sum*)(stages + (first - shared_address(stages)));
  const auto copy_stage = [&](int stage) {
    const u32 at = first + stage * kStage, barrier = full + 8 * stage;
    expect_bytes(barrier, kStage);
    source.copy(at, x, barrier);
    copy_box(at + kHalf, w, barrier, source.deep, output);
    source.template next<kDepth>();
  };
  // The first copies begin before anybody else has seen the barriers.
  const i32 ready = min(end, begin + kStages);
  if (threadIdx.x == 128) {
    prefetch_map(x);
    prefetch_map(w);
    for (int k = 0; k < kStages; ++k) { begin_barrier(full + 8 * k, 1); begin_barrier(empty + 8 * k, 4); }
    publish_barriers();
    wait_for_kernel_before();
    source.template begin<kDepth>(pixel, begin);
    for (i32 k = begin; k < ready; ++k) copy_stage(k - begin);
  }
  __syncthreads();
  wait_for_kernel_before();
  if (warp == 4) {
    if (lane == 0) {
      int stage = 0;
      u32 phase = 0;
      for (i32 k = ready; k < end; ++k) {
        await(empty + 8 * stage, phase);
        copy_stage(stage);
        if (++stage == kStages) { stage = 0; phase ^= 1; }
      }
    }
    __syncwarp();
  }
  const auto ahead = fetch(row_of((i32)threadIdx.x < pieces ? (i32)threadIdx.x : 0), column_of((i32)threadIdx.x));
  if (warp == 4) {
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
  u32 others[CLUSTER];
  UNROLL for (int k = 0; k < CLUSTER; ++k) others[k] = address_in(shared_address(sums), (u32)k);
  const auto sum_of = [&](i32 piece) {
    Eight<Sum> eight;
    UNROLL for (int n = 0; n < 8; ++n) eight.at[n] = 0;
    UNROLL for (int k = 0; k < CLUSTER; ++k) {
      UNROLL for (int n = 0; n < 8; n += 4) {
        Sum four[4];
        load_from_block(four, others[k] + ((upper + piece / 8) * kPitch + piece % 8 * 8 + n) * 4);
        UNROLL for (int m = 0; m < 4; ++m) eight.at[n + m] += four[m];
      }
    }
    return eight;
  };
  const auto store = [&](i32 piece, const Eight<Sum>& eight, const decltype(fetch(0, 0))& fetched) {
    if (pixel + upper + piece / 8 >= pixels) return;
    const Eight<VALUE> made = finish(eight.at, fetched, row_of(piece), column_of(piece));
    store_eight<FORMAT>(y + place(row_of(piece), column_of(piece)), made);
  };
  const i32 own = (i32)threadIdx.x;
  for (i32 piece = own + (i32)blockDim.x; piece < pieces; piece += (i32)blockDim.x)
    store(piece, sum_of(piece), fetch(row_of(piece), column_of(piece)));
  Eight<Sum> last;
  if (own < pieces) last = sum_of(own);
  // None ends while another reads its sums.
  pass_cluster();
  if (own < pieces) store(own, last, ahead);
  await_cluster();
}
)cuda";
}

}  // namespace tenon::codegen::cuda
