#include "codegen/cuda/mma_sync_template.h"

namespace tenon::codegen::cuda {

std::string_view mma_sync_template() {
  return R"cuda(
#ifdef TENON_EMULATION
namespace emulated {
// By thread of all blocks of a cluster.
static const u16* addresses[16 * 1024];
static u32 fragments[16 * 1024][6];
}
template <bool TURNED> FN void load_matrices(u32* to, const u16* row) {
  const unsigned self = emulated::current, warp = self & ~31u, lane = self & 31;
  emulated::addresses[self] = row;
  emulated::wait(emulated::kWarp);
  for (int m = 0; m < 4; ++m) {
    const u16* const* rows = emulated::addresses + warp + m * 8;
    u16 low, high;
    if (TURNED) { low = rows[lane % 4 * 2][lane / 4]; high = rows[lane % 4 * 2 + 1][lane / 4]; }
    else { low = rows[lane / 4][lane % 4 * 2]; high = rows[lane / 4][lane % 4 * 2 + 1]; }
    to[m] = (u32)low | (u32)high << 16;
  }
  emulated::wait(emulated::kWarp);
}
namespace emulated {
// Copies end when somebody waits for them, no sooner.
struct Ahead { u16* to; const u16* from; };
struct Asked { std::vector<Ahead> copies; std::vector<size_t> groups; };
static Asked asked[16 * 1024];
}
FN void copy_ahead(u16* to, const u16* from, bool is_inside) { emulated::asked[emulated::current].copies.push_back({to, is_inside ? from : nullptr}); }
FN void end_copies() { emulated::Asked& own = emulated::asked[emulated::current]; own.groups.push_back(own.copies.size()); }
template <int LEFT> FN void await_copies() {
  emulated::Asked& own = emulated::asked[emulated::current];
  if (own.groups.size() <= LEFT) return;
  const size_t done = own.groups[own.groups.size() - LEFT - 1];
  for (size_t n = 0; n < done; ++n)
    for (int k = 0; k < 8; ++k) own.copies[n].to[k] = own.copies[n].from != nullptr ? own.copies[n].from[k] : (u16)0;
  own.copies.erase(own.copies.begin(), own.copies.begin() + (long)done);
  own.groups.erase(own.groups.begin(), own.groups.end() - LEFT);
  for (size_t& group : own.groups) group -= done;
}
#define UNROLL
#define ROLLED
#else
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
FN u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
template <bool TURNED> FN void load_matrices(u32* to, const u16* row) {
  if (TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(row)) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared_address(row)) : "memory");
}
FN void copy_ahead(u16* to, const u16* from, bool is_inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(shared_address(to)), "l"(from), "r"(is_inside ? 16 : 0) : "memory");
}
FN void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> FN void await_copies() { asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory"); }
#endif
struct FormatF16 {
  typedef u16 type;
  typedef float sum;
  static FN float wide(u16 x) { return from_f16(x); }
#ifdef TENON_EMULATION
  static FN u32 pair(float low, float high) { return (u32)to_f16(low) | (u32)to_f16(high) << 16; }
#else
  static FN u32 pair(float low, float high) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
  }
  static FN void multiply(float* d, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#endif
};
struct FormatBf16 {
  typedef u16 type;
  typedef float sum;
  static FN float wide(u16 x) { return from_bf16(x); }
#ifdef TENON_EMULATION
  static FN u32 pair(float low, float high) { return (u32)to_bf16(low) | (u32)to_bf16(high) << 16; }
#else
  static FN u32 pair(float low, float high) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
  }
  static FN void multiply(float* d, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#endif
};
struct FormatTf32 {
  typedef float type;
  typedef float sum;
  static FN float wide(float x) { return x; }
#ifndef TENON_EMULATION
  static FN void multiply(float* d, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#endif
};
#define MULTIPLY_BYTES(types) \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." types ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
template <bool IS_A_SIGNED, bool IS_B_SIGNED> struct FormatBytes {
  typedef u8 type;
  typedef i32 sum;
#ifndef TENON_EMULATION
  static FN void multiply(i32* d, const u32* a, const u32* b) {
    if (IS_A_SIGNED && IS_B_SIGNED) MULTIPLY_BYTES("s8.s8");
    else if (IS_A_SIGNED) MULTIPLY_BYTES("s8.u8");
    else if (IS_B_SIGNED) MULTIPLY_BYTES("u8.s8");
    else MULTIPLY_BYTES("u8.u8");
  }
#endif
};
#ifdef TENON_EMULATION
namespace emulated {
template <class FORMAT, bool IS_B> struct Widened { static float of(typename FORMAT::type x) { return FORMAT::wide(x); } };
template <bool IS_A_SIGNED, bool IS_B_SIGNED, bool IS_B> struct Widened<FormatBytes<IS_A_SIGNED, IS_B_SIGNED>, IS_B> {
  static i32 of(u8 x) { return (IS_B ? IS_B_SIGNED : IS_A_SIGNED) ? (i32)(i8)x : (i32)x; }
};
template <class FORMAT, bool IS_B> static typename FORMAT::sum number_of(u32 word, int place) {
  typename FORMAT::type number;
  std::memcpy(&number, (const u8*)&word + place * sizeof number, sizeof number);
  return Widened<FORMAT, IS_B>::of(number);
}
}
// 16 rows by 8 columns, 32 bytes of each: of 16 of those four threads have a word each.
template <class FORMAT> FN void multiply(typename FORMAT::sum* sums, const u32* a, const u32* b) {
  constexpr int kWord = 4 / sizeof(typename FORMAT::type), kHalf = 4 * kWord;
  const unsigned self = emulated::current, warp = self & ~31u, lane = self & 31;
  for (int k = 0; k < 4; ++k) emulated::fragments[self][k] = a[k];
  for (int k = 0; k < 2; ++k) emulated::fragments[self][4 + k] = b[k];
  emulated::wait(emulated::kWarp);
  for (int c = 0; c < 4; ++c) {
    const int row = lane / 4 + c / 2 * 8, column = lane % 4 * 2 + c % 2;
    for (int k = 0; k < 2 * kHalf; ++k) {
      const u32 x = emulated::fragments[warp + row % 8 * 4 + k % kHalf / kWord][row / 8 + k / kHalf * 2];
      const u32 y = emulated::fragments[warp + column * 4 + k % kHalf / kWord][4 + k / kHalf];
      sums[c] += emulated::number_of<FORMAT, false>(x, k % kWord) * emulated::number_of<FORMAT, true>(y, k % kWord);
    }
  }
  emulated::wait(emulated::kWarp);
}
#else
template <class FORMAT> FN void multiply(typename FORMAT::sum* sums, const u32* a, const u32* b) { FORMAT::multiply(sums, a, b); }
#endif
)cuda";
}

}  // namespace tenon::codegen::cuda
