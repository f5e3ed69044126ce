#include "base/error.h"
#include "target/cpu_facts.h"
#include "target/fusion_prices.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tenon::cpu_facts_test {
namespace {

// Temporary copy of the folder in which the system lists caches.
class Listing {
 public:
  Listing() : folder_(::testing::TempDir() + "caches") { std::filesystem::remove_all(folder_); }
  ~Listing() { std::filesystem::remove_all(folder_); }
  void add(int index, const std::string& level, const std::string& type, const std::string& size,
           const std::string& ways) {
    const std::string entry = folder_ + "/index" + std::to_string(index) + "/";
    std::filesystem::create_directories(entry);
    std::ofstream(entry + "level") << level << "\n";
    std::ofstream(entry + "type") << type << "\n";
    std::ofstream(entry + "size") << size << "\n";
    std::ofstream(entry + "ways_of_associativity") << ways << "\n";
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

TEST(CpuFacts, DescribedProcessors) {
  const nests::FusionPrices prices = fusion_prices(cpu_facts("zen4"));
  EXPECT_DOUBLE_EQ(prices.kernel_bytes, 128 * 1024);
  EXPECT_DOUBLE_EQ(prices.fork_bytes, 32 * 1024);
  EXPECT_DOUBLE_EQ(prices.local_bytes, 384 * 1024);
  EXPECT_DOUBLE_EQ(prices.close_bytes, 768 * 1024);
  EXPECT_DOUBLE_EQ(prices.shared_bytes, 8 << 20);
  EXPECT_DOUBLE_EQ(prices.close_share, 0.125);
  EXPECT_DOUBLE_EQ(prices.shared_share, 0.3);
  EXPECT_DOUBLE_EQ(prices.tile_rows, 6);
  EXPECT_DOUBLE_EQ(prices.threads, 4);
  EXPECT_DOUBLE_EQ(cpu_facts("zen4").multiply_adds_per_cycle(), 16);
}

TEST(CpuFacts, DistinguishesMachines) {
  const TargetFacts wide = cpu_facts("sapphire-rapids"), narrow = cpu_facts("haswell");
  EXPECT_EQ(wide.instructions, "x86-64-v4");
  EXPECT_EQ(narrow.instructions, "x86-64-v3");
  EXPECT_EQ(wide.registers, 32U);
  EXPECT_EQ(narrow.registers, 16U);
  EXPECT_EQ(wide.nearest().ways, 12U);
  EXPECT_EQ(narrow.private_cache().bytes, 256U << 10);
  EXPECT_EQ(narrow.last_level_cache().bytes, 8U << 20);
  EXPECT_EQ(narrow.memory().bytes, 0U);
  EXPECT_GT(fusion_prices(wide).local_bytes, fusion_prices(narrow).local_bytes);
}

TEST(CpuFacts, LevelsDifferInInstructionsOnly) {
  const TargetFacts v3 = cpu_facts("x86-64-v3"), v4 = cpu_facts("x86-64-v4");
  EXPECT_EQ(v3.levels, v4.levels);
  EXPECT_EQ(v3.vector_bits, 256U);
  EXPECT_EQ(v4.vector_bits, 512U);
}

TEST(CpuFacts, ReadsThisMachine) {
  const TargetFacts facts = cpu_facts("native");
  EXPECT_EQ(facts.name, "native");
  EXPECT_GE(facts.units, 1U);
  ASSERT_GE(facts.levels.size(), 2U);
  EXPECT_GT(facts.nearest().bytes, 0U);
  EXPECT_EQ(facts.memory().bytes, 0U);
}

TEST(CpuFacts, ReadsListedCaches) {
  Listing listing;
  listing.add(0, "1", "Data", "48K", "12");
  listing.add(1, "1", "Instruction", "32K", "8");
  listing.add(2, "2", "Unified", "1280K", "20");
  listing.add(3, "3", "Unified", "24M", "12");
  const TargetFacts known = cpu_facts("zen4"), facts = with_listed_caches(known, listing.folder());
  ASSERT_EQ(facts.levels.size(), 4U);
  EXPECT_EQ(facts.nearest(), (MemoryLevel{48 << 10, 12, known.levels[0].bytes_per_s, false}));
  EXPECT_EQ(facts.private_cache(),
            (MemoryLevel{1280 << 10, 20, known.levels[1].bytes_per_s, false}));
  EXPECT_EQ(facts.last_level_cache(),
            (MemoryLevel{24 << 20, 12, known.levels[2].bytes_per_s, true}));
  EXPECT_EQ(facts.memory(), known.memory());
}

TEST(CpuFacts, MissingCachesUseDefaults) {
  const TargetFacts known = cpu_facts("zen4");
  EXPECT_EQ(with_listed_caches(known, "/nowhere").levels, known.levels);
  // Without a third level, the second is the last-level cache.
  Listing listing;
  listing.add(0, "1", "Data", "32K", "8");
  listing.add(1, "2", "Unified", "not a size", "8");
  listing.add(2, "2", "Unified", "512K", "8");
  const TargetFacts facts = with_listed_caches(known, listing.folder());
  ASSERT_EQ(facts.levels.size(), 3U);
  EXPECT_EQ(facts.private_cache().bytes, 512U << 10);
  EXPECT_EQ(facts.last_level_cache().bytes, 512U << 10);
}

TEST(CpuFacts, RefusesUnknownNames) {
  EXPECT_EQ(error_text([] { cpu_facts("zen5"); }),
            "no processor is called 'zen5'\n  hint      did you mean 'zen4'?");
}

}  // namespace
}  // namespace tenon::cpu_facts_test
