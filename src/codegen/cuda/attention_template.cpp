#include "codegen/cuda/attention.h"

namespace tenon::codegen::cuda {

// Scores of a block of queries stay in registers: keys and values come by in tiles, the highest
// score and the sum so far are kept for each row, and what was summed before is scaled when a
// higher score is met. Fragments are those of mma.m16n8k16.
std::string_view attention_template() {
  return R"cuda(
#ifdef TENON_EMULATION
namespace emulated {
static const u16* addresses[1024];
static u32 fragments[1024][6];
}
template <bool TURNED> FN void load_matrices(u32* to, const u16* row) {
  const unsigned self = threadIdx.x, warp = self & ~31u, lane = self & 31;
  emulated::addresses[self] = row;
  emulated::wait(2);
  for (int m = 0; m < 4; ++m) {
    const u16* const* rows = emulated::addresses + warp + m * 8;
    u16 low, high;
    if (TURNED) { low = rows[lane % 4 * 2][lane / 4]; high = rows[lane % 4 * 2 + 1][lane / 4]; }
    else { low = rows[lane / 4][lane % 4 * 2]; high = rows[lane / 4][lane % 4 * 2 + 1]; }
    to[m] = (u32)low | (u32)high << 16;
  }
  emulated::wait(2);
}
template <class FORMAT> FN void multiply(float* sums, const u32* a, const u32* b) {
  const unsigned self = threadIdx.x, warp = self & ~31u, lane = self & 31;
  for (int k = 0; k < 4; ++k) emulated::fragments[self][k] = a[k];
  for (int k = 0; k < 2; ++k) emulated::fragments[self][4 + k] = b[k];
  emulated::wait(2);
  for (int c = 0; c < 4; ++c) {
    const int row = lane / 4 + c / 2 * 8, column = lane % 4 * 2 + c % 2;
    for (int k = 0; k < 16; ++k) {
      const u32 x = emulated::fragments[warp + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
      const u32 y = emulated::fragments[warp + column * 4 + k % 8 / 2][4 + k / 8];
      sums[c] += FORMAT::wide((u16)(x >> k % 2 * 16)) * FORMAT::wide((u16)(y >> k % 2 * 16));
    }
  }
  emulated::wait(2);
}
FN void copy_ahead(u16* to, const u16* from, bool is_inside) {
  for (int k = 0; k < 8; ++k) to[k] = is_inside ? from[k] : (u16)0;
}
FN void end_copies() {}
template <int LEFT> FN void await_copies() {}
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
FN u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
template <bool TURNED> FN void load_matrices(u32* to, const u16* row) {
  if (TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(row)) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(row)) : "memory");
}
template <class FORMAT> FN void multiply(float* sums, const u32* a, const u32* b) { FORMAT::multiply(sums, a, b); }
FN void copy_ahead(u16* to, const u16* from, bool is_inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(shared_address(to)), "l"(from), "r"(is_inside ? 16 : 0) : "memory");
}
FN void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> FN void await_copies() { asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory"); }
#endif
struct FormatF16 {
  static FN float wide(u16 x) { return from_f16(x); }
  static FN u32 pair(float low, float high) { return (u32)to_f16(low) | (u32)to_f16(high) << 16; }
#ifndef TENON_EMULATION
  static FN void multiply(float* d, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#endif
};
struct FormatBf16 {
  static FN float wide(u16 x) { return from_bf16(x); }
  static FN u32 pair(float low, float high) { return (u32)to_bf16(low) | (u32)to_bf16(high) << 16; }
#ifndef TENON_EMULATION
  static FN void multiply(float* d, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#endif
};
template <int ROWS, int SIZE, int PITCH> FN void copy_rows(u16* to, const u16* from, i64 row, i64 first, i64 count) {
  constexpr int kChunks = (SIZE + 15) / 16 * 2;
  for (int k = (int)threadIdx.x; k < ROWS * kChunks; k += 128) {
    const int r = k / kChunks, c = k % kChunks * 8;
    const bool is_inside = first + r < count && c < SIZE;
    copy_ahead(to + r * PITCH + c, is_inside ? from + (first + r) * row + c : from, is_inside);
  }
}
template <class FORMAT, int SIZE, int VALUES, int KEYS, bool ZERO, class SCORE>
FN void attention_rows(const u16* q, i64 q_row, const u16* k, i64 k_row, const u16* v, i64 v_row,
                       u16* y, i64 y_row, i64 queries, i64 keys, i64 first, u16* shared, const SCORE& score) {
  constexpr int kSize = (SIZE + 15) / 16 * 16, kValues = (VALUES + 15) / 16 * 16;
  constexpr int kPitch = kSize + 8, kValuePitch = kValues + 8;
  constexpr int kStage = KEYS * (kPitch + kValuePitch);
  constexpr float kLog2e = 1.4426950408889634f;
  const float kMasked = f32_of(0xff800000u);
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const i64 row = first + warp * 16 + lane / 4;
  const i64 tiles = (keys + KEYS - 1) / KEYS;
  copy_rows<KEYS, SIZE, kPitch>(shared, k, k_row, 0, keys);
  copy_rows<KEYS, VALUES, kValuePitch>(shared + KEYS * kPitch, v, v_row, 0, keys);
  end_copies();
  // Queries are fragments as they are read.
  u32 a[kSize / 16][4];
  UNROLL for (int c = 0; c < kSize / 16; ++c) {
    UNROLL for (int n = 0; n < 4; ++n) {
      const i64 query = row + n % 2 * 8;
      const int column = c * 16 + n / 2 * 8 + lane % 4 * 2;
      a[c][n] = query < queries && column < SIZE ? *(const u32*)(q + query * q_row + column) : 0;
    }
  }
  float sums[kValues / 8][4], highest[2], total[2];
  UNROLL for (int n = 0; n < kValues / 8; ++n) UNROLL for (int c = 0; c < 4; ++c) sums[n][c] = 0;
  UNROLL for (int r = 0; r < 2; ++r) { highest[r] = kMasked; total[r] = 0; }
  for (i64 tile = 0; tile < tiles; ++tile) {
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
      UNROLL for (int n = 0; n < KEYS / 16; ++n) {
        u32 b[4];
        load_matrices<false>(b, at + (n * 16 + lane / 16 * 8 + lane % 8) * kPitch + c * 16 + lane / 8 % 2 * 8);
        multiply<FORMAT>(s[2 * n], a[c], b);
        multiply<FORMAT>(s[2 * n + 1], a[c], b + 2);
      }
    }
    float most_now[2] = {highest[0], highest[1]};
    UNROLL for (int n = 0; n < KEYS / 8; ++n) {
      UNROLL for (int c = 0; c < 4; ++c) {
        const i64 key = tile * KEYS + n * 8 + lane % 4 * 2 + c % 2, query = row + c / 2 * 8;
        s[n][c] = key < keys ? score(s[n][c], query < queries ? query : queries - 1, key) : kMasked;
        most_now[c / 2] = fmaxf(most_now[c / 2], s[n][c]);
      }
    }
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
    const i64 query = row + r * 8;
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
