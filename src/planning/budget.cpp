#include "planning/budget.h"

#include "base/error.h"
#include "base/text.h"
#include "memory/order.h"
#include "memory/peak.h"
#include "memory/size_text.h"
#include "planning/swap_link.h"
#include "program/arena.h"
#include "runtime/cuda/library_step.h"
#include "runtime/device.h"
#include "runtime/processors.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::planning {
namespace {

// Required speedup for replacing a running plan.
constexpr double kWorthIt = 0.99;
// With more items, the search stops at the first order that has a plan.
constexpr std::size_t kManyItems = 1'000;

std::uint64_t bytes_of(const Program::Buffer& buffer) {
  std::uint64_t bytes = buffer.element_bytes;
  for (const Extent& dim : buffer.dims) bytes *= static_cast<std::uint64_t>(dim.number());
  return bytes;
}

}  // namespace

std::string to_string(const BudgetReport& report) {
  std::string text = fmt::format("arena {} of {}", format_bytes(report.arena_bytes),
                                 format_bytes(report.plain_arena_bytes));
  if (report.micro_batches > 1)
    text += fmt::format(", the batch in {} parts", report.micro_batches);
  if (report.repeated_count > 0) {
    text += fmt::format(", {} steps run again beside {}", report.repeated_count,
                        report.step_count - report.repeated_count);
  }
  if (report.swapped_bytes > 0) {
    text += fmt::format(", {} swapped to {} of {}", format_bytes(report.swapped_bytes),
                        report.swap_place, format_bytes(report.swap_place_bytes));
  }
  text += fmt::format(", {:.1f} % more time by {}", 100 * report.extra_time(),
                      report.is_measured ? "the steps' times" : "estimate");
  return text + fmt::format("; {} beside the arena", format_bytes(report.outside_bytes));
}

std::uint64_t arena_budget(const std::string& text, std::uint64_t whole, std::uint64_t outside) {
  const std::string_view trimmed = trim(text);
  if (!trimmed.empty() && trimmed.back() == '%') {
    const auto share = parse_real(trimmed.substr(0, trimmed.size() - 1));
    if (share && *share > 0 && *share <= 1000) {
      return static_cast<std::uint64_t>(*share / 100 * static_cast<double>(whole));
    }
  } else if (const auto bytes = memory::parse_bytes(trimmed); bytes && *bytes > 0) {
    if (*bytes > outside) return *bytes - outside;
    throw Error("the budget does not hold what has to be there all the time",
                ErrorKind::OutOfMemory)
        .expected("more than ", outside, " bytes (", format_bytes(outside),
                  "): inputs, outputs, constants, code, the kernels' own memory")
        .got(*bytes, " bytes (", format_bytes(*bytes), ")")
        .hint("a smaller batch or an optimizer that keeps less needs less");
  }
  throw Error("a budget is a number of bytes or a share of the memory without one",
              ErrorKind::Usage)
      .expected("more than nothing, such as 4GiB, 500MB, 1048576 or 60%")
      .got("'", text, "'");
}

namespace {

// On a device scratch is allocated per block, not per thread. The workspace of libraries is only
// known when the program is loaded; this is its upper bound.
std::uint64_t device_scratch_bytes(const Program& program) {
  std::uint64_t most = 0;
  for (const Program::Step& step : program.steps) {
    if (step.kind != Program::StepKind::Kernel) continue;
    const Program::Kernel& kernel = program.kernels[step.kernel];
    const std::int64_t own = kernel.scratch_bytes.value({}) * step.work.value({});
    most = std::max(
        most, kernel.library.empty() ? static_cast<std::uint64_t>(own) : cuda::kMostWorkspaceBytes);
  }
  return most;
}

}  // namespace

std::uint64_t bytes_outside_arena(const Program& program, int threads) {
  std::uint64_t bytes = program.constant_bytes + program.code.size();
  for (const Program::Buffer& buffer : program.buffers) {
    const bool is_port =
        buffer.place == Program::BufferKind::Input || buffer.place == Program::BufferKind::Output;
    if (is_port) bytes += bytes_of(buffer);
  }
  std::uint64_t scratch = 0;
  for (const Program::Kernel& kernel : program.kernels) {
    scratch = std::max(scratch, static_cast<std::uint64_t>(kernel.scratch_bytes.value({})));
  }
  if (is_for_device(program)) return bytes + device_scratch_bytes(program);
  return bytes + scratch * static_cast<std::uint64_t>(threads > 0 ? threads : usable_threads());
}

BudgetPlanner::BudgetPlanner(Program plain, codegen::StepProblem described,
                             const BudgetRequest& request)
    : plain_(std::move(plain)), described_(std::move(described)), may_swap_(request.may_swap) {
  report_.plain_arena_bytes = plain_.arena_bytes;
  report_.outside_bytes = bytes_outside_arena(plain_, request.threads);
  report_.budget_bytes =
      request.arena_bytes ? *request.arena_bytes
                          : arena_budget(request.budget, plain_.arena_bytes, report_.outside_bytes);
  if (may_swap_) {
    allow_swaps(described_.problem, swap_link(plain_));
    report_.swap_place = described_.problem.link->name;
  }
  std::vector<memory::Problem> orders = memory::candidate_orders(described_.problem);
  const bool is_large = described_.problem.items.size() > kManyItems;
  memory::OrderedResult found = memory::search_orders(orders, search_options(), !is_large);
  described_.problem = std::move(orders[found.order]);
  if (!found.result.is_within_budget) refuse(found.result.plan);
  take(std::move(found.result.plan));
}

memory::SearchOptions BudgetPlanner::search_options() const {
  memory::SearchOptions options;
  options.budget_bytes = report_.budget_bytes;
  options.may_swap = may_swap_;
  options.place.alignment = kArenaAlignment;
  return options;
}

void BudgetPlanner::take(memory::Plan plan) {
  plan_ = std::move(plan);
  report_.arena_bytes = plan_.arena_bytes;
  report_.plain_seconds = described_.problem.seconds();
  report_.seconds = plan_.seconds;
}

void BudgetPlanner::set_micro_batches(std::int64_t micro_batches, std::uint64_t whole_arena_bytes) {
  report_.micro_batches = micro_batches;
  report_.plain_arena_bytes = whole_arena_bytes;
}

Program BudgetPlanner::program() {
  step_items_.clear();
  Program made = codegen::apply_plan(plain_, described_, plan_, &step_items_);
  report_.step_count = made.steps.size();
  report_.repeated_count = made.steps.size() - plain_.steps.size();
  report_.swapped_bytes = report_.swap_place_bytes = 0;
  for (const Program::Transfer& transfer : made.transfers) {
    const std::uint64_t bytes = bytes_of(made.buffers[transfer.buffer]);
    if (transfer.is_out) report_.swapped_bytes += bytes;
    report_.swap_place_bytes = std::max(report_.swap_place_bytes, transfer.file_offset + bytes);
  }
  return made;
}

bool BudgetPlanner::learn(std::span<const double> step_seconds) {
  TENON_ASSERT(step_seconds.size() == step_items_.size(), "a time for each step");
  std::vector<double> seconds(described_.steps.size(), 0);
  std::vector<double> counts(described_.steps.size(), 0);
  for (std::size_t k = 0; k < step_items_.size(); ++k) {
    const std::uint32_t item = step_items_[k];
    seconds[item] += step_seconds[k];
    // An item of several steps counts once.
    counts[item] += 1.0 / static_cast<double>(described_.steps[item].size());
  }
  for (memory::Item& item : described_.problem.items) {
    if (counts[item.number] > 0)
      item.alternatives[0].seconds = seconds[item.number] / counts[item.number];
  }
  report_.is_measured = true;
  memory::Plan now = plan_;
  now.seconds = memory::seconds_of(described_.problem, now.events);
  memory::SearchResult found = memory::search(described_.problem, search_options());
  const bool is_better = found.is_within_budget && found.plan.seconds < kWorthIt * now.seconds;
  take(is_better ? std::move(found.plan) : std::move(now));
  return is_better;
}

std::unique_ptr<BudgetPlanner> planned_within(Program plain,
                                              std::optional<codegen::StepProblem> described,
                                              const BudgetRequest& request) {
  if (!described || !plain.is_kernel_only()) {
    throw Error("the memory of this program cannot be planned", ErrorKind::Unsupported)
        .at("program '", plain.name, "'")
        .expected("kernels one after another, with extents that are known")
        .got(!plain.is_kernel_only() ? "control flow or operators without kernels between them"
                                     : "extents that inputs decide");
  }
  return std::make_unique<BudgetPlanner>(std::move(plain), *std::move(described), request);
}

void BudgetPlanner::refuse(const memory::Plan& smallest) const {
  const memory::Problem& problem = described_.problem;
  std::uint32_t largest = 0;
  for (std::uint32_t i = 1; i < problem.items.size(); ++i) {
    if (memory::working_set_bytes(problem, i) > memory::working_set_bytes(problem, largest))
      largest = i;
  }
  const std::uint64_t bound = memory::working_set_bytes(problem, largest);
  Error error("no plan keeps the arena within the budget", ErrorKind::OutOfMemory);
  error.at(memory::text_of(memory::peak_of(smallest, problem)));
  error.expected("at most ", report_.budget_bytes, " bytes (", format_bytes(report_.budget_bytes),
                 ")");
  error.got("at least ", smallest.arena_bytes, " bytes (", format_bytes(smallest.arena_bytes),
            "), the least found");
  std::string hint =
      bound > report_.budget_bytes
          ? concat("proven: step '", problem.items[largest].name, "' alone needs ", bound, " bytes")
          : concat("proven is only that ", bound, " bytes are needed");
  hint += may_swap_ || bound > report_.budget_bytes ? "; a smaller batch needs less"
                                                    : "; --swap may help, or a smaller batch";
  throw error.hint(hint);
}

}  // namespace tenon::planning
