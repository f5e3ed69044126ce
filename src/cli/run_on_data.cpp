#include "app/targets.h"
#include "app/value_files.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "cli/run.h"
#include "distributed/batch_run.h"
#include "models/model.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tenon::cli {

int run_on_data(const app::RunOptions& options, OutputFormat format) {
  if (options.outputs.size() != 1 || options.outputs.front().rfind('@', 0) != 0) {
    throw Error("--data needs a folder for the results", ErrorKind::Usage)
        .hint("give --output=@DIR");
  }
  const std::string output = app::folder_of(options.outputs.front(), "--output");
  distributed::Shards shards(app::folder_of(options.data, "--data"), output);
  distributed::BatchRunOptions run;
  run.batch = options.batch;
  run.thread_count = options.threads;
  run.target = app::target_of(options.target, "native", options.precision);
  const Interrupt interrupt;
  const auto begin = std::chrono::steady_clock::now();
  const distributed::BatchRunResult result = distributed::run_shards(
      models::load_model(options.model), shards, output, run,
      [&](const std::string& shard) {
        err() << shard << ": done, " << shards.done_count() << " of " << shards.count() << "\n";
      },
      [] { return Interrupt::is_asked(); });
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double rate = static_cast<double>(result.samples) / std::max(elapsed, 1e-9);
  if (format == OutputFormat::Json) {
    out() << nlohmann::ordered_json{{"model", options.model},
                                    {"shards", result.shards},
                                    {"samples", result.samples},
                                    {"samples_per_s", rate},
                                    {"is_complete", result.is_complete}}
                 .dump(2)
          << "\n";
  } else {
    out() << "this process: " << result.shards << " of " << shards.count() << " shards, "
          << result.samples << " samples, " << format_real(std::round(rate * 10) / 10)
          << " samples/s; " << (result.is_complete ? "all are done" : "not all are done") << "\n";
  }
  return 0;
}

}  // namespace tenon::cli
