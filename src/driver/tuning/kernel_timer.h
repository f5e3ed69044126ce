#pragma once

#include "codegen/compile.h"
#include "driver/compiled.h"
#include "driver/tuning/cache.h"

#include <map>
#include <memory>

namespace tenon {

/// Runs candidates for one nest of a graph, each compiled with the rest of its node, and times the
/// steps that are the nest's own. On a device a library's calls go by the fastest way that it
/// knows, which is timed first.
class KernelTimer {
 public:
  struct Settings {
    codegen::CompileOptions compile;
    int threads = 1;
    /// of the whole network: so much passes the caches between two runs
    std::size_t constant_bytes = 0;
    /// of the ways that a device's libraries know
    TuningCache* cache = nullptr;
    /// as in TuneOptions
    std::function<Program(Program)> ready = {};
  };
  KernelTimer(const Graph& graph, const codegen::Decision& decision, Settings settings);
  ~KernelTimer();

  struct Measure {
    /// the least; infinity: a device does not run it
    double seconds = 0;
    std::int64_t runs = 0;
  };
  /// How long the candidates take where the symbol has this value. They take turns, so that a
  /// machine that is busy for a while is so for all; who is clearly slower than another drops out.
  /// `is_interrupted` is asked between runs; after a yes what comes back is not to be used.
  std::map<std::size_t, Measure> measure(const std::vector<std::size_t>& candidates,
                                         const std::string& symbol, std::int64_t at,
                                         const std::function<bool()>& is_interrupted);

  /// The greatest value of the symbol, up to `most`, at which operands and results are of a size
  /// that is good to time.
  std::int64_t greatest_value(const std::string& symbol, std::int64_t least,
                              std::int64_t most) const;

 private:
  struct Prepared;
  Prepared& prepared(std::size_t candidate);
  bool is_for_device() const { return settings_.compile.device.has_value(); }
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

}  // namespace tenon
