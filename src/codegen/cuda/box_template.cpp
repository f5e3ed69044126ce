#include "codegen/cuda/box_template.h"

namespace tenon::codegen::cuda {

std::string_view box_template() {
  return R"cuda(
#ifdef TENON_EMULATION
#define TENSOR_MAPS
#define BOXES(map, at) at
#define TOGETHER(blocks)
#else
struct __align__(64) TensorMap { u64 words[16]; };
#define TENSOR_MAPS , const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b
#define BOXES(map, at) &map
#define TOGETHER(blocks) __cluster_dims__(blocks, 1, 1)
FN void begin_barrier(u32 at, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(count) : "memory"); }
FN void expect_bytes(u32 at, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(bytes) : "memory"); }
FN void arrive(u32 at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory"); }
FN void await(u32 at, u32 parity) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
               :: "r"(at), "r"(parity) : "memory");
}
FN void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               :: "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}
FN void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 c, i32 x, i32 y, i32 n) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               :: "r"(to), "l"(map), "r"(barrier), "r"(c), "r"(x), "r"(y), "r"(n) : "memory");
}
// Where wgmma finds a tile of 128-byte rows: `far` from one group of 64 columns to the next, where
// those lie side by side; 1024 bytes from eight rows to the next.
FN u64 tile_at(u32 address, u32 far) { return (u64)((address & 0x3ffff) >> 4) | (u64)(far >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62; }
#endif
)cuda";
}

}  // namespace tenon::codegen::cuda
