#include "runtime/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

namespace tenon::inline runtime {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Returns the first `count` numbers of a file, or an empty list if it contains anything else
// ("max", "-1").
std::vector<double> positive_numbers(const std::string& path, std::size_t count) {
  std::ifstream file(path);
  std::vector<double> numbers;
  for (double number = 0; numbers.size() < count && file >> number && number > 0;)
    numbers.push_back(number);
  return numbers.size() == count ? numbers : std::vector<double>();
}

double limit_of_group(const std::string& folder) {
  if (const auto both = positive_numbers(folder + "/cpu.max", 2); !both.empty())
    return both[0] / both[1];
  const auto quota = positive_numbers(folder + "/cpu.cfs_quota_us", 1);
  const auto period = positive_numbers(folder + "/cpu.cfs_period_us", 1);
  return quota.empty() || period.empty() ? kNoLimit : quota[0] / period[0];
}

// Minimum over the group and its ancestors. In a container the path often exists only on the host:
// missing groups set no limit, and the container's own group is the mount point itself.
double limit_of_path(const std::string& mount, std::string path) {
  double limit = limit_of_group(mount);
  for (; path.size() > 1; path.resize(path.rfind('/'))) {
    limit = std::min(limit, limit_of_group(mount + path));
    if (path.rfind('/') == std::string::npos) break;
  }
  return limit;
}

int processors_of_affinity() {
  // The system refuses sets smaller than its own, but does not report the size.
  for (int processors = CPU_SETSIZE; processors <= 1 << 20; processors *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(processors));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(processors));
    const bool is_known = sched_getaffinity(0, bytes, set) == 0;
    const int count = is_known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (is_known) return count;
  }
  return 1;
}

}  // namespace

double group_limit(const std::string& root) {
  const std::string mounts = root + "/sys/fs/cgroup";
  double limit = std::min(limit_of_group(mounts), limit_of_group(mounts + "/cpu"));
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    std::istringstream parts(line);
    std::string number, controllers, path;
    if (!std::getline(parts, number, ':') || !std::getline(parts, controllers, ':') ||
        !std::getline(parts, path))
      continue;
    if (controllers.empty()) {
      limit =
          std::min({limit, limit_of_path(mounts, path), limit_of_path(mounts + "/unified", path)});
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      limit = std::min({limit, limit_of_path(mounts + "/cpu", path),
                        limit_of_path(mounts + "/" + controllers, path)});
    }
  }
  return limit;
}

int usable_threads(const std::string& root) {
  const double limit = std::ceil(group_limit(root));
  const int count = processors_of_affinity();
  return limit < count ? std::max(1, static_cast<int>(limit)) : std::max(1, count);
}

}  // namespace tenon::inline runtime
