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
#ifdef TENON_EMULATION
template <class FORMAT, int TILE_ROWS, int TILE_COLUMNS, int CLUSTER, class FINISH, class PLACE>
FN void convolution_tile(const u16* x, const u16* w, u16* y, const Convolution s, const FINISH& finish, const PLACE& place) {
  const i64 pixels = (i64)s.batch * s.rows * s.columns, threads = (i64)gridDim.x * blockDim.x;
  for (i64 e = (i64)blockIdx.x * blockDim.x + threadIdx.x; e < pixels * s.outputs; e += threads) {
    const i64 pixel = e / s.outputs, k = e % s.outputs, column = pixel % s.columns, row = pixel / s.columns % s.rows, n = pixel / s.columns / s.rows;
    float sum = 0;
    for (i64 r = 0; r < s.window_rows; ++r)
      for (i64 q = 0; q < s.window_columns; ++q) {
        const i64 v = row * s.row_stride + r * s.row_dilation - s.rows_before, u = column * s.column_stride + q * s.column_dilation - s.columns_before;
        if (v < 0 || v >= s.image_rows || u < 0 || u >= s.image_columns) continue;
        for (i64 c = 0; c < s.channels; ++c)
          sum += FORMAT::wide(x[((n * s.image_rows + v) * s.image_columns + u) * s.channels + c]) *
                 FORMAT::wide(w[((k * s.window_rows + r) * s.window_columns + q) * s.channels + c]);
      }
    y[place((i32)pixel, (i32)k)] = (u16)FORMAT::pair(finish(sum, (i32)pixel, (i32)k), 0);
  }
}
#else
#define MULTIPLY_64X64(TYPE)                                                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " {"                     \
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "             \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"     \
               "}, %32, %33, 1, 1, 1, 0, 0;"                                                        \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
                 "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) \
               : "l"(a), "l"(b))
template <class FORMAT> struct MultiplySmall;
template <> struct MultiplySmall<FormatF16> { static FN void add(float* d, u64 a, u64 b) { MULTIPLY_64X64("f16"); } };
template <> struct MultiplySmall<FormatBf16> { static FN void add(float* d, u64 a, u64 b) { MULTIPLY_64X64("bf16"); } };
template <class FORMAT, int TILE_ROWS, int TILE_COLUMNS, int CLUSTER, class FINISH, class PLACE>
FN void convolution_tile(const TensorMap* x, const TensorMap* w, u16* y, const Convolution s, const FINISH& finish, const PLACE& place) {
  constexpr int kStages = 6, kHalf = 64 * 64 * 2, kStage = 2 * kHalf, kPixels = TILE_ROWS * TILE_COLUMNS, kPitch = 66;
  extern __shared__ __align__(1024) u8 stages[];
  __shared__ __align__(8) u64 barriers[2 * kStages];
  const u32 first = (shared_address(stages) + 1023) & ~1023u, full = shared_address(barriers), empty = full + 8 * kStages;
  if (threadIdx.x == 128) {
    asm volatile("prefetch.tensormap [%0];" :: "l"(x) : "memory");
    asm volatile("prefetch.tensormap [%0];" :: "l"(w) : "memory");
  }
  if (threadIdx.x == 0) {
    for (int k = 0; k < kStages; ++k) { begin_barrier(full + 8 * k, 1); begin_barrier(empty + 8 * k, 4); }
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  wait_for_kernel_before();
  const int lane = (int)threadIdx.x % 32, warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
  const i32 rank = (i32)blockIdx.x % CLUSTER, tile = (i32)blockIdx.x / CLUSTER, beside = s.outputs / 64;
  const i32 across = (s.columns + TILE_COLUMNS - 1) / TILE_COLUMNS, down = (s.rows + TILE_ROWS - 1) / TILE_ROWS;
  const i32 output = tile % beside * 64, column = tile / beside % across * TILE_COLUMNS, row = tile / beside / across % down * TILE_ROWS,
            image = tile / beside / across / down;
  const i32 deep = s.channels / 64, blocks = s.window_rows * s.window_columns * deep, begin = blocks * rank / CLUSTER, end = blocks * (rank + 1) / CLUSTER;
  float* const sums = (float*)(stages + (first - shared_address(stages)));
  if (warp == 4) {
    if (lane == 0) {
      int stage = 0;
      u32 phase = 1;
      for (i32 k = begin; k < end; ++k) {
        const i32 channel = k % deep * 64, q = k / deep % s.window_columns, r = k / deep / s.window_columns;
        const u32 at = first + stage * kStage, barrier = full + 8 * stage;
        await(empty + 8 * stage, phase);
        expect_bytes(barrier, kPixels * 128 + kHalf);
        copy_box(at, x, barrier, channel, column * s.column_stride + q * s.column_dilation - s.columns_before,
                 row * s.row_stride + r * s.row_dilation - s.rows_before, image);
        copy_box(at + kHalf, w, barrier, k * 64, output);
        if (++stage == kStages) { stage = 0; phase ^= 1; }
      }
    }
    __syncwarp();
    asm volatile("bar.sync 1, 160;" ::: "memory");
  } else {
    float d[32];
    UNROLL for (int k = 0; k < 32; ++k) d[k] = 0;
    int stage = 0, done = 0;
    u32 phase = 0;
    for (i32 k = begin; k < end; ++k) {
      await(full + 8 * stage, phase);
      const u64 a = tile_at(first + stage * kStage, 16), b = tile_at(first + stage * kStage + kHalf, 16);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      UNROLL for (int n = 0; n < 4; ++n) MultiplySmall<FORMAT>::add(d, a + 2 * n, b + 2 * n);
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (k > begin) {
        if (lane == 0) arrive(empty + 8 * done);
        if (++done == kStages) done = 0;
      }
      if (++stage == kStages) { stage = 0; phase ^= 1; }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("bar.sync 1, 160;" ::: "memory");  // all stages are read: sums take their place
    UNROLL for (int k = 0; k < 16; ++k) {
      const int line = warp * 16 + lane / 4 + k % 2 * 8, at = k / 2 * 8 + lane % 4 * 2;
      *(float2*)(sums + line * kPitch + at) = make_float2(d[k / 2 * 4 + k % 2 * 2], d[k / 2 * 4 + k % 2 * 2 + 1]);
    }
  }
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
  const i32 upper = kPixels * rank / CLUSTER, lower = kPixels * (rank + 1) / CLUSTER;
  u32 others[CLUSTER];
  UNROLL for (int k = 0; k < CLUSTER; ++k) asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(others[k]) : "r"(shared_address(sums)), "r"(k));
  for (i32 e = (i32)threadIdx.x; e < (lower - upper) * 32; e += (i32)blockDim.x) {
    const i32 line = upper + e / 32, at = e % 32 * 2, v = row + line / TILE_COLUMNS, u = column + line % TILE_COLUMNS;
    if (v >= s.rows || u >= s.columns) continue;
    float low = 0, high = 0;
    UNROLL for (int k = 0; k < CLUSTER; ++k) {
      float a, b;
      asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(others[k] + (line * kPitch + at) * 4) : "memory");
      low += a;
      high += b;
    }
    const i32 pixel = (image * s.rows + v) * s.columns + u, k = output + at;
    *(u32*)(y + place(pixel, k)) = FORMAT::pair(finish(low, pixel, k), finish(high, pixel, k + 1));
  }
  // None ends while another reads its sums.
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
#endif
)cuda";
}

}  // namespace tenon::codegen::cuda
