#include "runtime/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

namespace tenon::processors_test {
namespace {

namespace fs = std::filesystem;

// Temporary copy of the files that /proc and /sys would contain.
class ControlGroups : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) /
            ("groups_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  double limit() const { return group_limit(root_.string()); }

  fs::path root_;
};

TEST_F(ControlGroups, UnlimitedWithoutGroups) { EXPECT_TRUE(std::isinf(limit())); }

TEST_F(ControlGroups, Version2) {
  put("proc/self/cgroup", "0::/jobs/this\n");
  put("sys/fs/cgroup/jobs/this/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(limit(), 1.5);
}

TEST_F(ControlGroups, TighterParentGroup) {
  put("proc/self/cgroup", "0::/jobs/this\n");
  put("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  put("sys/fs/cgroup/jobs/this/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(limit(), 0.5);
}

TEST_F(ControlGroups, UnlimitedMax) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(limit()));
}

TEST_F(ControlGroups, Version1) {
  put("proc/self/cgroup", "7:cpuset:/\n3:cpu,cpuacct:/jobs\n2:memory:/jobs\n");
  put("sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", "300000\n");
  put("sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(limit(), 3);
}

TEST_F(ControlGroups, Version1Unlimited) {
  put("proc/self/cgroup", "3:cpu:/jobs\n");
  put("sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_TRUE(std::isinf(limit()));
}

TEST_F(ControlGroups, ContainerWithHostPath) {
  put("proc/self/cgroup", "0::/docker/0123456789\n");
  put("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(limit(), 2);
}

TEST_F(ControlGroups, IgnoresMalformedFiles) {
  put("proc/self/cgroup", "nonsense\n:\n::\n1:cpu:relative\n0::relative/path\n");
  put("sys/fs/cgroup/cpu.max", "many 0\n");
  EXPECT_TRUE(std::isinf(limit()));
}

TEST_F(ControlGroups, RoundsFractionsUpToOneThread) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(usable_threads(root_.string()), 1);
}

TEST_F(ControlGroups, ThreadsFollowAffinity) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(usable_threads(root_.string()), CPU_COUNT(&before));
  int in_thread = 0;
  std::thread([&] {  // the affinity applies to this thread only
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int k = 0; k < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++k) {
      if (CPU_ISSET(k, &before)) CPU_SET(k, &one);
    }
    if (sched_setaffinity(0, sizeof(one), &one) == 0) in_thread = usable_threads(root_.string());
  })
      .join();
  EXPECT_EQ(in_thread, 1);
}

}  // namespace
}  // namespace tenon::processors_test
