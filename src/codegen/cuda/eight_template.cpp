#include "codegen/cuda/eight_template.h"

namespace tenon::codegen::cuda {

std::string_view eight_template() {
  return R"cuda(
// Eight neighbours: read and written in pieces of up to 16 bytes.
template <class T> struct Eight { T at[8]; };
template <class T> FN Eight<T> load_eight(const T* from) {
  constexpr int kPiece = sizeof(T) <= 2 ? 8 : 16 / sizeof(T);
  Eight<T> made;
  UNROLL for (int k = 0; k < 8; k += kPiece) {
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
)cuda";
}

}  // namespace tenon::codegen::cuda
