#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tenon::distributed {

/// Work queue of files in a folder, shared by any number of processes on any machines that see the
/// folder: each takes a file that is neither done nor claimed. A claim is a file next to the
/// results that its holder touches every second; after ten seconds without that it is stale, and
/// any process may take it. Results appear under their names only when complete, so that a restart
/// continues with the remaining files.
class Shards {
 public:
  /// Lists the `.npz` files of `input` by name; creates `output` for the results. Throws Error
  /// (Usage) for an empty list.
  Shards(std::string input, std::string output);
  ~Shards();
  Shards(const Shards&) = delete;

  std::size_t count() const { return names_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  std::string input_path(const std::string& name) const;
  std::string result_path(const std::string& name) const;
  bool is_done(const std::string& name) const;
  std::size_t done_count() const;

  /// Claims a file for this process; waits while other processes hold all remaining files. Returns
  /// nullopt when all are done, or when `should_stop` returns true.
  template <class ShouldStop>
  std::optional<std::string> take(const ShouldStop& should_stop) {
    while (!should_stop()) {
      if (auto name = try_take()) return name;
      if (done_count() == count()) return std::nullopt;
      pause();
    }
    return std::nullopt;
  }
  /// Removes the claim once the result exists.
  void release(const std::string& name);

 private:
  std::optional<std::string> try_take();
  bool claim(const std::string& name);
  std::string claim_path(const std::string& name) const;
  static void pause();
  void keep_alive();

  std::string input_, output_;
  std::vector<std::string> names_;
  // start of this process's search, so that processes do not compete for the same file
  std::size_t begin_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> held_;
  bool is_closed_ = false;
  std::thread keeper_;
};

}  // namespace tenon::distributed
