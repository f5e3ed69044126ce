#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>

#include "base/error.h"
#include "codegen/compile.h"
#include "driver/compiled.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "program/arena.h"
#include "program/file.h"

namespace tenon {
namespace {

TEST(Extent, IsComputedFromSymbols) {
  // floor((s - 1) / 2) + 1
  const Extent less = Extent::combined(Extent::Op::Add, Extent::symbol(0), -1);
  const Extent half = Extent::combined(Extent::Op::FloorDivide, less, 2);
  const Extent count = Extent::combined(Extent::Op::Add, half, 1);
  const std::int64_t seven[] = {7}, zero[] = {0};
  EXPECT_EQ(count.value(seven), 4);
  EXPECT_EQ(count.value(zero), 0);  // rounds down, not to zero
  EXPECT_EQ(to_string(count), "((($0 + -1) / 2) + 1)");
}

TEST(Extent, RefusesWhatDoesNotFit) {
  const Extent square = Extent::combined(Extent::Op::Multiply, Extent::symbol(0), Extent::symbol(0));
  const std::int64_t huge[] = {std::int64_t{1} << 40}, zero[] = {0};
  EXPECT_THROW(square.value(huge), Error);
  EXPECT_THROW(Extent::combined(Extent::Op::FloorDivide, 1, Extent::symbol(0)).value(zero), Error);
}

TEST(Arena, KeepsWhatIsAliveApart) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaRequest> requests;
    for (int k = 0; k < 30; ++k) {
      const auto first = static_cast<std::uint32_t>(random() % 20);
      requests.push_back({random() % 1000, first, first + static_cast<std::uint32_t>(random() % 6)});
    }
    const ArenaPlan plan = plan_arena(requests);
    std::uint64_t needed = 0;
    for (std::uint32_t step = 0; step < 26; ++step) {
      std::uint64_t alive = 0;
      for (const ArenaRequest& request : requests) {
        if (request.first <= step && step <= request.last) alive += request.bytes;
      }
      needed = std::max(needed, alive);
    }
    EXPECT_GE(plan.bytes, needed);
    for (std::size_t a = 0; a < requests.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % kArenaAlignment, 0u);
      EXPECT_LE(plan.offsets[a] + requests[a].bytes, plan.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        const bool meet = requests[a].first <= requests[b].last && requests[b].first <= requests[a].last;
        const bool overlap = plan.offsets[a] < plan.offsets[b] + requests[b].bytes &&
                             plan.offsets[b] < plan.offsets[a] + requests[a].bytes;
        EXPECT_FALSE(meet && overlap && requests[a].bytes > 0 && requests[b].bytes > 0);
      }
    }
  }
}

constexpr const char* kFixed = R"(graph net (x: f32[3, 8]) {
  w = constant f32[8, 24] normal(seed = 1, mean = 0.0, deviation = 0.3)
  h = matmul(x, w)
  y = softmax(h) {axis = -1}
  return y
}
)";

class ProgramFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "program_test.tnn";
    program_ = codegen::compile(parse_graph(kFixed, all_ops()));
    write_program(program_, path_);
    std::ifstream stream(path_, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    bytes_ = std::move(text).str();
  }
  void TearDown() override { std::remove(path_.c_str()); }
  void put(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  std::string path_, bytes_;
  Program program_;
};

TEST_F(ProgramFile, RunsAsTheProgramDoes) {
  Tensor x(DType::F32, {3, 8});
  for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, 0.1 * static_cast<double>(k % 7));
  CompiledModel fresh(program_, 1), loaded(read_program(path_), 2);
  const Tensor a = fresh.run({x}).front().tensor(), b = loaded.run({x}).front().tensor();
  EXPECT_TRUE(identical(a, b));
}

TEST_F(ProgramFile, CutShortAnywhereIsRefused) {
  for (std::size_t size = 0; size < bytes_.size(); size += 1 + bytes_.size() / 97) {
    put(bytes_.substr(0, size));
    EXPECT_THROW(read_program(path_), Error) << size;
  }
}

TEST_F(ProgramFile, AlteredTablesAndCodeAreRefused) {
  const std::size_t checked = bytes_.size() - program_.constant_bytes - 4096;
  for (std::size_t at = 0; at < checked; at += 1 + checked / 211) {
    std::string altered = bytes_;
    altered[at] = static_cast<char>(altered[at] ^ 0x20);
    put(altered);
    EXPECT_THROW(read_program(path_), Error) << at;
  }
}

TEST_F(ProgramFile, ForAnotherProcessorIsRefusedByName) {
  if (__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this processor has it all";
  Program program = read_program(path_);
  program.target = "x86-64-v4";
  try {
    require_target(program);
    FAIL() << "it was let through";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Device);
    EXPECT_NE(std::string(error.what()).find("AVX-512"), std::string::npos);
  }
}

}  // namespace
}  // namespace tenon
