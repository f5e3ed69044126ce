#include "codegen/cuda/product.h"

namespace tenon::codegen::cuda {

// Tiles of 128 x 128. The first of five groups of threads has tiles of the operands copied to
// shared memory (TMA, 128 bytes swizzled), up to six of them ahead; two pairs of groups take turns:
// while one sums (wgmma), the other computes what follows its sums and stores it. Each group of a
// pair has 64 rows. A grid of as many blocks as there are multiprocessors goes through all tiles.
std::string_view product_template() {
  return R"cuda(
#ifdef TENON_EMULATION
struct Matrix { const u16* at; i64 pitch; };
#define MATRIX(map, at, pitch) Matrix{at, pitch}
template <class FORMAT, bool TURNED, class FINISH, class PLACE>
FN void product_tiles(Matrix a, Matrix b, i64 rows, i64 columns, i64 inner, u16* y, const FINISH& finish, const PLACE& place) {
  const i64 across = (columns + 127) / 128, tiles = (rows + 127) / 128 * across;
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    for (int k = (int)threadIdx.x; k < 128 * 16; k += (int)blockDim.x) {
      const i64 row = tile / across * 128 + k / 16, first = tile % across * 128 + k % 16 * 8;
      if (row >= rows || first >= columns) continue;
      for (i64 column = first; column < first + 8; column += 2) {
        float sums[2] = {0, 0};
        for (int c = 0; c < 2; ++c) {
          for (i64 n = 0; n < inner; ++n)
            sums[c] += FORMAT::wide(a.at[row * a.pitch + n]) *
                       FORMAT::wide(TURNED ? b.at[n * b.pitch + column + c] : b.at[(column + c) * b.pitch + n]);
          sums[c] = finish(sums[c], (i32)row, (i32)column + c);
        }
        const u32 both = FORMAT::pair(sums[0], sums[1]);
        u16* to = y + place((i32)row, (i32)first) + column - first;
        to[0] = (u16)both;
        to[1] = (u16)(both >> 16);
      }
    }
  }
}
#else
#define MATRIX(map, at, pitch) &map
#define MULTIPLY_64X128(TYPE)                                                                      \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"                                   \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " {"                    \
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63" \
               "}, %64, %65, adds, 1, 1, 0, %67;\n}"                                                \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
                 "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
                 "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
                 "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
                 "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
                 "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])                  \
               : "l"(a), "l"(b), "r"(adds), "n"(TURNED ? 1 : 0))
template <class FORMAT, bool TURNED> struct Multiply;
template <bool TURNED> struct Multiply<FormatF16, TURNED> {
  static FN void add(float* d, u64 a, u64 b, int adds) { MULTIPLY_64X128("f16"); }
};
template <bool TURNED> struct Multiply<FormatBf16, TURNED> {
  static FN void add(float* d, u64 a, u64 b, int adds) { MULTIPLY_64X128("bf16"); }
};
template <class FORMAT, bool TURNED, class FINISH, class PLACE>
FN void product_tiles(const TensorMap* a, const TensorMap* b, i64 rows, i64 columns, i64 inner, u16* y, const FINISH& finish, const PLACE& place) {
  constexpr int kStages = 6, kHalf = 128 * 64 * 2, kStage = 2 * kHalf;
  extern __shared__ __align__(1024) u8 stages[];
  __shared__ __align__(8) u64 barriers[2 * kStages];
  const u32 first = (shared_address(stages) + 1023) & ~1023u, full = shared_address(barriers), empty = full + 8 * kStages;
  if (threadIdx.x == 0) {
    for (int k = 0; k < kStages; ++k) { begin_barrier(full + 8 * k, 1); begin_barrier(empty + 8 * k, 2); }
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  wait_for_kernel_before();
  const i32 down = (i32)((rows + 127) / 128), across = (i32)((columns + 127) / 128), tiles = down * across;
  const i32 blocks = (i32)((inner + 63) / 64);
  const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
  // Eight tiles below each other, then the next eight: what they read stays near.
  const auto tile_row = [&](i32 tile) { const i32 band = tile / (8 * across), high = min(8, down - band * 8); return band * 8 + tile % (8 * across) % high; };
  const auto tile_column = [&](i32 tile) { const i32 band = tile / (8 * across), high = min(8, down - band * 8); return tile % (8 * across) / high; };
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    if (threadIdx.x == 0) {
      int stage = 0;
      u32 phase = 1;
      for (i32 tile = (i32)blockIdx.x; tile < tiles; tile += (i32)gridDim.x) {
        const i32 row = tile_row(tile) * 128, column = tile_column(tile) * 128;
        for (i32 k = 0; k < blocks; ++k) {
          const u32 at = first + stage * kStage, barrier = full + 8 * stage;
          await(empty + 8 * stage, phase);
          expect_bytes(barrier, kStage);
          copy_box(at, a, barrier, k * 64, row);
          if (TURNED) {
            copy_box(at + kHalf, b, barrier, column, k * 64);
            copy_box(at + kHalf + kHalf / 2, b, barrier, column + 64, k * 64);
          } else {
            copy_box(at + kHalf, b, barrier, k * 64, column);
          }
          if (++stage == kStages) { stage = 0; phase ^= 1; }
        }
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
  const int pair = (group - 1) / 2, half = (group - 1) % 2, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % 4;
  const u64 tile_a = tile_at(first + half * (kHalf / 2), 16), tile_b = tile_at(first + kHalf, TURNED ? kHalf / 2 : 16);
  if (pair == 1) asm volatile("bar.arrive 1, 512;" ::: "memory");
  i32 index = 0;
  for (i32 tile = (i32)blockIdx.x; tile < tiles; tile += (i32)gridDim.x, ++index) {
    if ((index & 1) != pair) continue;
    float d[64];
    int stage = (int)((i64)index * blocks % kStages), done = stage;
    u32 phase = (u32)((i64)index * blocks / kStages) & 1;
    asm volatile("bar.sync %0, 512;" :: "r"(1 + pair) : "memory");
    for (i32 k = 0; k < blocks; ++k) {
      await(full + 8 * stage, phase);
      const u64 moved = (u64)(stage * (kStage >> 4));
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      UNROLL for (int n = 0; n < 4; ++n)
        Multiply<FORMAT, TURNED>::add(d, tile_a + moved + n * 2, tile_b + moved + n * (TURNED ? 128 : 2), k + n);
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (k > 0) {
        if (threadIdx.x % 128 == 0) arrive(empty + 8 * done);
        if (++done == kStages) done = 0;
      }
      if (++stage == kStages) { stage = 0; phase ^= 1; }
    }
    asm volatile("bar.arrive %0, 512;" :: "r"(2 - pair) : "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 128 == 0) arrive(empty + 8 * done);
    // A thread has pairs of neighbours; four threads trade theirs, so that each stores eight.
    const i32 row = tile_row(tile) * 128 + half * 64 + warp * 16 + lane / 4, column = tile_column(tile) * 128;
    const int own = lane & 3;
    UNROLL for (int j = 0; j < 16; j += 4) {
      u32 v[2][4];
      UNROLL for (int c = 0; c < 4; ++c) {
        UNROLL for (int r = 0; r < 2; ++r) {
          const i32 at = column + (j + c) * 8 + own * 2, line = row + r * 8;
          // Beyond the edges the last is computed once more: nothing there is stored.
          const i32 inside = at < columns ? at : (i32)columns - 2, last = line < rows ? line : (i32)rows - 1;
          v[r][c] = FORMAT::pair(finish(d[(j + c) * 4 + r * 2], last, inside), finish(d[(j + c) * 4 + r * 2 + 1], last, inside + 1));
        }
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
        if (line < rows && at < columns) *(uint4*)(y + place(line, at)) = make_uint4(w[0], w[1], w[2], w[3]);
      }
    }
  }
}
#endif
)cuda";
}

}  // namespace tenon::codegen::cuda
