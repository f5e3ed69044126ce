#include "cli/options.h"

#include "base/error.h"
#include "base/text.h"

#include <cmath>
#include <optional>

namespace tenon::cli {
namespace {

constexpr std::int64_t kMostThreads = 4096;

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const std::string expected = concat("a whole number from ", least, " to ", most);
  return CLI::Validator(
      [=](const std::string& text) {
        const std::optional<std::int64_t> number = parse_integer(text);
        return number && *number >= least && *number <= most
                   ? ""
                   : concat("expected ", expected, ", got '", text, "'");
      },
      "");
}

CLI::Validator positive_number(bool or_zero) {
  return CLI::Validator(
      [=](const std::string& text) {
        const std::optional<double> number = parse_real(text);
        const bool is_fit =
            number && std::isfinite(*number) && (*number > 0 || (or_zero && *number == 0));
        return is_fit ? ""
                      : concat("expected a number ", or_zero ? "of 0 or more" : "above 0",
                               ", got '", text, "'");
      },
      "");
}

CLI::Validator thread_count() { return whole_number(1, kMostThreads); }

CLI::Validator tolerance() { return positive_number(true); }

void add_batch(CLI::App& app, std::int64_t& batch) {
  app.add_option("--batch", batch,
                 "batch size: the first extent of the inputs (the second if a recurrent layer "
                 "iterates over the "
                 "first), if the graph allows another one")
      ->check(whole_number(1, kMostRuns));
}

void add_shapes(CLI::App& app, std::vector<std::string>& shapes) {
  app.add_option(
      "--shapes", shapes,
      "NAME:1x3x224x224, …: extents of inputs, for symbols or if the graph allows other ones");
}

void add_threads(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "threads (default: as many as the process may use)")
      ->check(thread_count());
}

void add_precision(CLI::App& app, std::string& precision) {
  app.add_option(
      "--precision", precision,
      "f16 or bf16: mixed precision; tf32: only for contractions, on a GPU; int8: integer "
      "contractions of a quantized model, on a GPU");
}

void add_preferred(CLI::App& app, std::vector<std::string>& preferred) {
  app.add_option(
         "--prefer", preferred,
         "prefer these candidates where they apply: wgmma, mma, library, loops on a GPU; tiles, "
         "winograd, … on a CPU")
      ->type_name("NAME,…")
      ->delimiter(',');
}

void add_tuning(CLI::App& app, std::string& tune) {
  app.add_flag("--tune", tune,
               "time the candidates of each kernel first, for SECONDS or until all are timed")
      ->type_name("[=SECONDS]");
}

void add_untuned(CLI::App& app, bool& is_untuned) {
  app.add_flag("--untuned", is_untuned,
               "choose kernels by the cost model; ignore the tuning cache");
}

void add_no_winograd(CLI::App& app, bool& no_winograd) {
  app.add_flag("--no-winograd", no_winograd, "compute no convolution by Winograd");
}

void add_trust(CLI::App& app, bool& trusts) {
  app.add_flag("--trust-program", trusts,
               "run a program with any file name; programs are machine code, like executables");
}

}  // namespace tenon::cli
