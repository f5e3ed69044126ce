#include "codegen/cuda/attention_wgmma.h"

namespace tenon::codegen::cuda {

std::string_view attention_span_template() {
  return R"cuda(
// Work of one tile. Offsets of keys and values are counted in elements from the start of their tensor.
struct AttentionSpan {
  i64 keys_at, values_at;
  i32 first;  // query
  i32 seen;   // keys that at least one query of the tile sees
};
)cuda";
}

// Attention after FlashAttention-3: TMA, wgmma, warp specialisation and ping-pong scheduling.
//
// A persistent block computes tiles of GROUPS * 64 queries. In the producer warpgroup, one thread
// copies blocks of KEYS keys and values by TMA into two stages each, and three warps copy the
// queries of the next tile. Every consumer warpgroup owns 64 queries: it multiplies them with a
// block of keys while the products of the preceding block's probabilities and values are still
// running, and named barriers let the warpgroups alternate between matrix products and softmax.
// Blocks of keys are visited from the last to the first, so that masks affect only the first ones.
std::string_view wgmma_attention_template() {
  return R"cuda(
// Tiles of a block of the grid. With a causal mask, a block computes a long tile and the short tile
// that complements it; with few tiles, the longest are computed first.
template <bool IS_CAUSAL> struct AttentionTurns {
  i32 heads, spans;  // spans: tiles per head
  i32 turn;
  // Returns false after the last tile. Skips nothing: head is -1 for a turn without a tile.
  FN bool next(i32& head, i32& span) {
    const i32 grid = (i32)gridDim.x, own = (i32)blockIdx.x, tiles = heads * spans, now = turn++;
    if (!IS_CAUSAL) {
      const i32 tile = now * grid + own;
      head = tile / spans;
      span = tile % spans;
      return tile < tiles;
    }
    if (tiles <= 2 * grid) {
      const i32 tile = now * grid + (now & 1 ? grid - 1 - own : own);
      head = tile < tiles ? tile % heads : -1;
      span = spans - 1 - tile / heads;
      return now * grid < tiles;
    }
    const i32 half = (spans + 1) / 2, unit = now / 2 * grid + own, low = unit % half, high = spans - 1 - low;
    head = (now & 1) && low == high ? -1 : unit / half;
    span = now & 1 ? low : high;
    return unit < heads * half;
  }
};

template <class FORMAT, int SIZE, int GROUPS, int KEYS> struct AttentionStages {
  static constexpr int kQueries = GROUPS * 64, kSlabs = SIZE / 64;
  static constexpr int kQuerySlab = kQueries * 128, kKeySlab = KEYS * 128;
  static constexpr int kQueryBytes = kSlabs * kQuerySlab, kStage = kSlabs * kKeySlab;
  static constexpr int kBytes = kQueryBytes + 4 * kStage + 1024;
  u32 base, barriers;
  FN u32 queries() const { return base; }
  FN u32 keys(u32 stage) const { return base + kQueryBytes + stage * kStage; }
  FN u32 values(u32 stage) const { return base + kQueryBytes + (2 + stage) * kStage; }
  FN u32 keys_full(u32 stage) const { return barriers + stage * 8; }
  FN u32 keys_empty(u32 stage) const { return barriers + 16 + stage * 8; }
  FN u32 values_full(u32 stage) const { return barriers + 32 + stage * 8; }
  FN u32 values_empty(u32 stage) const { return barriers + 48 + stage * 8; }
  FN u32 queries_full(u32 group) const { return barriers + 64 + group * 8; }
  FN u32 queries_empty(u32 group) const { return barriers + 64 + (GROUPS + group) * 8; }
};
constexpr int kQueryThreads = 96;

// Copies blocks of keys and values: the keys of a block before the values of the block before it.
template <class STAGES, int KEYS> struct AttentionProducer {
  const STAGES& at;
  const TensorMap *map_k, *map_v;
  i64 k_row, v_row;
  u32 count;  // blocks copied
  FN void copy(u32 to, const TensorMap* map, u32 full, u32 empty, i64 offset, i64 row, i32 key, u32 block) const {
    await(empty, (block >> 1 & 1) ^ 1);
    expect_bytes(full, STAGES::kStage);
    const i32 x = (i32)(offset % row), y = (i32)(offset / row) + key;
    UNROLL for (int slab = 0; slab < STAGES::kSlabs; ++slab) copy_box(to + slab * STAGES::kKeySlab, map, full, x + slab * 64, y);
  }
  FN void copy_tile(const AttentionSpan& span) {
    const i32 blocks = (span.seen + KEYS - 1) / KEYS;
    ROLLED for (i32 k = 0; k <= blocks; ++k) {
      const u32 block = count + k;
      if (k < blocks) copy(at.keys(block & 1), map_k, at.keys_full(block & 1), at.keys_empty(block & 1), span.keys_at, k_row, (blocks - 1 - k) * KEYS, block);
      const u32 last = block - 1;
      if (k > 0) copy(at.values(last & 1), map_v, at.values_full(last & 1), at.values_empty(last & 1), span.values_at, v_row, (blocks - k) * KEYS, last);
    }
    count += blocks;
  }
};

template <bool VALUE> struct AttentionFlag { static constexpr bool value = VALUE; };
template <int COUNT> FN void settle_sums(float* d) {
#ifndef TENON_EMULATION
  UNROLL for (int k = 0; k < COUNT; ++k) asm volatile("" : "+f"(d[k])::"memory");
#endif
}
// Online softmax of 64 rows over KEYS columns: two rows per thread.
template <int KEYS, bool IS_LAZY> struct AttentionSoftmax {
  float highest[2], total[2], by[2];
  FN void begin() {
    UNROLL for (int r = 0; r < 2; ++r) { highest[r] = f32_of(0xff800000u); total[r] = 0; by[r] = 0; }
  }
  // Turns scores into their powers; `by` rescales earlier sums. Rows without a key have a maximum of -inf.
  template <bool MAY_BE_EMPTY> FN void update(float* s, float scale) {
    UNROLL for (int r = 0; r < 2; ++r) {
      float most = highest[r];
      UNROLL for (int n = 0; n < KEYS / 8; ++n) most = fmaxf(most, fmaxf(s[n * 4 + 2 * r], s[n * 4 + 2 * r + 1]));
      most = fmaxf(most, from_lane(most, 1));
      most = fmaxf(most, from_lane(most, 2));
      if (IS_LAZY && (most - highest[r]) * scale <= 8.0f) most = highest[r];
      const float peak = (MAY_BE_EMPTY && most == f32_of(0xff800000u) ? 0.0f : most) * scale;
      by[r] = power_of_two(fmaf(highest[r], scale, -peak));
      highest[r] = most;
      total[r] *= by[r];
      float sum = 0;
      UNROLL for (int n = 0; n < KEYS / 8; ++n) UNROLL for (int c = 2 * r; c < 2 * r + 2; ++c) {
        s[n * 4 + c] = power_of_two(fmaf(s[n * 4 + c], scale, -peak));
        sum += s[n * 4 + c];
      }
      total[r] += sum;
    }
  }
  template <int SIZE> FN void rescale(float* sums) const {
    if (IS_LAZY && by[0] == 1.0f && by[1] == 1.0f) return;
    UNROLL for (int n = 0; n < SIZE / 8; ++n) UNROLL for (int c = 0; c < 4; ++c) sums[n * 4 + c] *= by[c / 2];
  }
  FN void finish() {
    UNROLL for (int r = 0; r < 2; ++r) {
      total[r] += from_lane(total[r], 1);
      total[r] += from_lane(total[r], 2);
    }
  }
};

// IS_LINEAR: the score is the product times `scale`, or -inf for keys after `last`. Otherwise `score` computes it.
// locate(head, span) returns an AttentionSpan or a struct derived from it; query(at, n) and result(at, n) return the address of row n.
template <class FORMAT, int SIZE, int GROUPS, int KEYS, bool IS_LINEAR, bool IS_CAUSAL, bool ZERO, class LOCATE, class QUERY, class RESULT, class SCORE, class LAST>
FN void attention_tiles(const TensorMap* map_k, const TensorMap* map_v, i64 k_row, i64 v_row, i32 heads, i32 queries, i32 keys, float scale,
                        const LOCATE& locate, const QUERY& query, const RESULT& result, const SCORE& score, const LAST& last) {
  typedef AttentionStages<FORMAT, SIZE, GROUPS, KEYS> Stages;
  typedef decltype(locate(0, 0)) Tile;
  // With queries in registers, products read a third less shared memory.
  constexpr bool kHoldsQueries = SIZE <= 128 && GROUPS <= 2 && KEYS <= 128;
  SHARED_TILES(memory);
  SHARED_BARRIERS(barriers, 8 + 2 * GROUPS);
  const Stages at = {(shared_address(memory) + 1023) & ~1023u, shared_address(barriers)};
  if (threadIdx.x == 0) {
    for (u32 k = 0; k < 2; ++k) {
      begin_barrier(at.keys_full(k), 1);
      begin_barrier(at.values_full(k), 1);
      begin_barrier(at.keys_empty(k), GROUPS);
      begin_barrier(at.values_empty(k), GROUPS);
    }
    for (u32 k = 0; k < GROUPS; ++k) {
      begin_barrier(at.queries_full(k), kQueryThreads);
      begin_barrier(at.queries_empty(k), 1);
    }
    publish_barriers();
  }
  __syncthreads();
  wait_for_kernel_before();
  const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0) - 1;
  AttentionTurns<IS_CAUSAL> turns = {heads, (queries + Stages::kQueries - 1) / Stages::kQueries, 0};
  i32 head, span;
  if (group < 0) {
    if constexpr (GROUPS > 1) leave_registers<GROUPS == 2 ? 24 : 32>();
    if (threadIdx.x == 0) {
      AttentionProducer<Stages, KEYS> producer = {at, map_k, map_v, k_row, v_row, 0};
      while (turns.next(head, span))
        if (head >= 0) producer.copy_tile(locate(head, span));
    } else if (threadIdx.x >= 32) {
      u16* const to = (u16*)(memory + (at.base - shared_address(memory)));
      u32 phase = 1;
      while (turns.next(head, span)) {
        if (head < 0) continue;
        const Tile tile = locate(head, span);
        if (tile.seen <= 0) continue;
        for (int part = 0; part < GROUPS; ++part) {
          await(at.queries_empty(part), phase);
          for (int n = (int)threadIdx.x - 32; n < 64 * SIZE / 8; n += kQueryThreads) {
            const int row = part * 64 + n / (SIZE / 8), chunk = n % (SIZE / 8);
            const bool is_inside = tile.first + row < queries;
            copy_ahead(to + (chunk / 8 * Stages::kQuerySlab + row * 128 + ((chunk ^ row) & 7) * 16) / 2,
                       query(tile, is_inside ? tile.first + row : tile.first) + chunk * 8, is_inside);
          }
          end_copies();
          await_copies<0>();
          show_stores_to_copies();
          arrive(at.queries_full(part));
        }
        phase ^= 1;
      }
    }
    return;
  }
  if constexpr (GROUPS > 1) take_registers<GROUPS == 2 ? 240 : 160>();
  const int lane = (int)threadIdx.x % 32, row = group * 64 + (int)threadIdx.x / 32 % 4 * 16 + lane / 4, column = lane % 4 * 2;
  const u64 tile_q = tile_at(at.queries() + group * 8192, 16), tile_k = tile_at(at.keys(0), 16), tile_v = tile_at(at.values(0), Stages::kKeySlab);
  const bool is_first = threadIdx.x % 128 == 0;
  float s[KEYS / 2], sums[SIZE / 2];
  u32 p[KEYS / 4];
  AttentionSoftmax<KEYS, (SIZE > 128)> softmax;
  Tile tile;
  i32 line[2], limit[2], blocks = 0, whole = 0;
  u32 count = 0, query_phase = 0;
  u32 q[kHoldsQueries ? SIZE / 16 : 1][4];
  const u16* const q_rows = (const u16*)(memory + (at.base - shared_address(memory)));
  // Waits for the queries of a tile, and moves them to registers.
  const auto take_queries = [&] {
    await(at.queries_full(group), query_phase);
    query_phase ^= 1;
    if constexpr (kHoldsQueries) {
      const int line = group * 64 + (int)threadIdx.x / 32 % 4 * 16 + lane % 16;
      UNROLL for (int c = 0; c < SIZE / 16; ++c)
        load_matrices<false>(q[c], q_rows + (c / 4 * Stages::kQuerySlab + line * 128 + ((c % 4 * 2 + lane / 16) ^ (line & 7)) * 16) / 2);
      meet<128>(5 + group);
      if (is_first) arrive(at.queries_empty(group));
    }
  };
  const auto multiply_keys = [&](u32 block) {
    const u64 moved = (u64)((block & 1) * (Stages::kStage >> 4));
    UNROLL for (int c = 0; c < SIZE / 16; ++c)
      if constexpr (kHoldsQueries) MultiplyFragments<FORMAT, KEYS, false>::add(s, q[c], tile_k + moved + c / 4 * (Stages::kKeySlab >> 4) + c % 4 * 2, c);
      else Multiply<FORMAT, KEYS, false>::add(s, tile_q + c / 4 * (Stages::kQuerySlab >> 4) + c % 4 * 2, tile_k + moved + c / 4 * (Stages::kKeySlab >> 4) + c % 4 * 2, c);
    commit_sums();
  };
  const auto multiply_values = [&](u32 block, int adds) {
    const u64 moved = (u64)((block & 1) * (Stages::kStage >> 4));
    UNROLL for (int c = 0; c < KEYS / 16; ++c) MultiplyFragments<FORMAT, SIZE, true>::add(sums, p + c * 4, tile_v + moved + c * 128, c > 0 ? 1 : adds);
    commit_sums();
  };
  const auto pack = [&] {
    UNROLL for (int k = 0; k < KEYS / 4; ++k) p[k] = FORMAT::pair(s[2 * k], s[2 * k + 1]);
  };
  const auto mask = [&](i32 block) {
    UNROLL for (int r = 0; r < 2; ++r) {
      const i32 end = limit[r] - block * KEYS - column;
      UNROLL for (int n = 0; n < KEYS / 8; ++n) UNROLL for (int c = 0; c < 2; ++c) {
        float& x = s[n * 4 + 2 * r + c];
        if (!IS_LINEAR) x = score(tile, x, line[r], min(block * KEYS + n * 8 + column + c, keys - 1));
        if (n * 8 + c > end) x = f32_of(0xff800000u);
      }
    }
  };
  // Stores rows of the tile that begins at `first`: 16 bytes per thread.
  const auto store = [&](const Tile& done, const float* total) {
    UNROLL for (int r = 0; r < 2; ++r) {
      float all = total[r];
      all += from_lane(all, 1);
      all += from_lane(all, 2);
      const float by = ZERO && all == 0 ? 1.0f : 1.0f / all;
      const bool is_inside = done.first + row + r * 8 < queries;
      u16* const to = result(done, is_inside ? done.first + row + r * 8 : done.first);
      UNROLL for (int n = 0; n < SIZE / 8; n += 4) {
        u32 words[4];
        UNROLL for (int k = 0; k < 4; ++k) words[k] = FORMAT::pair(sums[(n + k) * 4 + 2 * r] * by, sums[(n + k) * 4 + 2 * r + 1] * by);
        trade(words, lane);
        if (is_inside) store_pack<u32, 4>((u32*)(to + n * 8 + lane % 4 * 8), Pack<u32, 4>{{words[0], words[1], words[2], words[3]}});
      }
    }
  };
  // Goes to the next tile with visible keys; tiles without any are stored at once.
  const auto advance = [&]() -> bool {
    while (turns.next(head, span)) {
      if (head < 0) continue;
      tile = locate(head, span);
      if (tile.seen <= 0) {
        const float none = ZERO || keys == 0 ? 0.0f : f32_of(0x7fc00000u);
        const u32 word = FORMAT::pair(none, none);
        UNROLL for (int r = 0; r < 2; ++r) {
          if (tile.first + row + r * 8 >= queries) continue;
          ROLLED for (int n = lane % 4 * 8; n < SIZE; n += 32)
            store_pack<u32, 4>((u32*)(result(tile, tile.first + row + r * 8) + n), Pack<u32, 4>{{word, word, word, word}});
        }
        continue;
      }
      blocks = (tile.seen + KEYS - 1) / KEYS;
      // After the last query its row is computed again and not stored.
      UNROLL for (int r = 0; r < 2; ++r) {
        line[r] = min(tile.first + row + r * 8, queries - 1);
        limit[r] = IS_CAUSAL ? min(last(tile, line[r]), keys - 1) : keys - 1;
      }
      const i32 unmasked = IS_CAUSAL ? min(last(tile, min(tile.first, queries - 1)), keys - 1) + 1 : keys;
      whole = unmasked <= 0 ? 0 : min(unmasked / KEYS, blocks);
      return true;
    }
    return false;
  };
  // Rows after the last key belong to another head; 0 times them may be NaN.
  const auto clear_tail = [&] {
    if (blocks * KEYS <= keys) return;
    await(at.values_full(count & 1), count >> 1 & 1);
    for (int n = (keys - (blocks - 1) * KEYS) * 8 + (int)threadIdx.x % 128; n < KEYS * 8; n += 128)
      UNROLL for (int slab = 0; slab < Stages::kSlabs; ++slab) store_four(at.values(count & 1) + slab * Stages::kKeySlab + n * 16, 0, 0, 0, 0);
    show_stores_to_copies();
    meet<128>(5 + group);
  };
  const auto begin_turn = [&] { if constexpr (GROUPS > 1) meet<256>(1 + group); };
  const auto end_turn = [&] { if constexpr (GROUPS > 1) pass<256>(1 + (group + 1) % GROUPS); };
  // After the products of a block: its keys may be replaced, and after the last block the queries.
  const auto release_keys = [&](u32 number, i32 block) {
    if (!is_first) return;
    arrive(at.keys_empty(number & 1));
    if (!kHoldsQueries && block == 0) arrive(at.queries_empty(group));
  };
  const auto release_values = [&] { if (is_first) arrive(at.values_empty(count & 1)); };
  int adds = 0;
  // Multiplies a block of keys, and the values of the block before it.
  const auto step = [&](i32 block, auto is_masked) {
    const u32 next = count + 1;
    await(at.keys_full(next & 1), next >> 1 & 1);
    await(at.values_full(count & 1), count >> 1 & 1);
    begin_turn();
    begin_sums();
    multiply_keys(next);
    multiply_values(count, adds);
    end_turn();
    await_sums<1>();
    settle_sums<KEYS / 2>(s);
    release_keys(next, block);
    if constexpr (decltype(is_masked)::value) mask(block);
    softmax.template update<decltype(is_masked)::value>(s, scale);
    await_sums<0>();
    settle_sums<SIZE / 2>(sums);
    release_values();
    pack();
    softmax.template rescale<SIZE>(sums);
    adds = 1;
    ++count;
  };
  if constexpr (GROUPS > 1) {
    if (group == GROUPS - 1) pass<256>(1);
  }
  if (!advance()) return;
  take_queries();
  await(at.keys_full(0), 0);
  begin_sums();
  multiply_keys(0);
  await_sums<0>();
  settle_sums<KEYS / 2>(s);
  release_keys(0, blocks - 1);
  softmax.begin();
  mask(blocks - 1);
  softmax.template update<true>(s, scale);
  pack();
  for (;;) {
    clear_tail();
    i32 block = blocks - 2;
    ROLLED for (; block >= whole; --block) step(block, AttentionFlag<true>());
    ROLLED for (; block >= 0; --block) step(block, AttentionFlag<!IS_LINEAR>());
    const Tile done = tile;
    if (!advance()) {
      tile = done;
      break;
    }
    // The next tile's first keys, and the last values of this one.
    const u32 next = count + 1;
    take_queries();
    await(at.keys_full(next & 1), next >> 1 & 1);
    await(at.values_full(count & 1), count >> 1 & 1);
    begin_turn();
    begin_sums();
    multiply_keys(next);
    multiply_values(count, adds);
    end_turn();
    await_sums<1>();
    settle_sums<KEYS / 2>(s);
    release_keys(next, blocks - 1);
    const float total[2] = {softmax.total[0], softmax.total[1]};
    softmax.begin();
    mask(blocks - 1);
    softmax.template update<true>(s, scale);
    await_sums<0>();
    settle_sums<SIZE / 2>(sums);
    release_values();
    store(done, total);
    pack();
    adds = 0;
    ++count;
  }
  await(at.values_full(count & 1), count >> 1 & 1);
  begin_sums();
  multiply_values(count, adds);
  await_sums<0>();
  settle_sums<SIZE / 2>(sums);
  store(tile, softmax.total);
}
)cuda";
}

}  // namespace tenon::codegen::cuda
