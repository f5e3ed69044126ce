#include "cli/plan_progress.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/out.h"

#include <fmt/format.h>

#include <cmath>

namespace tenon::cli {
namespace {

constexpr double kTerminalPeriod_s = 0.2, kFilePeriod_s = 5;

}  // namespace

void PlanProgress::begin(std::string name, double base_seconds) {
  name_ = std::move(name);
  base_seconds_ = base_seconds;
}

bool PlanProgress::goes_on(const memory::SearchProgress& progress) {
  const double waited_s = std::chrono::duration<double>(Clock::now() - shown_).count();
  if (waited_s >= (line_.is_terminal() ? kTerminalPeriod_s : kFilePeriod_s)) {
    shown_ = Clock::now();
    const std::string best =
        std::isinf(progress.seconds)
            ? concat("smallest ", format_bytes(progress.smallest_bytes))
            : fmt::format("best {:.3f} % more time", 100 * (progress.seconds / base_seconds_ - 1));
    line_.show(concat("budget ", name_, ": order ", progress.order + 1, " of ",
                      progress.order_count, ", ", progress.evaluation_count, " choices, ", best));
  }
  return !Interrupt::is_asked();
}

void PlanProgress::tell(const std::string& result) {
  shown_ = Clock::now();
  line_.show(concat("budget ", name_, ": ", result));
}

bool PlanProgress::end() {
  line_.end();
  const bool is_asked = Interrupt::is_asked();
  if (is_asked) err() << "stopped: the results so far\n";
  return is_asked;
}

}  // namespace tenon::cli
