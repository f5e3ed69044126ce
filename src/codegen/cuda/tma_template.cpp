#include "codegen/cuda/tma_template.h"

namespace tenon::codegen::cuda {

// TMA, mbarrier and wgmma instructions, one function each. The emulation defines functions of the
// same names.
std::string_view tma_template() {
  return R"cuda(
#ifndef TENON_EMULATION
struct __align__(64) TensorMap { u64 words[16]; };
#define TENSOR_MAPS , const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b
#define TOGETHER(blocks) __cluster_dims__(blocks, 1, 1)
#define SHARED_TILES(name) extern __shared__ __align__(1024) u8 name[]
#define SHARED_BARRIERS(name, count) __shared__ __align__(8) u64 name[count]
FN void begin_barrier(u32 at, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(count) : "memory"); }
FN void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory"); }
FN void expect_bytes(u32 at, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(bytes) : "memory"); }
FN void arrive(u32 at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory"); }
FN void await(u32 at, u32 parity) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
               :: "r"(at), "r"(parity) : "memory");
}
FN void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
FN void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               :: "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}
FN void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 c, i32 x, i32 y, i32 n) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               :: "r"(to), "l"(map), "r"(barrier), "r"(c), "r"(x), "r"(y), "r"(n) : "memory");
}
// As many pixels as the map says, those that a window's first place comes to; of each the place of the window that is (dx, dy) further.
FN void copy_pixels(u32 to, const TensorMap* map, u32 barrier, i32 c, i32 x, i32 y, i32 n, i32 dx, i32 dy) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};"
               :: "r"(to), "l"(map), "r"(barrier), "r"(c), "r"(x), "r"(y), "r"(n), "h"((u16)dx), "h"((u16)dy) : "memory");
}
// The same into several blocks of a cluster, each bit one of them: to the same place, with the same barrier told in each.
FN void copy_pixels_to(u32 blocks, u32 to, const TensorMap* map, u32 barrier, i32 c, i32 x, i32 y, i32 n, i32 dx, i32 dy) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;"
               :: "r"(to), "l"(map), "r"(barrier), "r"(c), "r"(x), "r"(y), "r"(n), "h"((u16)dx), "h"((u16)dy), "h"((u16)blocks) : "memory");
}
FN void show_stores_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
FN void begin_sums() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
FN void commit_sums() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> FN void await_sums() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LEFT) : "memory"); }
template <int THREADS> FN void meet(int number) { asm volatile("bar.sync %0, %1;" :: "r"(number), "n"(THREADS) : "memory"); }
template <int THREADS> FN void pass(int number) { asm volatile("bar.arrive %0, %1;" :: "r"(number), "n"(THREADS) : "memory"); }
template <int COUNT> FN void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT)); }
template <int COUNT> FN void leave_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT)); }
FN void pass_cluster() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
FN void await_cluster() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
FN u32 address_in(u32 address, u32 block) {
  u32 there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}
FN void arrive_in(u32 address) { asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(address) : "memory"); }
// Four numbers to another block, whose barrier is told of their bytes.
template <class T> FN void send_four(u32 address, const T* from, u32 barrier) {
  const u32* const bits = (const u32*)from;
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];"
               :: "r"(address), "r"(bits[0]), "r"(bits[1]), "r"(bits[2]), "r"(bits[3]), "r"(barrier) : "memory");
}
FN void await_sent(u32 at) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0;\n@!done bra again;\n}" :: "r"(at) : "memory");
}
FN void load_two(u32* to, u32 address) { asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(address) : "memory"); }
FN void load_four(u32* to, u32 address) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
}
FN void store_four(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" :: "r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
FN u32 as_tf32(u32 bits) {
  u32 rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
  return rounded;
}
#endif
// Where wgmma finds a tile of 128-byte rows: `far` from one group of 64 columns to the next, where
// those lie side by side; 1024 bytes from eight rows to the next.
FN u64 tile_at(u32 address, u32 far) { return (u64)((address & 0x3ffff) >> 4) | (u64)(far >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62; }
)cuda";
}

}  // namespace tenon::codegen::cuda
