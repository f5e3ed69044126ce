#include "target/cpu_facts.h"

#include "base/error.h"
#include "base/text.h"
#include "program/target.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

namespace tenon::inline target {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

struct Described {
  std::uint64_t nearest_bytes, own_bytes, shared_bytes;
  unsigned nearest_ways, own_ways, shared_ways, units, registers, vector_bits;
  double cycles_per_s, multiply_adds_per_cycle;
  // Bandwidth of each level for one unit; 0: Zen 4's bandwidth per cycle, scaled by frequency.
  double nearest_bytes_per_s = 0, own_bytes_per_s = 0, shared_bytes_per_s = 0,
         memory_bytes_per_s = 0;
};

// Relative bandwidths of the cache levels come from Zen 4 and, with all cores active, from Sapphire
// Rapids; so do all constants below that are not per processor. Caches, registers and arithmetic
// rates of the other processors are vendor specifications.
TargetFacts described(std::string name, std::string instructions, const Described& d) {
  constexpr double kMemoryBytesPerCycle = 7, kOwnShare = 0.125, kSharedShare = 0.3,
                   kNearestShare = 0.0625;
  const double memory =
      d.memory_bytes_per_s > 0 ? d.memory_bytes_per_s : kMemoryBytesPerCycle * d.cycles_per_s;
  const auto speed = [&](double measured, double share) {
    return measured > 0 ? measured : memory / share;
  };
  TargetFacts facts;
  facts.name = std::move(name);
  facts.instructions = std::move(instructions);
  facts.units = d.units;
  facts.registers = d.registers;
  facts.vector_bits = d.vector_bits;
  facts.cycles_per_s = d.cycles_per_s;
  const double flops = 2 * d.multiply_adds_per_cycle * d.cycles_per_s;
  facts.rates = {{DType::F32, DType::F32, flops}, {DType::F64, DType::F64, flops / 2}};
  facts.levels = {
      {d.nearest_bytes, d.nearest_ways, speed(d.nearest_bytes_per_s, kNearestShare), false},
      {d.own_bytes, d.own_ways, speed(d.own_bytes_per_s, kOwnShare), false},
      {d.shared_bytes, d.shared_ways, speed(d.shared_bytes_per_s, kSharedShare), true},
      {0, 0, memory, true}};
  facts.start_s = 32.0 * kKiB / memory;
  facts.machine_balance = 8;
  facts.heuristics.image_layout = "NHWC";
  facts.heuristics.layout_loss_bytes_per_flop = 0.5;
  return facts;
}

// Vectors (AVX512-BF16) have twice the f32 rate, AMX tiles sixteen times, if memory keeps up.
TargetFacts with_bf16(TargetFacts facts, std::string_view instructions) {
  const double times = instructions == "amx-bf16" ? 16 : 2;
  facts.rates.push_back({DType::BF16, DType::F32, times * facts.rates.front().flops_per_s});
  return facts;
}

// A VNNI instruction issues as often as an f32 FMA and computes four products per lane; AMX int8
// tiles have twice the rate of bf16 tiles.
TargetFacts with_dots(TargetFacts facts, bool has_tiles = false) {
  const double flops = 2 * facts.multiply_adds_per_cycle() * facts.cycles_per_s;
  facts.rates.push_back({DType::U8, DType::I32, (has_tiles ? 32 : 4) * flops});
  return facts;
}

// Zen 4 executes 512-bit vectors as two 256-bit halves.
constexpr Described kZen4{32 * kKiB, 1 * kMiB, 32 * kMiB, 8, 8, 16, 4, 32, 512, 4e9, 16};

TargetFacts sapphire_rapids() {
  TargetFacts facts = described("sapphire-rapids", "x86-64-v4",
                                {48 * kKiB, 2 * kMiB, 60 * kMiB, 12, 16, 15, 32, 32, 512, 2.4e9, 32,
                                 300e9, 72e9, 21e9, 11e9});
  // Two streams read faster than one or four, from memory and from the last-level cache. Measured
  // on Emerald Rapids.
  facts.heuristics.weight_streams = 2;
  return with_dots(with_bf16(std::move(facts), "amx-bf16"), true);
}

const std::vector<TargetFacts>& all() {
  static const std::vector<TargetFacts> list = [] {
    Described avx2 = kZen4;
    avx2.registers = 16;
    avx2.vector_bits = 256;
    return std::vector<TargetFacts>{
        with_dots(with_bf16(described("zen4", "x86-64-v4", kZen4), "avx512-bf16")),
        sapphire_rapids(),
        described("haswell", "x86-64-v3",
                  {32 * kKiB, 256 * kKiB, 8 * kMiB, 8, 8, 16, 4, 16, 256, 3.4e9, 16}),
        described("x86-64-v3", "x86-64-v3", avx2),
        described("x86-64-v4", "x86-64-v4", kZen4),
    };
  }();
  return list;
}

const TargetFacts* find(const std::string& name) {
  const auto found = std::ranges::find(all(), name, &TargetFacts::name);
  return found == all().end() ? nullptr : &*found;
}

std::optional<std::string> line_of(const std::string& path) {
  std::ifstream stream(path);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  return line;
}

// Parses "1024K", "32M" or a plain number of bytes.
std::optional<std::uint64_t> bytes_of(std::string text) {
  std::uint64_t unit = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) {
    unit = text.back() == 'K' ? kKiB : kMiB;
    text.pop_back();
  }
  const std::optional<std::int64_t> number = parse_integer(text);
  if (!number || *number <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number) * unit;
}

TargetFacts native_facts() {
  const std::vector<std::string_view> features = processor_features();
  const bool has_avx512 = std::ranges::find(features, "AVX-512VL") != features.end() &&
                          std::ranges::find(features, "AVX-512BW") != features.end() &&
                          std::ranges::find(features, "AVX-512DQ") != features.end() &&
                          std::ranges::find(features, "AVX-512CD") != features.end();
  const char* like = !has_avx512 ? "haswell" : __builtin_cpu_is("amd") ? "zen4" : "sapphire-rapids";
  TargetFacts facts = with_listed_caches(*find(like), "/sys/devices/system/cpu/cpu0/cache");
  facts.name = "native";
  const auto has = [&](std::string_view feature) {
    return std::ranges::find(features, feature) != features.end();
  };
  std::erase_if(facts.rates, [](const Rate& rate) {
    return rate.operand == DType::BF16 || rate.operand == DType::U8;
  });
  if (has(has_avx512 ? "AVX-512VNNI" : "AVX-VNNI"))
    facts = with_dots(facts, has_avx512 && has("AMX-INT8"));
  if (has_avx512 && has("AVX-512-BF16"))
    facts = with_bf16(facts, has("AMX-BF16") ? "amx-bf16" : "avx512-bf16");
  facts.units = std::max(1U, std::thread::hardware_concurrency());
  return facts;
}

}  // namespace

TargetFacts with_listed_caches(TargetFacts facts, const std::string& folder) {
  std::map<std::int64_t, MemoryLevel> listed;  // Keyed by cache level, nearest first.
  for (int index = 0;; ++index) {
    const std::string entry = concat(folder, "/index", index, "/");
    const auto level = line_of(entry + "level"), type = line_of(entry + "type"),
               size = line_of(entry + "size");
    if (!level) break;
    const std::optional<std::int64_t> number = parse_integer(*level);
    const std::optional<std::uint64_t> bytes = size ? bytes_of(*size) : std::nullopt;
    if (!number || *number < 1 || !bytes || !type || *type == "Instruction") continue;
    const std::optional<std::int64_t> ways =
        parse_integer(line_of(entry + "ways_of_associativity").value_or(""));
    MemoryLevel& cache = listed[*number];
    cache.bytes = *bytes;
    cache.ways = ways && *ways > 0 ? static_cast<unsigned>(*ways) : 8;
    cache.is_shared = *number >= 3;
  }
  if (listed.empty()) return facts;
  const std::vector<MemoryLevel> known = std::move(facts.levels);
  facts.levels.clear();
  for (auto& [number, cache] : listed) {
    const std::size_t like = std::min(static_cast<std::size_t>(number - 1), known.size() - 2);
    cache.bytes_per_s = known[like].bytes_per_s;
    facts.levels.push_back(cache);
  }
  facts.levels.push_back(known.back());
  return facts;
}

std::vector<std::string> cpu_names() {
  std::vector<std::string> names = {"native"};
  for (const TargetFacts& facts : all()) names.push_back(facts.name);
  return names;
}

TargetFacts cpu_facts(const std::string& name) {
  if (name == "native") return native_facts();
  if (const TargetFacts* facts = find(name)) return *facts;
  throw Error(concat("no processor is called '", name, "'"), ErrorKind::Usage)
      .hint(suggest_name(name, cpu_names()));
}

}  // namespace tenon::inline target
