#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

// Options that several subcommands have.
namespace tenon::cli {

inline constexpr const char* kModelHelp =
    "a model file of any format, - for standard input, zoo:NAME[?param=value,…] or "
    "random:SEED[?nodes=COUNT]";
inline constexpr const char* kModelOrProgramHelp =
    "a model, or a program that `compile` wrote (FILE.tnn)";
inline constexpr const char* kTargetHelp =
    "reference (slow interpreter), cpu (compiled) or cuda[:sm_90a]";
inline constexpr const char* kKernelsHelp =
    "--to=aitemplate: name the kernels that tuning found fastest";
inline constexpr const char* kBudgetHelp =
    "memory limit of a run: 1GiB in total, or 60% of the arena without a budget; values are "
    "recomputed to stay within it";
inline constexpr const char* kSplitHelp =
    "with --budget: allow gradient accumulation over micro-batches";
inline constexpr const char* kSwapHelp =
    "with --budget: allow offload of values to a file (in TMPDIR), on a GPU to host memory";
inline constexpr const char* kCheckNanHelp =
    "find the first node that produces a NaN or an infinity; write its operands to DIR";
inline constexpr const char* kCheckRangeHelp =
    "find the first node that produces a number of larger magnitude";
inline constexpr const char* kDumpHelp =
    "DIR[:PATTERN]: write every value whose name matches as a .npy file";

/// The largest count of runs, samples or rows.
inline constexpr std::int64_t kMostRuns = 1'000'000'000;

/// Validates an integer of that range.
CLI::Validator whole_number(std::int64_t least, std::int64_t most);
/// Validates a finite nonnegative number, excluding 0 unless `or_zero`.
CLI::Validator positive_number(bool or_zero);
CLI::Validator thread_count();
CLI::Validator tolerance();

/// --batch, --shapes, --threads, --precision, --prefer, --tune, --untuned, --no-winograd and
/// --trust-program, with the same meaning in every subcommand.
void add_batch(CLI::App& app, std::int64_t& batch);
void add_shapes(CLI::App& app, std::vector<std::string>& shapes);
void add_threads(CLI::App& app, int& threads);
void add_precision(CLI::App& app, std::string& precision);
void add_preferred(CLI::App& app, std::vector<std::string>& preferred);
void add_tuning(CLI::App& app, std::string& tune);
void add_untuned(CLI::App& app, bool& is_untuned);
void add_no_winograd(CLI::App& app, bool& no_winograd);
void add_trust(CLI::App& app, bool& trusts);

}  // namespace tenon::cli
