#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What a timing holds for: another machine, another generator of code or another number of threads
/// may have another winner.
struct TuningPlace {
  std::string machine;
  std::string generator;
  int threads = 1;
  bool operator==(const TuningPlace&) const = default;
};

/// One kernel that was timed, in full: no kernel is kept of which only some candidates were.
struct TunedKernel {
  TuningPlace place;
  /// canonical text of the nest
  std::string work;
  /// of the node it was met at first, for people
  std::string name;
  /// the one whose values decide; empty where none does
  std::string symbol;
  /// 0 where symbols decide
  double flops = 0;
  struct Timing {
    std::string candidate;
    /// the symbol's value; 0 where there is none
    std::int64_t at = 0;
    /// the least
    double seconds = 0;
    std::int64_t runs = 0;
  };
  struct Range {
    /// of the symbol; 0 and 0 where there is none
    std::int64_t lo = 0, hi = 0;
    /// the fastest
    std::string candidate;
  };
  std::vector<Timing> timings;
  /// in order, without gaps
  std::vector<Range> ranges;
};

/// Timed kernels in a file that several processes may read and write at once. Each kernel is
/// written in one transaction: whoever is interrupted loses the one being timed and no other.
class TuningCache {
 public:
  enum class Mode : std::uint8_t { Read, Write };
  /// Opens the file; to write, makes it and its folders where they are not there. Throws Error (of
  /// kind Device) where it cannot be opened, is damaged, or is not a tuning cache of this version.
  TuningCache(const std::string& path, Mode mode);
  /// One that is forgotten with this object.
  TuningCache();
  TuningCache(TuningCache&&) noexcept;
  ~TuningCache();

  std::optional<TunedKernel> find(const TuningPlace& place, const std::string& work) const;
  /// Takes the place of what was known of the same work.
  void store(const TunedKernel& kernel);
  /// All of them, by machine, generator, threads and name.
  std::vector<TunedKernel> all() const;

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

/// The user's cache: `tenon/tuning.sqlite` in $XDG_CACHE_HOME, or else in .cache of $HOME, or else
/// of the home folder that the system has for this user. Nothing where there is none of these.
std::optional<std::string> tuning_cache_path();
/// The same, told where these are; null, empty or relative paths are none.
std::optional<std::string> tuning_cache_path(const char* cache_home, const char* home,
                                             const char* home_of_user);

/// Removes the cache, whatever state it is in. Gives whether there was one. Throws Error (Device).
bool clear_tuning_cache(const std::string& path);

/// Kernels as a JSON text, and back. Throws Error that says where in the text something is wrong.
std::string to_json(const std::vector<TunedKernel>& kernels);
std::vector<TunedKernel> tuned_kernels_from_json(const std::string& text,
                                                 const std::string& source);

/// Whether a kernel's ranges and timings make sense; the reason where they do not.
std::optional<std::string> problem_of(const TunedKernel& kernel);

}  // namespace tenon
