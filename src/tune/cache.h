#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::tune {

/// Key of timings: they hold for one machine, one code generator and one number of threads.
struct TuningPlace {
  std::string machine;
  std::string generator;
  int threads = 1;
  bool operator==(const TuningPlace&) const = default;
};

/// Timings of one kernel, always of all its candidates.
struct TunedKernel {
  TuningPlace place;
  /// canonical text of the nest
  std::string work;
  /// name of the first node with this work, for display
  std::string name;
  /// the symbol whose value decides; may be empty
  std::string symbol;
  /// 0 for symbolic work
  double flops = 0;
  struct Timing {
    std::string candidate;
    /// the symbol's value; 0 without a symbol
    std::int64_t at = 0;
    /// shortest time
    double seconds = 0;
    std::int64_t runs = 0;
  };
  struct Range {
    /// values of the symbol; 0 and 0 without one
    std::int64_t lo = 0, hi = 0;
    /// the fastest candidate
    std::string candidate;
  };
  std::vector<Timing> timings;
  /// in order, without gaps
  std::vector<Range> ranges;
};

/// Tuning cache: kernel timings in a file that several processes may read and write concurrently.
/// Each kernel is written in one transaction: an interruption loses only the kernel being timed.
class TuningCache {
 public:
  enum class Mode : std::uint8_t { Read, Write };
  /// Opens the file; for writing, creates it with its folders. Throws Error (Device) if it cannot
  /// be opened, is damaged, or is not a tuning cache of this version.
  TuningCache(const std::string& path, Mode mode);
  /// Creates a cache in memory.
  TuningCache();
  TuningCache(TuningCache&&) noexcept;
  ~TuningCache();

  std::optional<TunedKernel> find(const TuningPlace& place, const std::string& work) const;
  /// Replaces earlier timings of the same work.
  void store(const TunedKernel& kernel);
  /// Returns all kernels, sorted by machine, generator, threads and name.
  std::vector<TunedKernel> all() const;

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

/// Returns `tuning.sqlite` in the user's cache folder; nullopt without such a folder.
std::optional<std::string> tuning_cache_path();

/// Removes the cache, even a damaged one. Returns whether it existed. Throws Error (Device).
bool clear_tuning_cache(const std::string& path);

/// Convert kernels to JSON text and back. Throws Error with the location of an invalid part.
std::string to_json(const std::vector<TunedKernel>& kernels);
std::vector<TunedKernel> tuned_kernels_from_json(const std::string& text,
                                                 const std::string& source);

/// Returns the reason if a kernel's ranges and timings are inconsistent.
std::optional<std::string> problem_of(const TunedKernel& kernel);

}  // namespace tenon::tune
