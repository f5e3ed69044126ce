#include "profile/machine_peak.h"

#include <gtest/gtest.h>

namespace tenon::machine_peak_test {
namespace {

TEST(MachinePeak, MeasuresPositivePeaks) {
  const profile::MachinePeak peak = profile::measure_machine_peak(1);
  EXPECT_GT(peak.bytes_per_s, 1e6);
}

// Small operations are compute-bound; of large constants only the bytes that exceed the last-level
// cache are read per run.
TEST(MachinePeak, LeastTime) {
  const profile::MachinePeak peak{
      .flops_per_s = 1e11, .bytes_per_s = 1e10, .cache_bytes = 50'000'000};
  EXPECT_DOUBLE_EQ(profile::least_ms(peak, 1e9, 0), 10);
  EXPECT_DOUBLE_EQ(profile::least_ms(peak, 1e9, 50'000'000), 10);
  EXPECT_DOUBLE_EQ(profile::least_ms(peak, 1e9, 250'000'000), 20);
  EXPECT_DOUBLE_EQ(profile::least_ms({}, 1e9, 250'000'000), 0);
}

}  // namespace
}  // namespace tenon::machine_peak_test
