#include "app/compile_request.h"

#include "base/error.h"
#include "base/text.h"
#include "driver/device_kernels.h"
#include "driver/tuned_kernels.h"

#include <limits>
#include <memory>

namespace tenon::app {

std::optional<double> tuning_seconds(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "true") return std::numeric_limits<double>::infinity();
  const std::optional<double> seconds = parse_real(text);
  if (!seconds || !(*seconds > 0)) {
    throw Error("no time to tune for", ErrorKind::Usage)
        .expected("--tune or --tune=SECONDS")
        .got(text);
  }
  return seconds;
}

std::function<Graph(Graph)> kernel_notes(driver::CompileRequest request) {
  const bool times = request.tune_seconds.has_value();
  const bool is_gpu = request.target.is_gpu();
  if (!is_gpu && times) {
    throw Error("kernels of a processor are timed by `tenon tune`", ErrorKind::Usage)
        .hint("tenon tune MODEL --as-is, then --kernels; or give --target=cuda");
  }
  const auto cache =
      std::make_shared<std::optional<tune::TuningCache>>(driver::open_tuning_cache(times, request));
  if (!is_gpu) {
    return [cache](Graph graph) {
      return *cache ? driver::with_tuned_kernels(std::move(graph), **cache, 0) : graph;
    };
  }
  if (!*cache) cache->emplace();  // an empty one
  return [cache, compiling = driver::target_options(request.target), times,
          on_notice = std::move(request.on_notice)](Graph graph) {
    driver::DeviceKernels noted =
        driver::with_device_kernels(std::move(graph), **cache, compiling, times);
    if (on_notice) {
      on_notice(concat("kernels: ", noted.timed, " timed",
                       noted.device.empty() ? "" : concat(" on ", noted.device), ", ",
                       noted.untuned, " untuned"));
    }
    return std::move(noted.graph);
  };
}

}  // namespace tenon::app
