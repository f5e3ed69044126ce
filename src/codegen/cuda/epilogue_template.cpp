#include "codegen/cuda/epilogue_template.h"

namespace tenon::codegen::cuda {

std::string_view epilogue_template() {
  return R"cuda(
#ifdef TENON_EMULATION
static inline u32 __byte_perm(u32 a, u32 b, u32 places) {
  const u64 all = (u64)b << 32 | a;
  u32 made = 0;
  for (int k = 0; k < 4; ++k) made |= (u32)(all >> (places >> 4 * k & 7) * 8 & 0xff) << 8 * k;
  return made;
}
#endif
// Eight neighbours: read and written in pieces of up to 16 bytes.
template <class T, int BYTES = sizeof(T)> struct Eight { T at[8]; };
template <class T> struct Eight<T, 1> { union { T at[8]; u32 words[2]; }; };
template <class T> FN Eight<T> load_eight(const T* from) {
  constexpr int kPiece = sizeof(T) <= 2 ? 8 : 16 / sizeof(T);
  Eight<T> made;
  if constexpr (sizeof(T) == 1) {
    const Pack<u32, 2> piece = load_pack<u32, 2>((const u32*)from);
    made.words[0] = piece.at[0];
    made.words[1] = piece.at[1];
  } else UNROLL for (int k = 0; k < 8; k += kPiece) {
    const Pack<T, kPiece> piece = load_pack<T, kPiece>(from + k);
    UNROLL for (int n = 0; n < kPiece; ++n) made.at[k + n] = piece.at[n];
  }
  return made;
}
template <class FORMAT, class RESULT, class VALUE> FN void store_eight(RESULT* to, const Eight<VALUE>& numbers) {
  if constexpr (sizeof(RESULT) == 2) {
    Pack<u32, 4> pairs;
    UNROLL for (int k = 0; k < 4; ++k) pairs.at[k] = FORMAT::pair(numbers.at[2 * k], numbers.at[2 * k + 1]);
    store_pack<u32, 4>((u32*)to, pairs);
  } else {
    constexpr int kPiece = sizeof(RESULT) == 1 ? 8 : 4;
    UNROLL for (int k = 0; k < 8; k += kPiece) {
      Pack<RESULT, kPiece> piece;
      UNROLL for (int n = 0; n < kPiece; ++n) piece.at[n] = (RESULT)numbers.at[k + n];
      store_pack<RESULT, kPiece>(to + k, piece);
    }
  }
}
// Four threads have four numbers each: then each has one of every thread, those of its own place.
template <class T> FN void trade(T* w, int lane) {
  T x = lane & 1 ? w[0] : w[1], z = lane & 1 ? w[2] : w[3];
  x = __shfl_xor_sync(~0u, x, 1);
  z = __shfl_xor_sync(~0u, z, 1);
  if (lane & 1) { w[0] = x; w[2] = z; } else { w[1] = x; w[3] = z; }
  x = lane & 2 ? w[0] : w[2];
  z = lane & 2 ? w[1] : w[3];
  x = __shfl_xor_sync(~0u, x, 2);
  z = __shfl_xor_sync(~0u, z, 2);
  if (lane & 2) { w[0] = x; w[1] = z; } else { w[2] = x; w[3] = z; }
}
// The same with pairs of bytes, two to a word.
FN void trade_pairs(u32* w, int lane) {
  const bool is_odd = lane & 1, is_upper = lane & 2;
  const u32 own = is_upper ? w[1] : w[0], other = __shfl_xor_sync(~0u, is_upper ? w[0] : w[1], 2);
  const u32 low = is_upper ? 0x1054 : 0x5410, high = is_upper ? 0x3276 : 0x7632;
  const u32 kept = __byte_perm(own, other, is_odd ? high : low);
  const u32 given = __shfl_xor_sync(~0u, __byte_perm(own, other, is_odd ? low : high), 1);
  w[0] = __byte_perm(kept, given, is_odd ? 0x1054 : 0x5410);
  w[1] = __byte_perm(kept, given, is_odd ? 0x3276 : 0x7632);
}
// Eight numbers of each of four threads, two and two: those of the same place in every thread, or back again.
template <class T> FN void trade_eight(Eight<T>& numbers, int lane) {
  if constexpr (sizeof(T) == 1) {
    trade_pairs(numbers.words, lane);
  } else {
    UNROLL for (int c = 0; c < 2; ++c) {
      T four[4] = {numbers.at[c], numbers.at[2 + c], numbers.at[4 + c], numbers.at[6 + c]};
      trade(four, lane);
      UNROLL for (int k = 0; k < 4; ++k) numbers.at[2 * k + c] = four[k];
    }
  }
}
// How what follows reads eight columns: side by side, or two of each eight.
struct LoadNeighbours {
  template <class T> FN Eight<T> operator()(const T* from) const { return load_eight<T>(from); }
};
struct LoadPairs {
  i32 steps[4];
  template <class T> FN Eight<T> operator()(const T* from) const {
    Eight<T> made;
    UNROLL for (int k = 0; k < 4; ++k) {
      const Pack<T, 2> pair = load_pack<T, 2>(from + steps[k]);
      made.at[2 * k] = pair.at[0];
      made.at[2 * k + 1] = pair.at[1];
    }
    return made;
  }
};
)cuda";
}

}  // namespace tenon::codegen::cuda
