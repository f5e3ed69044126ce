#include "codegen/cuda/attention.h"

namespace tenon::codegen::cuda {

// FlashAttention: the scores of a block of queries stay in registers. Keys and values stream
// through shared memory in tiles; online softmax keeps a running maximum and sum per row and
// rescales the accumulators when the maximum grows.
std::string_view attention_template() {
  return R"cuda(
template <int ROWS, int SIZE, int PITCH> FN void copy_rows(u16* to, const u16* from, i64 row, i32 first, i32 count) {
  constexpr int kChunks = (SIZE + 15) / 16 * 2;
  ROLLED for (int k = 0; k < ROWS * kChunks; k += 128) {
    const int n = k + (int)threadIdx.x, r = n / kChunks, c = n % kChunks * 8;
    if (ROWS * kChunks % 128 != 0 && n >= ROWS * kChunks) break;
    const bool is_inside = first + r < count && c < SIZE;
    copy_ahead(to + r * PITCH + c, is_inside ? from + (first + r) * row + c : from, is_inside);
  }
}
template <class FORMAT, int SIZE, int VALUES, int KEYS, bool ZERO, class SCORE>
FN void attention_rows(const u16* q, i64 q_row, const u16* k, i64 k_row, const u16* v, i64 v_row,
                       u16* y, i64 y_row, i32 queries, i32 keys, i32 first, u16* shared, const SCORE& score) {
  constexpr int kSize = (SIZE + 15) / 16 * 16, kValues = (VALUES + 15) / 16 * 16;
  constexpr int kPitch = kSize + 8, kValuePitch = kValues + 8;
  constexpr int kStage = KEYS * (kPitch + kValuePitch);
  constexpr float kLog2e = 1.4426950408889634f;
  const float kMasked = f32_of(0xff800000u);
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const i32 row = first + warp * 16 + lane / 4;
  const i32 tiles = (keys + KEYS - 1) / KEYS;
  // Beyond the last query that one is done once more: nothing of it is stored.
  const i32 line[2] = {row < queries ? row : queries - 1, row + 8 < queries ? row + 8 : queries - 1};
  copy_rows<KEYS, SIZE, kPitch>(shared, k, k_row, 0, keys);
  copy_rows<KEYS, VALUES, kValuePitch>(shared + KEYS * kPitch, v, v_row, 0, keys);
  end_copies();
  // Queries are fragments as they are read, or lie in shared memory as well: there the registers
  // are needed for more blocks.
  constexpr bool kAreShared = SIZE <= 64 && VALUES <= 64;
  u16* const q_rows = shared + 2 * kStage;
  u32 a[kSize / 16][4];
  if (kAreShared) {
    copy_rows<64, SIZE, kPitch>(q_rows, q, q_row, first, queries);
    end_copies();
  } else UNROLL for (int c = 0; c < kSize / 16; ++c) {
    UNROLL for (int n = 0; n < 4; ++n) {
      const i32 query = row + n % 2 * 8;
      const int column = c * 16 + n / 2 * 8 + lane % 4 * 2;
      a[c][n] = query < queries && column < SIZE ? *(const u32*)(q + query * q_row + column) : 0;
    }
  }
  float sums[kValues / 8][4], highest[2], total[2];
  UNROLL for (int n = 0; n < kValues / 8; ++n) UNROLL for (int c = 0; c < 4; ++c) sums[n][c] = 0;
  UNROLL for (int r = 0; r < 2; ++r) { highest[r] = kMasked; total[r] = 0; }
  for (i32 tile = 0; tile < tiles; ++tile) {
    const u16* at = shared + tile % 2 * kStage;
    if (tile + 1 < tiles) {
      u16* next = shared + (tile + 1) % 2 * kStage;
      copy_rows<KEYS, SIZE, kPitch>(next, k, k_row, (tile + 1) * KEYS, keys);
      copy_rows<KEYS, VALUES, kValuePitch>(next + KEYS * kPitch, v, v_row, (tile + 1) * KEYS, keys);
      end_copies();
      await_copies<1>();
    } else {
      await_copies<0>();
    }
    __syncthreads();
    float s[KEYS / 8][4];
    UNROLL for (int n = 0; n < KEYS / 8; ++n) UNROLL for (int c = 0; c < 4; ++c) s[n][c] = 0;
    UNROLL for (int c = 0; c < kSize / 16; ++c) {
      if (kAreShared) load_matrices<false>(a[c], q_rows + (warp * 16 + lane / 8 % 2 * 8 + lane % 8) * kPitch + c * 16 + lane / 16 * 8);
      UNROLL for (int n = 0; n < KEYS / 16; ++n) {
        u32 b[4];
        load_matrices<false>(b, at + (n * 16 + lane / 16 * 8 + lane % 8) * kPitch + c * 16 + lane / 8 % 2 * 8);
        multiply<FORMAT>(s[2 * n], a[c], b);
        multiply<FORMAT>(s[2 * n + 1], a[c], b + 2);
      }
    }
    float most_now[2] = {highest[0], highest[1]};
    const i32 end = keys - tile * KEYS;  // of the keys in this tile
    UNROLL for (int n = 0; n < KEYS / 8; ++n) {
      UNROLL for (int c = 0; c < 4; ++c) {
        const i32 key = n * 8 + lane % 4 * 2 + c % 2;
        s[n][c] = score(s[n][c], line[c / 2], tile * KEYS + (key < end ? key : end - 1));
      }
    }
    if (end < KEYS) {
      UNROLL for (int n = 0; n < KEYS / 8; ++n) UNROLL for (int c = 0; c < 4; ++c)
        if (n * 8 + lane % 4 * 2 + c % 2 >= end) s[n][c] = kMasked;
    }
    UNROLL for (int n = 0; n < KEYS / 8; ++n) UNROLL for (int c = 0; c < 4; ++c) most_now[c / 2] = fmaxf(most_now[c / 2], s[n][c]);
    UNROLL for (int r = 0; r < 2; ++r) {
      most_now[r] = fmaxf(most_now[r], from_lane(most_now[r], 1));
      most_now[r] = fmaxf(most_now[r], from_lane(most_now[r], 2));
      const float peak = most_now[r] == kMasked ? 0.0f : most_now[r];
      const float scale = power_of_two((highest[r] - peak) * kLog2e);
      highest[r] = most_now[r];
      total[r] *= scale;
      UNROLL for (int n = 0; n < kValues / 8; ++n) { sums[n][2 * r] *= scale; sums[n][2 * r + 1] *= scale; }
      UNROLL for (int n = 0; n < KEYS / 8; ++n) {
        UNROLL for (int c = 2 * r; c < 2 * r + 2; ++c) {
          s[n][c] = power_of_two((s[n][c] - peak) * kLog2e);
          total[r] += s[n][c];
        }
      }
    }
    const u16* values = at + KEYS * kPitch;
    UNROLL for (int c = 0; c < KEYS / 16; ++c) {
      const u32 p[4] = {FORMAT::pair(s[2 * c][0], s[2 * c][1]), FORMAT::pair(s[2 * c][2], s[2 * c][3]),
                        FORMAT::pair(s[2 * c + 1][0], s[2 * c + 1][1]), FORMAT::pair(s[2 * c + 1][2], s[2 * c + 1][3])};
      UNROLL for (int n = 0; n < kValues / 16; ++n) {
        u32 b[4];
        load_matrices<true>(b, values + (c * 16 + lane / 8 % 2 * 8 + lane % 8) * kValuePitch + n * 16 + lane / 16 * 8);
        multiply<FORMAT>(sums[2 * n], p, b);
        multiply<FORMAT>(sums[2 * n + 1], p, b + 2);
      }
    }
    __syncthreads();
  }
  UNROLL for (int r = 0; r < 2; ++r) {
    total[r] += from_lane(total[r], 1);
    total[r] += from_lane(total[r], 2);
    const i32 query = row + r * 8;
    if (query >= queries) continue;
    const float by = ZERO && total[r] == 0 ? 1.0f : 1.0f / total[r];
    UNROLL for (int n = 0; n < kValues / 8; ++n) {
      const int column = n * 8 + lane % 4 * 2;
      if (column < VALUES)
        *(u32*)(y + query * y_row + column) = FORMAT::pair(sums[n][2 * r] * by, sums[n][2 * r + 1] * by);
    }
  }
}
)cuda";
}

}  // namespace tenon::codegen::cuda
