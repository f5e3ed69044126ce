#include "codegen/cuda/tma_template.h"

namespace tenon::codegen::cuda {

// Emulates TMA copies and asynchronous wgmma adversarially: a copy may complete immediately or only
// when no thread can continue, and accumulators are updated only at a wait. A kernel that misses a
// wait reads wrong numbers. The choice of early copies is deterministic.
std::string_view tma_emulation() {
  return R"cuda(
struct float2 { float x, y; };
static inline i32 min(i32 a, i32 b) { return a < b ? a : b; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
// What `cuTensorMapEncodeTiled` or, with corners, `cuTensorMapEncodeIm2col` is told, axes innermost first.
struct TensorMap { u64 address; u32 axes, element_bytes; u64 extents[5], pitch_bytes[4]; u16 box[5], steps[5]; i8 has_corners, lower[2], upper[2]; };
static_assert(sizeof(TensorMap) <= 128, "as large as a real one");
#define TENSOR_MAPS , const TensorMap& map_a, const TensorMap& map_b
#define TOGETHER(blocks)
#define SHARED_TILES(name) u8* const name = emulated::shared_memory() + emulated::kTiles
#define SHARED_BARRIERS(name, count) u64* const name = (u64*)(emulated::shared_memory() + emulated::kBarriers)
namespace emulated {
// Tiles begin where they need not: at no multiple of what they must be aligned to.
enum { kMostBlocks = 16, kBarriers = 64, kTiles = 1024 + 16, kBlockBytes = 1 << 18, kBlockBits = 24 };
static u8 memory[kMostBlocks][kBlockBytes];
static u8* shared_memory() { return memory[current / block_threads]; }
static u8* at_address(u32 address) {
  const u32 block = address >> kBlockBits;
  return (block == 0 ? shared_memory() : memory[block - 1]) + (address & ((1u << kBlockBits) - 1));
}
struct Barrier { i32 bytes; u8 count, missing; u16 phase; };
static Barrier& barrier_at(u32 address) { return *(Barrier*)at_address(address); }
static void settle(Barrier& barrier) {
  if (barrier.missing != 0 || barrier.bytes != 0) return;
  barrier.missing = barrier.count;
  ++barrier.phase;
}
static bool is_past(const void* barrier, u32 parity) { return (((const Barrier*)barrier)->phase & 1) != parity; }
// Of a box or of pixels, into some blocks (a bit each); without a map, of four numbers.
struct Copy { const TensorMap* map; i32 at[5]; u32 blocks, to, barrier; i32 window[2]; u32 numbers[4]; };
static std::vector<Copy> copies;  // that have not ended
// A line to shared memory: 16 bytes change places within 128, by the row of eight.
static void put_line(const Copy& copy, u8* own, u32 to, bool is_inside, const u8* from) {
  const TensorMap& map = *copy.map;
  for (u32 byte = 0; byte < map.box[0] * map.element_bytes; ++byte) {
    const i64 place = copy.at[0] + (i64)(byte / map.element_bytes);
    const u32 address = to + byte;
    own[address ^ ((address >> 7 & 7) << 4)] =
        is_inside && place >= 0 && place < (i64)map.extents[0] ? from[place * map.element_bytes + byte % map.element_bytes] : 0;
  }
}
static u32 put_pixels(const Copy& copy, u8* own) {
  const TensorMap& map = *copy.map;
  i64 at[3] = {copy.at[1], copy.at[2], copy.at[3]};
  for (u32 pixel = 0; pixel < map.box[1]; ++pixel) {
    bool is_inside = true;
    const u8* from = (const u8*)map.address;
    for (int axis = 0; axis < 3; ++axis) {
      const i64 place = at[axis] + (axis < 2 ? copy.window[axis] : 0);
      is_inside = is_inside && place >= 0 && place < (i64)map.extents[axis + 1];
      from += place * (i64)map.pitch_bytes[axis];
    }
    put_line(copy, own, copy.to + pixel * map.box[0] * map.element_bytes, is_inside, from);
    for (int axis = 0; axis < 3; ++axis) {
      at[axis] += map.steps[axis + 1];
      if (axis == 2 || at[axis] <= (i64)map.extents[axis + 1] - 1 + map.upper[axis]) break;
      at[axis] = map.lower[axis];
    }
  }
  return map.box[1];
}
static u32 put_box(const Copy& copy, u8* own) {
  const TensorMap& map = *copy.map;
  u32 to = copy.to, count = 1;
  const u32 line = map.box[0] * map.element_bytes;
  for (u32 axis = 1; axis < map.axes; ++axis) count *= (map.box[axis] + map.steps[axis] - 1) / map.steps[axis];
  for (u32 e = 0; e < count; ++e, to += line) {
    u32 rest = e;
    bool is_inside = true;
    const u8* from = (const u8*)map.address;
    for (u32 axis = 1; axis < map.axes; ++axis) {
      const u32 places = (map.box[axis] + map.steps[axis] - 1) / map.steps[axis];
      const i64 place = copy.at[axis] + (i64)(rest % places) * map.steps[axis];
      rest /= places;
      is_inside = is_inside && place >= 0 && place < (i64)map.extents[axis];
      from += place * (i64)map.pitch_bytes[axis - 1];
    }
    put_line(copy, own, to, is_inside, from);
  }
  return count;
}
static void end_copy(const Copy& copy) {
  for (u32 block = 0; block < kMostBlocks; ++block) {
    if (!(copy.blocks >> block & 1)) continue;
    u8* const own = memory[block];
    u32 bytes = sizeof copy.numbers;
    if (copy.map == nullptr) {
      std::memcpy(own + copy.to, copy.numbers, bytes);
    } else {
      bytes = (copy.map->has_corners ? put_pixels(copy, own) : put_box(copy, own)) * copy.map->box[0] * copy.map->element_bytes;
    }
    Barrier& barrier = *(Barrier*)(own + copy.barrier);
    barrier.bytes -= (i32)bytes;
    settle(barrier);
  }
}
static bool end_a_copy() {
  if (copies.empty()) return false;
  const Copy copy = copies.front();
  copies.erase(copies.begin());
  end_copy(copy);
  return true;
}
static void begin_copy(const Copy& copy) {
  static u32 random = 1;
  idle = end_a_copy;
  random = random * 1664525u + 1013904223u;
  if (random >> 31) end_copy(copy); else copies.push_back(copy);
}
// Sums of a group of threads: a thread's own part of each.
struct Sum { void* d; u64 a, b; float rows[32]; bool has_rows, adds; int columns; void (*run)(const Sum&); };
struct Pending { std::vector<Sum> sums; std::vector<size_t> groups; };
static Pending pending[kMostBlocks * 1024];
// A number of a tile whose rows of 128 bytes lie eight to 1024: by its place along what is summed over (deep) and across.
template <class FORMAT, bool IS_B, bool TURNED> static typename FORMAT::sum element(u64 tile, int across, int deep) {
  typedef typename FORMAT::type Type;
  const u32 start = (u32)(tile & 0x3fff) << 4, far = (u32)(tile >> 16 & 0x3fff) << 4, eight = (u32)(tile >> 32 & 0x3fff) << 4;
  const u32 lines = TURNED ? deep : across, along = TURNED ? across : deep, width = 128 / sizeof(Type);
  const u32 address = start + along / width * far + lines / 8 * eight + lines % 8 * 128 + along % width * sizeof(Type);
  Type number;
  std::memcpy(&number, shared_memory() + (address ^ ((address >> 7 & 7) << 4)), sizeof(Type));
  return Widened<FORMAT, IS_B>::of(number);
}
template <class FORMAT, bool TURNED> static void add_up(const Sum& sum) {
  constexpr int kDeep = 32 / sizeof(typename FORMAT::type);
  const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane / 4;
  typename FORMAT::sum* const d = (typename FORMAT::sum*)sum.d;
  for (int k = 0; k < sum.columns / 2; ++k) {
    const int column = k / 4 * 8 + lane % 4 * 2 + k % 2, lower = k / 2 % 2;
    typename FORMAT::sum total = sum.adds ? d[k] : 0;
    for (int n = 0; n < kDeep; ++n)
      total += (sum.has_rows ? sum.rows[lower * kDeep + n] : element<FORMAT, false, false>(sum.a, row + lower * 8, n)) * element<FORMAT, true, TURNED>(sum.b, column, n);
    d[k] = total;
  }
}
}  // namespace emulated
FN u32 shared_address(const void* at) { return (u32)((const u8*)at - emulated::shared_memory()); }
FN void begin_barrier(u32 at, u32 count) { emulated::barrier_at(at) = {0, (u8)count, (u8)count, 0}; }
FN void publish_barriers() {}
FN void arrive(u32 at) { emulated::Barrier& barrier = emulated::barrier_at(at); --barrier.missing; emulated::settle(barrier); }
FN void expect_bytes(u32 at, u32 bytes) { emulated::barrier_at(at).bytes += (i32)bytes; arrive(at); }
FN void await(u32 at, u32 parity) {
  const emulated::Barrier& barrier = emulated::barrier_at(at);
  if (!emulated::is_past(&barrier, parity)) emulated::wait_until(emulated::is_past, &barrier, parity);
}
FN void prefetch_map(const TensorMap*) {}
FN void copy_pixels_to(u32 blocks, u32 to, const TensorMap* map, u32 barrier, i32 c, i32 x, i32 y, i32 n, i32 dx, i32 dy) {
  emulated::begin_copy({map, {c, x, y, n}, blocks, to, barrier, {dx, dy}});
}
FN u32 own_block() { return 1u << emulated::current / emulated::block_threads; }
FN void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 x, i32 y) { emulated::begin_copy({map, {x, y}, own_block(), to, barrier}); }
FN void copy_box(u32 to, const TensorMap* map, u32 barrier, i32 c, i32 x, i32 y, i32 n) { emulated::begin_copy({map, {c, x, y, n}, own_block(), to, barrier}); }
FN void copy_pixels(u32 to, const TensorMap* map, u32 barrier, i32 c, i32 x, i32 y, i32 n, i32 dx, i32 dy) {
  copy_pixels_to(own_block(), to, map, barrier, c, x, y, n, dx, dy);
}
FN void show_stores_to_copies() {}
FN void begin_sums() {}
FN void commit_sums() { emulated::Pending& own = emulated::pending[emulated::current]; own.groups.push_back(own.sums.size()); }
template <int LEFT> FN void await_sums() {
  emulated::Pending& own = emulated::pending[emulated::current];
  if (own.groups.size() <= LEFT) return;
  const size_t done = own.groups[own.groups.size() - LEFT - 1];
  for (size_t k = 0; k < done; ++k) own.sums[k].run(own.sums[k]);
  own.sums.erase(own.sums.begin(), own.sums.begin() + (long)done);
  own.groups.erase(own.groups.begin(), own.groups.end() - LEFT);
  for (size_t& group : own.groups) group -= done;
}
template <int THREADS> FN void meet(int number) { emulated::meet(number, THREADS, true); }
template <int THREADS> FN void pass(int number) { emulated::meet(number, THREADS, false); }
template <int COUNT> FN void take_registers() {}
template <int COUNT> FN void leave_registers() {}
FN void pass_cluster() {}
FN void await_cluster() { emulated::wait(emulated::kCluster); }
FN u32 address_in(u32 address, u32 block) { return address | (block + 1) << emulated::kBlockBits; }
FN void arrive_in(u32 address) { arrive(address); }
template <class T> FN void send_four(u32 address, const T* from, u32 barrier) {
  const u32 inside = (1u << emulated::kBlockBits) - 1;
  emulated::Copy copy = {nullptr, {}, 1u << ((address >> emulated::kBlockBits) - 1), address & inside, barrier & inside};
  std::memcpy(copy.numbers, from, sizeof copy.numbers);
  emulated::begin_copy(copy);
}
FN void await_sent(u32 at) { await(at, 0); }
FN void load_two(u32* to, u32 address) { std::memcpy(to, emulated::at_address(address), 8); }
FN void load_four(u32* to, u32 address) { std::memcpy(to, emulated::at_address(address), 16); }
FN void store_four(u32 address, u32 a, u32 b, u32 c, u32 d) { const u32 all[4] = {a, b, c, d}; std::memcpy(emulated::at_address(address), all, 16); }
FN u32 as_tf32(u32 bits) { return bits; }
template <class FORMAT, int COLUMNS, bool TURNED> struct Multiply {
  static FN void add(typename FORMAT::sum* d, u64 a, u64 b, int adds) {
    emulated::pending[emulated::current].sums.push_back({d, a, b, {}, false, adds != 0, COLUMNS, emulated::add_up<FORMAT, TURNED>});
  }
};
template <class FORMAT, int COLUMNS, bool TURNED> struct MultiplyFragments {
  static FN void add(float* d, const u32* a, u64 b, int adds) {
    const unsigned self = emulated::current, quad = self & ~3u;
    for (int k = 0; k < 4; ++k) emulated::fragments[self][k] = a[k];
    emulated::wait(emulated::kWarp);
    emulated::Sum sum = {d, 0, b, {}, true, adds != 0, COLUMNS, emulated::add_up<FORMAT, TURNED>};
    for (int k = 0; k < 32; ++k)
      sum.rows[k] = emulated::number_of<FORMAT, false>(emulated::fragments[quad + k % 8 / 2][k / 16 + k / 8 % 2 * 2], k % 2);
    emulated::wait(emulated::kWarp);
    emulated::pending[emulated::current].sums.push_back(sum);
  }
};
template <class FORMAT, int COLUMNS> struct MultiplyRows {
  static FN void add(float* d, const u32* a, u64 b) {
    const unsigned self = emulated::current, quad = self & ~3u;
    for (int k = 0; k < 4; ++k) emulated::fragments[self][k] = a[k];
    emulated::wait(emulated::kWarp);
    emulated::Sum sum = {d, 0, b, {}, true, true, COLUMNS, emulated::add_up<FORMAT, false>};
    for (int k = 0; k < 16; ++k) sum.rows[k] = f32_of(emulated::fragments[quad + k % 4][k / 8 + k / 4 % 2 * 2]);
    emulated::wait(emulated::kWarp);
    emulated::pending[emulated::current].sums.push_back(sum);
  }
};
)cuda";
}

}  // namespace tenon::codegen::cuda
