#include "base/error.h"
#include "base/lockstep.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "ops/families/collective.h"
#include "reference/evaluate.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

namespace tenon::collective_test {
namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Numbers of very different magnitudes, so that another order of summation shows.
std::vector<float> part(std::size_t number, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto seed = static_cast<float>((number * 7919 + k * 104729) % 1013) + 0.1F;
    values[k] = (k + number) % 3 == 0 ? seed * 1e6F : seed * 1e-3F;
  }
  return values;
}

// Sums in rank order, as one rank would.
std::vector<float> in_order(std::size_t part_count, std::size_t count) {
  std::vector<float> sum = part(0, count);
  for (std::size_t p = 1; p < part_count; ++p) {
    const std::vector<float> next = part(p, count);
    for (std::size_t k = 0; k < count; ++k) sum[k] += next[k];
  }
  return sum;
}

// Counts that are not divisible, fewer elements than ranks, zero; and enough for ranks to read each
// other's memory.
TEST(RankSum, MatchesOrderedSummation) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{1000}, std::size_t{5003}}) {
    for (const int size : {1, 2, 3, 4, 6}) {
      constexpr std::size_t kParts = 12;
      std::mutex mutex;
      std::vector<std::vector<float>> found;
      run_in_lockstep(size, [&](Communicator& ranks) {
        RankSum sum(ranks, DType::F32, count);
        std::vector<std::byte> total(count * sizeof(float));
        // a repeated sum does not depend on the previous one
        for (int repeat = 0; repeat < 2; ++repeat) {
          for (std::size_t p = static_cast<std::size_t>(ranks.rank()); p < kParts;
               p += static_cast<std::size_t>(size)) {
            sum.add(bytes_of(part(p, count)));
          }
          sum.take(total);
        }
        const std::scoped_lock lock(mutex);
        found.push_back(floats_of(total));
      });
      ASSERT_EQ(found.size(), static_cast<std::size_t>(size));
      for (const std::vector<float>& one : found) EXPECT_EQ(one, in_order(kParts, count));
    }
  }
}

TEST(RankSum, WrapsIntegersAndRoundsNarrowFloats) {
  Tensor a(DType::I64, {1}), b(DType::I64, {1});
  a.set_integer(0, std::numeric_limits<std::int64_t>::max());
  b.set_integer(0, 1);
  const auto sum_of = [](const Tensor& x, const Tensor& y) {
    Tensor sum(x.dtype(), x.shape());
    const std::vector<std::span<const std::byte>> terms = {x.bytes(), y.bytes()};
    host_memory().add_in_order(x.dtype(), sum.mutable_bytes(), terms);
    return sum;
  };
  EXPECT_EQ(sum_of(a, b).integer_at(0), std::numeric_limits<std::int64_t>::min());
  const Tensor c = Tensor::scalar(DType::F16, 2048), d = Tensor::scalar(DType::F16, 1);
  EXPECT_EQ(sum_of(c, d).real_at(0), 2048);  // 2049 is not representable in f16
}

// Runs a graph on each of three ranks; x is 10 times the rank and counts up from there.
std::vector<Tensor> on_three_ranks(const std::string& text, std::int64_t count) {
  const Graph graph = parse_graph(text, all_ops());
  std::vector<Tensor> results(3);
  run_in_lockstep(3, [&](Communicator& ranks) {
    Tensor x(DType::F32, {count});
    for (std::int64_t k = 0; k < count; ++k)
      x.set_real(k, 10 * ranks.rank() + static_cast<double>(k));
    reference::EvaluateOptions options;
    options.communicator = &ranks;
    options.thread_count = 1;
    results[static_cast<std::size_t>(ranks.rank())] =
        reference::evaluate(graph, {Datum(x)}, options).front().tensor();
  });
  return results;
}

TEST(Collectives, RunInLockstep) {
  const auto sums = on_three_ranks("graph (x: f32[3]) { y = all_reduce(x) return y }", 3);
  for (const Tensor& y : sums) EXPECT_EQ(y.reals(), (std::vector<double>{30, 33, 36}));
  const auto all =
      on_three_ranks("graph (x: f32[2]) { y = all_gather(x) {ranks = 3} return y }", 2);
  for (const Tensor& y : all) EXPECT_EQ(y.reals(), (std::vector<double>{0, 1, 10, 11, 20, 21}));
  const auto parts =
      on_three_ranks("graph (x: f32[6]) { y = reduce_scatter(x) {ranks = 3} return y }", 6);
  EXPECT_EQ(parts[0].reals(), (std::vector<double>{30, 33}));
  EXPECT_EQ(parts[1].reals(), (std::vector<double>{36, 39}));
  EXPECT_EQ(parts[2].reals(), (std::vector<double>{42, 45}));
  // Four elements are split into two, two and zero over three ranks, and joined again.
  const auto pieces = on_three_ranks(
      "graph (x: f32[4]) { m = reshape(x) {shape = [2, 2]} y = reduce_scatter(m) {ranks = 3, flat "
      "= true} return y }",
      4);
  EXPECT_EQ(pieces[0].reals(), (std::vector<double>{30, 33}));
  EXPECT_EQ(pieces[2].reals(), (std::vector<double>{0, 0}));
  const auto joined = on_three_ranks(
      "graph (x: f32[2]) { y = all_gather(x) {ranks = 3, shape = [5, 1]} return y }", 2);
  for (const Tensor& y : joined) {
    EXPECT_EQ(y.shape(), (Shape{5, 1}));
    EXPECT_EQ(y.reals(), (std::vector<double>{0, 1, 10, 11, 20}));
  }
  const auto same = on_three_ranks("graph (x: f32[2]) { y = broadcast(x) {root = 1} return y }", 2);
  for (const Tensor& y : same) EXPECT_EQ(y.reals(), (std::vector<double>{10, 11}));
}

// Six ranks as a mesh of two rows of three: rows are stride 1, columns stride 3.
TEST(Collectives, GroupsOfAMesh) {
  const Graph graph = parse_graph(R"(graph (x: f32[2, 3]) {
    row = all_reduce(x) {ranks = 3}
    column = all_reduce(x) {ranks = 2, stride = 3}
    joined = all_gather(x) {ranks = 2, stride = 3, axis = 1}
    cut = reduce_scatter(x) {ranks = 3, axis = 1}
    own = rank_slice(x) {ranks = 2, stride = 3}
    return row, column, joined, cut, own
  })",
                                  all_ops());
  run_in_lockstep(6, [&](Communicator& ranks) {
    const double r = ranks.rank(), column = ranks.rank() % 3;
    const Datum x = Tensor::of<double>(DType::F32, {2, 3}, {r, r + 10, r + 20, r, r, r + 40});
    reference::EvaluateOptions options;
    options.communicator = &ranks;
    const auto made = reference::evaluate(graph, {x}, options);
    const double row = r < 3 ? 3 : 12, pair = 2 * column + 3;
    EXPECT_EQ(made[0].tensor().reals(),
              (std::vector<double>{row, row + 30, row + 60, row, row, row + 120}));
    EXPECT_EQ(made[1].tensor().reals(),
              (std::vector<double>{pair, pair + 20, pair + 40, pair, pair, pair + 80}));
    const double a = column, b = column + 3;
    EXPECT_EQ(made[2].tensor().reals(), (std::vector<double>{a, a + 10, a + 20, b, b + 10, b + 20,
                                                             a, a, a + 40, b, b, b + 40}));
    const double above = row + 30 * column, below = column < 2 ? row : row + 120;
    EXPECT_EQ(made[3].tensor().reals(), (std::vector<double>{above, below}));
    EXPECT_EQ(made[4].tensor().reals(), r < 3 ? (std::vector<double>{r, r + 10, r + 20})
                                              : (std::vector<double>{r, r, r + 40}));
  });
}

TEST(Collectives, SendAndReceive) {
  const Graph sender =
      parse_graph("graph (x: f32[2]) { y = send(x) {to = 1} return y }", all_ops());
  const Graph receiver = parse_graph(
      "graph (x: f32[2]) { y = receive() {shape = [2], from = 0} z = add(x, y) return z }",
      all_ops());
  std::vector<double> found;
  run_in_lockstep(2, [&](Communicator& ranks) {
    reference::EvaluateOptions options;
    options.communicator = &ranks;
    const Datum x = Tensor::of<double>(DType::F32, {2}, {1.0 + ranks.rank(), 5});
    const auto results = reference::evaluate(ranks.rank() == 0 ? sender : receiver, {x}, options);
    if (ranks.rank() == 1) found = results.front().tensor().reals();
  });
  EXPECT_EQ(found, (std::vector<double>{3, 10}));
}

// A failing rank releases the waiting ones, and its error is reported.
TEST(Lockstep, FailureReleasesWaitingRanks) {
  EXPECT_EQ(error_summary([] {
              run_in_lockstep(3, [](Communicator& ranks) {
                if (ranks.rank() == 1) throw Error("rank 1 is out");
                ranks.barrier();
              });
            }),
            "rank 1 is out");
}

TEST(Lockstep, GathersTextsOfAnyLength) {
  run_in_lockstep(3, [](Communicator& ranks) {
    const std::string mine(static_cast<std::size_t>(ranks.rank()), 'x');
    EXPECT_EQ(ranks.all_gather(mine), (std::vector<std::string>{"", "x", "xx"}));
  });
}

}  // namespace
}  // namespace tenon::collective_test
