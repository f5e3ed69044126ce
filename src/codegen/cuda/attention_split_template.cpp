#include "codegen/cuda/attention_split.h"

namespace tenon::codegen::cuda {

// Attention of few queries (decode) with split-KV: the blocks of a cluster share the keys of one
// head.
//
// A producer warp copies tiles of 64 keys and values by TMA. Each of four warps multiplies all
// queries, at most 16, with 16 keys of a tile (mma.sync) and keeps its own online softmax. Partial
// results meet first in shared memory, then in the first block of the cluster, to which the others
// send theirs (stores that signal its mbarrier).
std::string_view split_attention_template() {
  return R"cuda(
template <class FORMAT, int SIZE, int ROWS, int PARTS, int STAGES, bool ZERO, class LOCATE, class QUERY, class RESULT, class SCORE>
FN void attention_split(const TensorMap* map_k, const TensorMap* map_v, i64 k_row, i64 v_row, i32 keys, float scale,
                        const LOCATE& locate, const QUERY& query, const RESULT& result, const SCORE& score) {
  constexpr int kKeys = 64, kSlabs = SIZE / 64, kSlab = kKeys * 128, kHalf = kSlabs * kSlab, kStage = 2 * kHalf;
  constexpr int kHalves = ROWS > 8 ? 2 : 1, kPitch = SIZE + 4;  // per row of partial results: sums, maximum, total
  const float kMasked = f32_of(0xff800000u);
  SHARED_TILES(memory);
  SHARED_BARRIERS(barriers, 2 * STAGES + 1);
  const u32 first = (shared_address(memory) + 1023) & ~1023u, full = shared_address(barriers), empty = full + 8 * STAGES, sent = empty + 8 * STAGES;
  const u32 received = first + STAGES * kStage;
  const int part = (int)blockIdx.x % PARTS, lane = (int)threadIdx.x % 32, warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
  if (threadIdx.x == 0) {
    for (int k = 0; k < STAGES; ++k) { begin_barrier(full + 8 * k, 1); begin_barrier(empty + 8 * k, 4); }
    begin_barrier(sent, 1);
    publish_barriers();
    if (part == 0) expect_bytes(sent, PARTS * ROWS * kPitch * 4);
  }
  if (PARTS > 1) pass_cluster();
  __syncthreads();
  wait_for_kernel_before();
  const auto at = locate((i32)blockIdx.x / PARTS, 0);
  const i32 tiles = (at.seen + kKeys - 1) / kKeys, count = part < tiles ? (tiles - part + PARTS - 1) / PARTS : 0;
  if (warp == 4) {
    if (lane == 0) {
      const i32 x_k = (i32)(at.keys_at % k_row), y_k = (i32)(at.keys_at / k_row), x_v = (i32)(at.values_at % v_row), y_v = (i32)(at.values_at / v_row);
      int stage = 0;
      u32 phase = 1;
      ROLLED for (i32 n = 0; n < count; ++n) {
        const i32 key = (n * PARTS + part) * kKeys;
        const u32 to = first + stage * kStage, barrier = full + 8 * stage;
        await(empty + 8 * stage, phase);
        expect_bytes(barrier, kStage);
        UNROLL for (int slab = 0; slab < kSlabs; ++slab) copy_box(to + slab * kSlab, map_k, barrier, x_k + slab * 64, y_k + key);
        UNROLL for (int slab = 0; slab < kSlabs; ++slab) copy_box(to + kHalf + slab * kSlab, map_v, barrier, x_v + slab * 64, y_v + key);
        if (++stage == STAGES) { stage = 0; phase ^= 1; }
      }
    }
    if (PARTS > 1) await_cluster();
    return;
  }
  const u16* const stages = (const u16*)(memory + (first - shared_address(memory)));
  u32 q[SIZE / 16][4];
  UNROLL for (int c = 0; c < SIZE / 16; ++c) UNROLL for (int n = 0; n < 4; ++n) {
    const i32 row = lane / 4 + n % 2 * 8;
    q[c][n] = row < ROWS ? *(const u32*)(query(at, row) + c * 16 + n / 2 * 8 + lane % 4 * 2) : 0;
  }
  float sums[SIZE / 8][4], highest[kHalves], total[kHalves];
  UNROLL for (int n = 0; n < SIZE / 8; ++n) UNROLL for (int c = 0; c < 4; ++c) sums[n][c] = 0;
  UNROLL for (int r = 0; r < kHalves; ++r) { highest[r] = kMasked; total[r] = 0; }
  int stage = 0;
  u32 phase = 0;
  ROLLED for (i32 n = 0; n < count; ++n) {
    const i32 own = (n * PARTS + part) * kKeys + warp * 16;
    const u16* const tile = stages + stage * (kStage / 2);
    await(full + 8 * stage, phase);
    float s[2][4];
    UNROLL for (int k = 0; k < 2; ++k) UNROLL for (int c = 0; c < 4; ++c) s[k][c] = 0;
    UNROLL for (int c = 0; c < SIZE / 16; ++c) {
      const int row = warp * 16 + lane / 16 * 8 + lane % 8, chunk = c * 2 + lane / 8 % 2;
      u32 b[4];
      load_matrices<false>(b, tile + (chunk / 8 * kSlab + row * 128 + ((chunk ^ row) & 7) * 16) / 2);
      multiply<FORMAT>(s[0], q[c], b);
      multiply<FORMAT>(s[1], q[c], b + 2);
    }
    u32 p[4] = {0, 0, 0, 0};
    UNROLL for (int r = 0; r < kHalves; ++r) {
      const i32 row = lane / 4 + r * 8 < ROWS ? lane / 4 + r * 8 : ROWS - 1;
      float most = highest[r];
      UNROLL for (int k = 0; k < 2; ++k) UNROLL for (int c = 0; c < 2; ++c) {
        float& x = s[k][2 * r + c];
        const i32 key = own + k * 8 + lane % 4 * 2 + c;
        x = key < at.seen ? score(at, x, row, key) * scale : kMasked;
        most = fmaxf(most, x);
      }
      most = fmaxf(most, from_lane(most, 1));
      most = fmaxf(most, from_lane(most, 2));
      const float peak = most == kMasked ? 0.0f : most, by = power_of_two(highest[r] - peak);
      highest[r] = most;
      total[r] *= by;
      UNROLL for (int k = 0; k < SIZE / 8; ++k) { sums[k][2 * r] *= by; sums[k][2 * r + 1] *= by; }
      UNROLL for (int k = 0; k < 2; ++k) {
        const float low = power_of_two(s[k][2 * r] - peak), high = power_of_two(s[k][2 * r + 1] - peak);
        total[r] += low + high;
        p[2 * k + r] = FORMAT::pair(low, high);
      }
    }
    // Rows after the last key belong to another head; 0 times them may be NaN.
    u32 kept[2];
    UNROLL for (int k = 0; k < 2; ++k) {
      const i32 key = own + k * 8 + lane % 4 * 2;
      kept[k] = key + 1 < keys ? ~0u : key < keys ? 0xffffu : 0;
    }
    UNROLL for (int c = 0; c < SIZE / 16; ++c) {
      const int row = warp * 16 + lane / 8 % 2 * 8 + lane % 8, chunk = c * 2 + lane / 16;
      u32 b[4];
      load_matrices<true>(b, tile + (kHalf + chunk / 8 * kSlab + row * 128 + ((chunk ^ row) & 7) * 16) / 2);
      UNROLL for (int k = 0; k < 4; ++k) b[k] &= kept[k % 2];
      multiply<FORMAT>(sums[2 * c], p, b);
      multiply<FORMAT>(sums[2 * c + 1], p, b + 2);
    }
    __syncwarp();
    if (lane == 0) arrive(empty + 8 * stage);
    if (++stage == STAGES) { stage = 0; phase ^= 1; }
  }
  meet<128>(1);
  float* const partial = (float*)stages;
  UNROLL for (int r = 0; r < kHalves; ++r) {
    total[r] += from_lane(total[r], 1);
    total[r] += from_lane(total[r], 2);
    const int row = lane / 4 + r * 8;
    if (row >= ROWS) continue;
    float* const to = partial + (warp * ROWS + row) * kPitch;
    UNROLL for (int k = 0; k < SIZE / 8; ++k) {
      to[k * 8 + lane % 4 * 2] = sums[k][2 * r];
      to[k * 8 + lane % 4 * 2 + 1] = sums[k][2 * r + 1];
    }
    if (lane % 4 == 0) { to[SIZE] = highest[r]; to[SIZE + 1] = total[r]; }
  }
  meet<128>(1);
  if (PARTS > 1) await_cluster();
  // Adds partial results of several softmaxes: four sums of a row, and its maximum and total.
  const auto add = [&](const float* from, int sources, int n, float* made) {
    const int row = n / (SIZE / 4), column = n % (SIZE / 4) * 4;
    float peak = kMasked;
    UNROLL for (int k = 0; k < sources; ++k) peak = fmaxf(peak, from[(k * ROWS + row) * kPitch + SIZE]);
    made[4] = peak;
    if (peak == kMasked) peak = 0;
    UNROLL for (int c = 0; c < 4; ++c) made[c] = 0;
    made[5] = 0;
    UNROLL for (int k = 0; k < sources; ++k) {
      const float* const row_of = from + (k * ROWS + row) * kPitch;
      const float by = power_of_two(row_of[SIZE] - peak);
      UNROLL for (int c = 0; c < 4; ++c) made[c] = fmaf(by, row_of[column + c], made[c]);
      made[5] = fmaf(by, row_of[SIZE + 1], made[5]);
    }
  };
  const auto store = [&](int n, const float* made) {
    const float by = (ZERO || keys == 0) && made[5] == 0 ? 1.0f : 1.0f / made[5];
    store_pack<u32, 2>((u32*)(result(at, n / (SIZE / 4)) + n % (SIZE / 4) * 4),
                       Pack<u32, 2>{{FORMAT::pair(made[0] * by, made[1] * by), FORMAT::pair(made[2] * by, made[3] * by)}});
  };
  for (int n = (int)threadIdx.x; n < ROWS * SIZE / 4; n += 128) {
    float made[8];
    add(partial, 4, n, made);
    if (PARTS == 1) { store(n, made); continue; }
    const u32 target = (u32)0, barrier = address_in(sent, target);
    const u32 row = received + (part * ROWS + n / (SIZE / 4)) * kPitch * 4;
    send_four(address_in(row + n % (SIZE / 4) * 16, target), made, barrier);
    if (n % (SIZE / 4) == 0) {
      made[6] = made[7] = 0;
      send_four(address_in(row + SIZE * 4, target), made + 4, barrier);
    }
  }
  if (PARTS == 1 || part != 0) return;
  await_sent(sent);
  const float* const all = (const float*)(memory + (received - shared_address(memory)));
  for (int n = (int)threadIdx.x; n < ROWS * SIZE / 4; n += 128) {
    float made[8];
    add(all, PARTS, n, made);
    store(n, made);
  }
}
)cuda";
}

}  // namespace tenon::codegen::cuda
