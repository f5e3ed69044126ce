#pragma once

#include "codegen/compile.h"
#include "host/compiled.h"
#include "tune/cache.h"

#include <map>
#include <memory>

namespace tenon::tune {

/// Times candidates for one nest of a graph, each compiled with the rest of its node, by the steps
/// that belong to the nest. On a device, library calls use their fastest algorithm, which is timed
/// first.
class KernelTimer {
 public:
  struct Settings {
    codegen::CompileOptions compile;
    int threads = 1;
    /// constants of the whole network, which pass through the caches between two runs
    std::size_t constant_bytes = 0;
    /// cache for library algorithms
    TuningCache* cache = nullptr;
    /// as in TuneOptions
    std::function<Program(Program)> ready = {};
  };
  KernelTimer(const Graph& graph, const codegen::Decision& decision, Settings settings);
  ~KernelTimer();

  struct Measure {
    /// shortest time; infinity if the device does not support it
    double seconds = 0;
    std::int64_t runs = 0;
  };
  /// Times the candidates at this value of the symbol, interleaved, so that interference affects
  /// all of them; drops a candidate that is clearly slower than another. Polls `is_interrupted`
  /// between runs; once it returns true, the result is invalid.
  std::map<std::size_t, Measure> measure(const std::vector<std::size_t>& candidates,
                                         const std::string& symbol, std::int64_t at,
                                         const std::function<bool()>& is_interrupted);

  /// Returns the largest value of the symbol, up to `most`, at which operands and results have a
  /// suitable size for timing.
  std::int64_t greatest_value(const std::string& symbol, std::int64_t least,
                              std::int64_t most) const;

 private:
  struct Prepared;
  Prepared& prepared(std::size_t candidate);
  bool is_for_device() const { return settings_.compile.target->spec().is_gpu(); }
  double run_once(Prepared& candidate);
  void prepare(Prepared& candidate, const std::string& symbol, std::int64_t at);
  DimBindings values(const std::string& symbol, std::int64_t at) const;

  Graph alone_;
  std::string work_;
  Settings settings_;
  std::map<std::size_t, std::unique_ptr<Prepared>> prepared_;
  std::map<std::string, Shape> shapes_;
  /// of those shapes
  std::vector<Datum> inputs_;
  std::vector<char> other_data_;
};

}  // namespace tenon::tune
