#include "distributed/rank_budget.h"

#include "base/error.h"
#include "base/text.h"
#include "distributed/mpi.h"
#include "driver/compile.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace tenon::distributed {
namespace {

// Suggests a batch size, or a splitting of states, that would fit.
std::string what_would_fit(const RankNeeds& needs, std::uint64_t limit, const RankShares& shares) {
  const std::uint64_t outside = needs.outside_arena();
  if (outside < limit && needs.arena > 0) {
    // Activations grow with the number of samples.
    const auto samples = static_cast<std::int64_t>(static_cast<double>(limit - outside) /
                                                   static_cast<double>(needs.arena) *
                                                   static_cast<double>(shares.micro_batch_size));
    if (samples >= 1)
      return concat("--batch=", samples * shares.micro_batches, " would fit, ", samples,
                    " samples a part; or --budget=", limit, ", which runs steps again");
    return concat("not even one sample a part fits; --budget=", limit, " runs steps again");
  }
  const std::string whole =
      concat("parameters, gradients and moments alone take ", format_bytes(outside), " a rank");
  if (!shares.splits_parameters)
    return concat(whole, ": --split-states=parameters keeps 1/", shares.ranks,
                  " of them on each, --parallel=tensor:N computes in parts too");
  const auto more =
      static_cast<std::int64_t>(static_cast<double>(outside) / static_cast<double>(limit) *
                                    static_cast<double>(shares.ranks) +
                                1);
  return concat(whole, ": more than ", more, " ranks would hold them");
}

}  // namespace

void require_fits(const RankNeeds& needs, std::uint64_t limit, const RankShares& shares) {
  if (needs.total() <= limit) return;
  throw Error("a step does not fit into a rank's memory", ErrorKind::OutOfMemory)
      .expected("at most ", format_bytes(limit))
      .got(format_bytes(needs.total()), ": ", format_bytes(needs.states), " states, ",
           format_bytes(needs.exchanged), " exchanged between ranks, ", format_bytes(needs.arena),
           " arena of ", shares.micro_batch_size, " samples")
      .hint(what_would_fit(needs, limit, shares));
}

std::uint64_t memory_of_rank() {
  auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
               static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t allowed = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> allowed) bytes = std::min(bytes, allowed);
  return bytes / static_cast<std::uint64_t>(ranks_on_machine());
}

std::function<Program(Graph graph)> compiler_within(std::uint64_t arena_bytes,
                                                    const planning::BudgetRequest& request) {
  return [arena_bytes, request](Graph graph) {
    driver::CompileRequest plain;
    plain.is_untuned = true;
    plain.describes_step = true;
    codegen::Compiled made = driver::compile_model(std::move(graph), plain);
    if (made.program.arena_bytes <= arena_bytes) return std::move(made.program);
    planning::BudgetRequest within = request;
    within.arena_bytes = arena_bytes;
    return planning::planned_within(std::move(made.program), std::move(made.step_problem), within)
        ->program();
  };
}

}  // namespace tenon::distributed
