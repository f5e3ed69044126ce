#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tenon {

/// Files of a folder that any number of processes, on any machines that see the folders, work off
/// together: each takes one that is neither done nor taken. A claim is a file beside the results
/// that its holder touches every second; one that was not for ten is anybody's. Results appear
/// under their names only when they are complete, so whoever comes back finds what is left to do.
class Shards {
 public:
  /// The `.npz` files of `input`, by name; results go to `output`, which is made. Throws Error
  /// (Usage) where there is none.
  Shards(std::string input, std::string output);
  ~Shards();
  Shards(const Shards&) = delete;

  std::size_t count() const { return names_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  std::string input_path(const std::string& name) const;
  std::string result_path(const std::string& name) const;
  bool is_done(const std::string& name) const;
  std::size_t done_count() const;

  /// One that this process holds from now on; waits while others hold all that is left; nothing
  /// when all is done, or when `should_stop` says so.
  template <class ShouldStop>
  std::optional<std::string> take(const ShouldStop& should_stop) {
    while (!should_stop()) {
      if (auto name = try_take()) return name;
      if (done_count() == count()) return std::nullopt;
      pause();
    }
    return std::nullopt;
  }
  /// Its result is there: nobody needs the claim any more.
  void release(const std::string& name);

 private:
  std::optional<std::string> try_take();
  bool claim(const std::string& name);
  std::string claim_path(const std::string& name) const;
  static void pause();
  void keep_alive();

  std::string input_, output_;
  std::vector<std::string> names_;
  std::size_t begin_ = 0;  // where this process looks first, so that not all want the same one
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> held_;
  bool is_closed_ = false;
  std::thread keeper_;
};

}  // namespace tenon
