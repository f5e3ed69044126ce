#include "codegen/cuda/convolution.h"

namespace tenon::codegen::cuda {

// Implicit-GEMM convolution with split-K over a thread-block cluster, TMA multicast and warp
// specialization. A block computes 64 pixels, continuing across rows and images, by 64 outputs. The
// blocks of a cluster split the reduction of a tile (PARTS), and tiles of different outputs share
// their pixels by multicast: L2 bandwidth limits these kernels, not arithmetic. The fifth warp
// issues TMA copies of pixels and weights into all pipeline stages that shared memory holds; the
// other four form the wgmma warpgroup. Each thread sends partial sums to the block that owns them;
// there the same thread adds them in the order of the parts and runs the epilogue.
std::string_view convolution_template() {
  return R"cuda(
template <class FORMAT, int PARTS, int BESIDE, int STAGES, class VALUE, class RESULT, class FETCH, class FINISH, class PLACE>
FN void convolution_tile(const TensorMap* x, const TensorMap* w, i64 pixels, WindowPixels source, RESULT* y, const FETCH& fetch, const FINISH& finish,
                         const PLACE& place) {
  constexpr int kHalf = 64 * 128, kStage = 2 * kHalf, kDepth = 128 / sizeof(typename FORMAT::type), kBlocks = PARTS * BESIDE;
  constexpr int kOwn = PARTS < 4 ? 4 / PARTS : 1;  // of a thread's four pieces, those that end in one block
  typedef typename FORMAT::sum Sum;
  SHARED_TILES(stages);
  SHARED_BARRIERS(barriers, 2 * STAGES + 1);
  const u32 first = (shared_address(stages) + 1023) & ~1023u, full = shared_address(barriers), empty = full + 8 * STAGES, sent = empty + 8 * STAGES;
  const int lane = (int)threadIdx.x % 32, warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
  const i32 rank = (i32)blockIdx.x % kBlocks, part = rank % PARTS, beside = rank / PARTS;
  const i32 across = source.s.outputs / (64 * BESIDE), cluster = (i32)blockIdx.x / kBlocks;
  const i32 output = (cluster % across * BESIDE + beside) * 64, pixel = cluster / across * 64;
  const i32 begin = source.blocks * part / PARTS, end = source.blocks * (part + 1) / PARTS;
  const auto copy_stage = [&](int stage) {
    const u32 at = first + stage * kStage, barrier = full + 8 * stage;
    expect_bytes(barrier, kStage);
    if constexpr (BESIDE == 1) {
      source.copy(at, x, barrier);
    } else {
      u32 blocks = 0;
      UNROLL for (int k = 0; k < BESIDE; ++k) blocks |= 1u << (part + PARTS * k);
      source.copy_to(blocks, at + beside * (kHalf / BESIDE), x, barrier);
    }
    copy_box(at + kHalf, w, barrier, source.deep, output);
    source.template next<kDepth>();
  };
  const i32 ready = min(end, begin + STAGES);
  const auto begin_copies = [&] {
    wait_for_kernel_before();
    source.template begin<kDepth>(pixel + beside * (64 / BESIDE), begin);
    for (i32 k = begin; k < ready; ++k) copy_stage(k - begin);
  };
  if (threadIdx.x == 128) {
    prefetch_map(x);
    prefetch_map(w);
    for (int k = 0; k < STAGES; ++k) { begin_barrier(full + 8 * k, 1); begin_barrier(empty + 8 * k, 4 * BESIDE); }
    begin_barrier(sent, 1);
    publish_barriers();
    if (PARTS > 1) expect_bytes(sent, (PARTS - 1) * (64 * 64 * 4 / PARTS));
    // Into this block alone: before anybody else has seen the barriers.
    if (BESIDE == 1) begin_copies();
  }
  if (kBlocks == 1) __syncthreads(); else pass_cluster();
  if (BESIDE > 1) {
    await_cluster();
    if (threadIdx.x == 128) begin_copies();
  } else if (kBlocks > 1) {
    __syncthreads();
  }
  if (warp == 4) {
    if (lane == 0) {
      int stage = 0;
      u32 phase = 0;
      for (i32 k = ready; k < end; ++k) {
        await(empty + 8 * stage, phase);
        copy_stage(stage);
        if (++stage == STAGES) { stage = 0; phase ^= 1; }
      }
    }
    __syncwarp();
    if (kBlocks > 1 && BESIDE == 1) await_cluster();
    return;
  }
  wait_for_kernel_before();
  // A thread has 8 neighbours of two rows, 32 columns apart: four pieces.
  const auto line_of = [&](int piece) { return pixel + warp * 16 + lane / 4 + piece / 2 * 8; };
  const auto row_of = [&](int piece) { const i32 at = line_of(piece); return at < pixels ? at : (i32)pixels - 1; };
  const auto column_of = [&](int piece) { return output + (lane & 3) * 8 + piece % 2 * 32; };
  const auto block_of = [&](int piece) { return (piece * 2 + warp % 2) * PARTS / 8; };
  const int first_own = PARTS == 8 ? part / 2 : part * kOwn;
  decltype(fetch(0, 0)) fetched[kOwn];
  UNROLL for (int k = 0; k < kOwn; ++k) fetched[k] = fetch(row_of(first_own + k), column_of(first_own + k));
  Sum d[32];
  int stage = 0, done = 0;
  u32 phase = 0;
  for (i32 k = begin; k < end; ++k) {
    await(full + 8 * stage, phase);
    const u64 a = tile_at(first + stage * kStage, 16), b = tile_at(first + stage * kStage + kHalf, 16);
    begin_sums();
    UNROLL for (int n = 0; n < 4; ++n) Multiply<FORMAT, 64, false>::add(d, a + 2 * n, b + 2 * n, k - begin + n);
    commit_sums();
    await_sums<1>();
    if (k > begin) {
      // All that copy into this stage once more hear that it is read.
      if (lane == 0 && k - 1 + STAGES < end) {
        arrive(empty + 8 * done);
        UNROLL for (int n = 1; n < BESIDE; ++n) arrive_in(address_in(empty + 8 * done, (u32)(part + PARTS * ((beside + n) % BESIDE))));
      }
      if (++done == STAGES) done = 0;
    }
    if (++stage == STAGES) { stage = 0; phase ^= 1; }
  }
  await_sums<0>();
  if (kBlocks > 1 && BESIDE == 1) await_cluster();
  // Sums of other parts lie behind the stages: by part and piece, 128 threads side by side, four numbers of each and then the other four.
  const auto slot = [&](int from, int to, int piece) {
    return first + STAGES * kStage + ((from < to ? from : from - 1) * kOwn + piece % kOwn) * 4096 + threadIdx.x * 16;
  };
  Eight<Sum> own[kOwn];
  UNROLL for (int piece = 0; piece < 4; ++piece) {
    Eight<Sum> eight;
    UNROLL for (int c = 0; c < 2; ++c) {
      const int at = piece % 2 * 16 + piece / 2 * 2 + c;
      Sum four[4] = {d[at], d[at + 4], d[at + 8], d[at + 12]};
      trade(four, lane);
      UNROLL for (int k = 0; k < 4; ++k) eight.at[2 * k + c] = four[k];
    }
    const int to = block_of(piece);
    if (to == part) {
      own[piece % kOwn] = eight;
    } else {
      const u32 there = (u32)(rank - part + to), at = address_in(slot(part, to, piece), there), barrier = address_in(sent, there);
      send_four(at, eight.at, barrier);
      send_four(at + 2048, eight.at + 4, barrier);
    }
  }
  if (PARTS > 1) await_sent(sent);
  UNROLL for (int k = 0; k < kOwn; ++k) {
    const int piece = first_own + k;
    if (PARTS == 8 && block_of(piece) != part) break;
    Eight<Sum> sum = own[k];
    if (PARTS > 1) {
      UNROLL for (int n = 0; n < 8; ++n) sum.at[n] = 0;
      UNROLL for (int from = 0; from < PARTS; ++from) {
        Eight<Sum> other = own[k];
        if (from != part) {
          load_four((u32*)other.at, slot(from, part, piece));
          load_four((u32*)other.at + 4, slot(from, part, piece) + 2048);
        }
        UNROLL for (int n = 0; n < 8; ++n) sum.at[n] += other.at[n];
      }
    }
    const Eight<VALUE> made = finish(sum.at, fetched[k], row_of(piece), column_of(piece));
    if (line_of(piece) < pixels) store_eight<FORMAT>(y + place(row_of(piece), column_of(piece)), made);
  }
}
)cuda";
}

}  // namespace tenon::codegen::cuda
