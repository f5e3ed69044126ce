#include "codegen/cuda/prelude.h"

namespace tenon::codegen::cuda {

std::string_view prelude() {
  return R"cuda(typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define FN __device__ __forceinline__

FN float f32_of(u32 bits) { union { u32 b; float f; } u; u.b = bits; return u.f; }
FN u32 bits_of(float x) { union { u32 b; float f; } u; u.f = x; return u.b; }
FN double f64_of(u64 bits) { union { u64 b; double f; } u; u.b = bits; return u.f; }

#ifdef TENON_EMULATION
FN float from_f16(u16 x) { union { u16 b; _Float16 f; } u; u.b = x; return (float)u.f; }
FN u16 to_f16(float x) { union { u16 b; _Float16 f; } u; u.f = (_Float16)x; return u.b; }
FN u16 to_bf16(float x) {
  u32 bits = bits_of(x);
  if (x != x) return (u16)(bits >> 16 | 0x40);
  return (u16)((bits + (bits >> 16 & 1) + 0x7fff) >> 16);
}
FN float power_of_two(float x) { return exp2f(x); }
FN void wait_for_kernel_before() {}
FN float about_one_over(float x) { return 1.0f / x; }
FN float about_one_over_normal(float x) { return 1.0f / x; }
FN float about_root(float x) { return sqrtf(x); }
FN float within(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
template <class T> FN T nearest(float x) {
  const float low = (T)-1 < (T)0 ? -128.0f : 0.0f;
  return x != x ? (T)0 : (T)(i32)rintf(within(x, low, low + 255.0f));
}
#else
FN float from_f16(u16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
FN u16 to_f16(float x) { u16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y; }
FN u16 to_bf16(float x) { u16 y; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y; }
// Blocks may start while the kernel before still ends (programmatic dependent launch), and let the next one's do so.
FN void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
#endif
}
FN float power_of_two(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// To the last bit or two, in place of subroutines that get it right.
FN float about_one_over(float x) { float y; asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
FN float about_one_over_normal(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
FN float about_root(float x) { float y; asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// NaN stays; zeros of both signs are one.
FN float within(float x, float low, float high) {
  float y;
#if __CUDA_ARCH__ >= 800
  asm("{\n.reg .f32 above;\nmax.NaN.f32 above, %1, %2;\nmin.NaN.f32 %0, above, %3;\n}" : "=f"(y) : "f"(x), "f"(low), "f"(high));
#else
  y = x < low ? low : x > high ? high : x;
#endif
  return y;
}
// The byte that is nearest, to even; of NaN it is 0.
template <class T> FN T nearest(float x) {
  i32 y;
  if ((T)-1 < (T)0) asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(y) : "f"(x));
  else asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(y) : "f"(x));
  return (T)y;
}
#endif
// … to round(x) + zero: adding 1.5 * 2^23 leaves no digits behind the point. Numbers so large that it does not are beyond all bytes.
template <class T> FN T nearest(float x, float zero) {
  const float digits = 12582912.0f;
  return nearest<T>((x + digits) - (digits - zero));
}
// x - zero: from 2^23 on a float has no digits but those of whole numbers.
FN float byte_from(u8 x, float zero) { return f32_of(0x4b000000u | x) - (8388608.0f + zero); }
// x / divisor, to be rounded: right to the last bit where it is 1/4 or more, x held to the ends. With inverse + rest for 1 / divisor the
// first quotient is one of the two next to it, what is left of x is exact, and its part of the quotient is rounded once (Markstein).
FN float rounded_quotient(float x, float lowest, float highest, float divisor, float inverse, float rest) {
  const float held = within(x, lowest, highest), about = fmaf(held, inverse, held * rest);
  return fmaf(fmaf(-about, divisor, held), inverse, about);
}
FN float from_bf16(u16 x) { return f32_of((u32)x << 16); }

// Floats of eight bits and fewer; to nearest, ties to even. FLAGS: 1 negative zero, 2 NaN has a sign, 4 so has infinity.
template <int MANTISSA, int LOWEST, int SIGN, int LARGE, int MOST, int NAN_CODE, int FLAGS>
FN u8 to_narrow(float x, float highest) {
  u32 sign = bits_of(x) >> (31 - SIGN) & (1u << SIGN);
  if (x != x) return (u8)(NAN_CODE | (FLAGS & 2 ? sign : 0));
  float bound = 2 * highest, size = fabsf(x);
  float limited = size < bound ? size : bound;
  u32 least = LOWEST + 127, exponent = bits_of(limited) >> 23;
  if (exponent < least) exponent = least;
  float scale = f32_of((254u + MANTISSA - exponent) << 23);
  u32 code = ((exponent - least) << MANTISSA) + (u32)(i32)rintf(limited * scale);
  if (code > (u32)MOST) return (u8)(LARGE | (FLAGS & 4 ? sign : 0));
  if (code == 0 && !(FLAGS & 1)) return 0;
  return (u8)(code | sign);
}
FN u8 to_f8e8m0(float x, u32 large, u32 nan) {
  u32 bits = bits_of(x);
  if (x != x) return (u8)nan;
  if (fabsf(x) <= 5.877471754111438e-39f) return 0;
  u32 code = (bits >> 23 & 0xff) + ((bits & 0x7fffff) != 0);
  return (u8)(code > 0xfe ? large : code);
}

// Whole numbers wrap.
template <class T> FN T wrapped_add(T a, T b) { return (T)((u64)a + (u64)b); }
template <class T> FN T wrapped_sub(T a, T b) { return (T)((u64)a - (u64)b); }
template <class T> FN T wrapped_mul(T a, T b) { return (T)((u64)a * (u64)b); }
template <class T> FN T divide(T a, T b) {
  if (b == 0) return a;
  if ((T)-1 < (T)0 && b == (T)-1) return (T)(0 - (u64)a);
  return (T)(a / b);
}
template <class T> FN T remainder_of(T a, T b) {
  if (b == 0 || ((T)-1 < (T)0 && b == (T)-1)) return 0;
  return (T)(a % b);
}
template <class T> FN T floor_divide(T a, T b) {
  T q = divide(a, b), r = remainder_of(a, b);
  return (T)-1 < (T)0 && r != 0 && (r < 0) != (b < 0) ? (T)(q - 1) : q;
}
template <class T> FN T modulo(T a, T b) {
  T r = remainder_of(a, b);
  return (T)-1 < (T)0 && r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
template <class T> FN T wrapped_shift_left(T a, T b, int bits) { return (u64)b >= (u64)bits ? (T)0 : (T)((u64)a << (u64)b); }
template <class T> FN T wrapped_shift_right(T a, T b, int bits) {
  bool is_far = (u64)b >= (u64)bits;
  if ((T)-1 < (T)0) return (T)(a >> (is_far ? bits - 1 : (int)b));
  return is_far ? (T)0 : (T)(a >> b);
}
FN i32 dot_of_bytes(i32 a, i32 b) {
#ifdef TENON_EMULATION
  i32 total = 0;
  for (int k = 0; k < 32; k += 8) total += (i32)(unsigned char)(a >> k) * (i32)(signed char)(b >> k);
  return total;
#else
  i32 total;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(total) : "r"(a), "r"(b), "r"(0));
  return total;
#endif
}
template <class T> FN T power(T a, T b) {
  if ((T)-1 < (T)0 && b < 0) return a == 1 ? (T)1 : a == (T)-1 ? ((b & 1) != 0 ? (T)-1 : (T)1) : (T)0;
  T result = 1, factor = a;
  for (u64 left = (u64)b; left != 0; left >>= 1) {
    if ((left & 1) != 0) result = wrapped_mul(result, factor);
    factor = wrapped_mul(factor, factor);
  }
  return result;
}
// x to the power of N quarters, N no multiple of 4, by square roots: the general power takes ten times as long.
template <int N> FN float quarter_power(float x) {
  if (x < -3.4028235e38f) x = -x;  // of -infinity, as of infinity
  const int n = N < 0 ? -N : N;
  const float half = about_root(x);
  float power = n % 4 == 2 ? half : about_root(half);
  if (n % 4 == 3) power *= half;
  for (int k = 0; k < n / 4; ++k) power *= x;
  return N < 0 ? about_one_over(power) : power;
}
// 1 + erf(x), as gelu has it: erfc(a) = t p(t) exp(-a^2) with t = 1 / (1 + 0.33 a), p fitted to 2e-7 of it. Half the
// instructions of erff, and right where that has lost its digits, far below zero.
FN float one_plus_erf(float x) {
  const float a = fabsf(x), t = about_one_over_normal(fmaf(0.33f, a, 1.0f));
  float p = -0.137428880f;
  p = fmaf(p, t, 0.469265133f);
  p = fmaf(p, t, -0.367418379f);
  p = fmaf(p, t, 0.424254954f);
  p = fmaf(p, t, 0.038392015f);
  p = fmaf(p, t, 0.204078406f);
  p = fmaf(p, t, 0.182464033f);
  p = fmaf(p, t, 0.186392605f);
  const float rest = p * t * power_of_two(-1.44269504f * a * a);
  return x < 0 ? rest : 2.0f - rest;
}
// The same for results that are stored in two bytes: 2 / (1 + exp(-p(x))), p odd and fitted so that gelu comes
// within a third of the last digit of an f16. Half the instructions again.
FN float narrow_one_plus_erf(float x) {
  const float s = fminf(x * x, 17.64f);
  float p = 2.18620085e-06f;
  p = fmaf(p, s, -7.07755462e-05f);
  p = fmaf(p, s, 6.83113583e-04f);
  p = fmaf(p, s, 3.82233830e-03f);
  p = fmaf(p, s, -0.300788611f);
  p = fmaf(p, s, -3.25409055f);
  return about_one_over_normal(fmaf(0.5f, power_of_two(p * x), 0.5f));
}
template <int BITS> FN i8 wrap_signed(i64 x) { return (i8)((i64)((u64)x << (64 - BITS)) >> (64 - BITS)); }
template <int BITS> FN u8 wrap_unsigned(i64 x) { return (u8)(x & ((1 << BITS) - 1)); }
template <class T> FN T sign_of(T x) { return x != x ? x : x > 0 ? (T)1 : x < 0 ? (T)-1 : (T)0; }
template <class T> FN T least(T a, T b) { return b != b ? b : b < a ? b : a; }
template <class T> FN T most(T a, T b) { return b != b ? b : b > a ? b : a; }
template <class T> FN T real_modulo(T a, T b) {
  T rest = (T)fmod((double)a, (double)b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
FN i64 whole_of(double x) {
  if (!(x == x)) return 0;
  if (x >= 9223372036854775808.0) return 9223372036854775807LL;
  if (x < -9223372036854775808.0) return -9223372036854775807LL - 1;
  return (i64)x;
}
FN u64 natural_of(double x) {
  if (x >= 18446744073709551616.0) return 18446744073709551615ULL;
  return x >= 0 ? (u64)x : (u64)whole_of(x);
}

// Several neighbours at once.
template <class T, int N> struct __align__(sizeof(T) * N) Pack { T at[N]; };
template <class T, int N> FN Pack<T, N> load_pack(const T* from) { return *(const Pack<T, N>*)from; }
template <class T, int N> FN void store_pack(T* to, const Pack<T, N>& pack) { *(Pack<T, N>*)to = pack; }

// Folds over a group of threads, each the same for any scheduling of them.
struct FoldSum { template <class T> static FN T of(T a, T b) { return (T)(a + b); } };
struct FoldOr { template <class T> static FN T of(T a, T b) { return (T)(a || b); } };
struct FoldProduct { template <class T> static FN T of(T a, T b) { return (T)(a * b); } };
struct FoldMost { template <class T> static FN T of(T a, T b) { return most(a, b); } };
struct FoldLeast { template <class T> static FN T of(T a, T b) { return least(a, b); } };
template <class T> struct Exchanged { typedef T type; };
template <> struct Exchanged<bool> { typedef int type; };
template <> struct Exchanged<i8> { typedef int type; };
template <> struct Exchanged<u8> { typedef int type; };
template <> struct Exchanged<i16> { typedef int type; };
template <> struct Exchanged<u16> { typedef int type; };
template <class T> FN T from_lane(T x, int mask) {
  return (T)__shfl_xor_sync(0xffffffffu, (typename Exchanged<T>::type)x, mask);
}
template <int THREADS> FN void group_sync() {
  if (THREADS == 32) __syncwarp(); else __syncthreads();
}
template <class FOLD, int THREADS, class T> FN T fold_group(T x, void* shared, int lane) {
  for (int mask = 16; mask > 0; mask >>= 1) x = FOLD::of(x, from_lane(x, mask));
  if (THREADS == 32) return x;
  T* partial = (T*)shared;
  if ((lane & 31) == 0) partial[lane >> 5] = x;
  __syncthreads();
  x = partial[0];
  for (int k = 1; k < THREADS / 32; ++k) x = FOLD::of(x, partial[k]);
  __syncthreads();
  return x;
}
// The best value with its place; a place below 0: none yet. The first NaN is the extreme.
template <class T, bool MOST, bool LAST> FN bool is_better(T best, i64 best_place, T next, i64 next_place) {
  if (next_place < 0) return false;
  if (best_place < 0) return true;
  bool best_is_nan = best != best, next_is_nan = next != next;
  if (best_is_nan || next_is_nan) return next_is_nan && (!best_is_nan || next_place < best_place);
  if (best == next) return LAST ? next_place > best_place : next_place < best_place;
  return MOST ? next > best : next < best;
}
template <bool MOST, bool LAST, int THREADS, class T>
FN void fold_places(T& x, i64& place, void* shared, int lane) {
  for (int mask = 16; mask > 0; mask >>= 1) {
    T other = from_lane(x, mask);
    i64 other_place = from_lane(place, mask);
    if (is_better<T, MOST, LAST>(x, place, other, other_place)) { x = other; place = other_place; }
  }
  if (THREADS == 32) return;
  T* values = (T*)shared;
  i64* places = (i64*)((char*)shared + 32 * 8);
  if ((lane & 31) == 0) { values[lane >> 5] = x; places[lane >> 5] = place; }
  __syncthreads();
  x = values[0];
  place = places[0];
  for (int k = 1; k < THREADS / 32; ++k) {
    if (is_better<T, MOST, LAST>(x, place, values[k], places[k])) { x = values[k]; place = places[k]; }
  }
  __syncthreads();
}
)cuda";
}

std::string_view device_emulation() {
  return R"emulation(#define TENON_EMULATION 1
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>
#define __device__
#define __global__
#define __forceinline__ inline
#define __restrict__
#define __shared__ static
#define __constant__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
struct Dim3 { unsigned x; };
static Dim3 threadIdx, blockIdx, blockDim, gridDim;

// Threads of a block, or of the blocks of a cluster, are fibres that change places at barriers. A fibre serves one block
// after another, and goes on by a jump: a change of context asks the system each time.
namespace emulated {
enum { kNothing, kBlock, kWarp, kCluster, kCondition };  // what a thread waits for
typedef bool (*Condition)(const void*, unsigned);
struct Fibre {
  jmp_buf place;
  std::vector<char> stack;
  bool is_started = false, is_done = false;
  int waits_for = kNothing;
  Condition condition = nullptr;
  const void* subject = nullptr;
  unsigned value = 0;
};
static std::vector<Fibre>* fibres;
static jmp_buf scheduler;
static unsigned current, block_threads;  // which fibre; of a block
static void (*body)();
static bool (*idle)();  // does something that may take as long as it likes; whether there was any
static bool is_stuck;   // threads wait for what never comes
static unsigned long long lanes[16 * 1024];
static void leave() { if (_setjmp((*fibres)[current].place) == 0) _longjmp(scheduler, 1); }
static void run_one() {
  for (;;) {
    body();
    (*fibres)[current].is_done = true;
    leave();
  }
}
static void enter(Fibre& fibre) {
  if (_setjmp(scheduler) != 0) return;
  if (fibre.is_started) _longjmp(fibre.place, 1);
  fibre.is_started = true;
  fibre.stack.resize(1 << 16);
  static ucontext_t first;
  getcontext(&first);
  first.uc_stack.ss_sp = fibre.stack.data();
  first.uc_stack.ss_size = fibre.stack.size();
  first.uc_link = nullptr;
  makecontext(&first, run_one, 0);
  setcontext(&first);
}
// Waits until all threads of the block, of the warp or of the cluster have come here.
static void wait(int kind) {
  (*fibres)[current].waits_for = kind;
  leave();
}
static void wait_until(Condition condition, const void* subject, unsigned value) {
  Fibre& own = (*fibres)[current];
  own.condition = condition;
  own.subject = subject;
  own.value = value;
  wait(kCondition);
}
// Barriers by number, at which so many threads of a block meet; some only pass by.
struct Meeting { unsigned came, round; };
static Meeting meetings[16][16];
static bool is_over(const void* meeting, unsigned round) { return ((const Meeting*)meeting)->round != round; }
static void meet(int number, unsigned threads, bool waits) {
  Meeting& own = meetings[current / block_threads][number];
  const unsigned round = own.round;
  if (++own.came == threads) { own.came = 0; ++own.round; }
  if (waits && own.round == round) wait_until(is_over, &own, round);
}
// Lets go of fibres that all wait for the same; whether there were any.
static bool release(std::vector<Fibre>& all, unsigned first, unsigned count, int kind) {
  bool is_any = false;
  for (unsigned t = first; t < first + count; ++t) {
    if (!all[t].is_done && all[t].waits_for != kind) return false;
    is_any |= !all[t].is_done;
  }
  for (unsigned t = first; t < first + count; ++t) all[t].waits_for = kNothing;
  return is_any;
}
static void run_blocks(unsigned first, unsigned blocks, unsigned threads) {
  static std::vector<Fibre> all;
  const unsigned count = blocks * threads;
  all.resize(count);
  fibres = &all;
  block_threads = threads;
  std::memset(meetings, 0, sizeof meetings);
  for (Fibre& fibre : all) {
    fibre.is_done = false;
    fibre.waits_for = kNothing;
  }
  for (bool is_left = true; is_left;) {
    bool moved = false;
    for (unsigned t = 0; t < count; ++t) {
      Fibre& fibre = all[t];
      if (fibre.is_done) continue;
      if (fibre.waits_for == kCondition && fibre.condition(fibre.subject, fibre.value)) fibre.waits_for = kNothing;
      if (fibre.waits_for != kNothing) continue;
      current = t;
      threadIdx.x = t % threads;
      blockIdx.x = first + t / threads;
      enter(fibre);
      moved = true;
    }
    for (unsigned block = 0; block < count; block += threads) {
      for (unsigned warp = 0; warp < threads; warp += 32)
        moved |= release(all, block + warp, threads - warp < 32 ? threads - warp : 32, kWarp);
      moved |= release(all, block, threads, kBlock);
    }
    moved |= release(all, 0, count, kCluster);
    is_left = false;
    for (Fibre& fibre : all) is_left |= !fibre.is_done;
    if (is_left && !moved && !(idle != nullptr && idle())) {
      is_stuck = true;
      all.clear();  // where they stand is left for good
      return;
    }
  }
}
}  // namespace emulated
static inline void __syncthreads() { emulated::wait(emulated::kBlock); }
static inline void __syncwarp() { emulated::wait(emulated::kWarp); }
template <class T> static inline T from_thread(T x, unsigned thread) {
  std::memcpy(&emulated::lanes[emulated::current], &x, sizeof(T));
  emulated::wait(emulated::kWarp);
  T other;
  std::memcpy(&other, &emulated::lanes[thread], sizeof(T));
  emulated::wait(emulated::kWarp);
  return other;
}
template <class T> static inline T __shfl_xor_sync(unsigned, T x, int mask) { return from_thread(x, emulated::current ^ (unsigned)mask); }
template <class T> static inline T __shfl_sync(unsigned, T x, int lane) { return from_thread(x, (emulated::current & ~31u) + (unsigned)lane); }
)emulation";
}

}  // namespace tenon::codegen::cuda
