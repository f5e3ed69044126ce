#include "unit/memory/plan_checker.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tenon::testing {
namespace {

using memory::Event;
using memory::Plan;
using memory::Problem;

struct Content {
  std::uint32_t value = 0, made_at = 0;
  bool operator==(const Content&) const = default;
};

class Player {
 public:
  Player(const Problem& problem, const Plan& plan) : problem_(problem), plan_(plan) {}

  std::string run() {
    std::uint64_t highest = 0;
    for (std::size_t k = 0; k < plan_.blocks.size(); ++k) {
      const auto& storage = plan_.blocks[k];
      highest = std::max(highest, storage.offset + storage.bytes);
      if (storage.begin >= storage.end || storage.end > plan_.events.size())
        return say("a storage outside of time");
      if (storage.instances.empty()) workspace_[storage.begin] = k;
      for (const auto& instance : storage.instances) {
        if (instance.value >= problem_.values.size()) return say("a storage of no value");
        if (storage.bytes < problem_.values[instance.value].bytes)
          return say("a storage too small");
        if (!place_.emplace(std::pair(instance.value, instance.made_at), storage.offset).second) {
          return say("an instance in two places");
        }
      }
    }
    if (highest != plan_.arena_bytes) return say("the arena is not as large as claimed");
    std::set<std::uint32_t> run;
    for (event_ = 0; event_ < plan_.events.size() && fault_.empty(); ++event_) {
      const Event& event = plan_.events[event_];
      const bool is_run = event.kind == Event::Kind::Run;
      if (event.index >= (is_run ? problem_.items.size() : problem_.values.size()))
        return say("no such index");
      switch (event.kind) {
        case Event::Kind::Run:
          play_run(event, run.insert(event.index).second);
          break;
        case Event::Kind::Out:
          play_out(event.index);
          break;
        case Event::Kind::Free:
          play_free(event.index);
          break;
        case Event::Kind::In:
          play_in(event.index);
          break;
      }
    }
    if (!fault_.empty()) return fault_;
    if (run.size() != problem_.items.size()) return say("an item never runs");
    for (std::uint32_t v = 0; v < problem_.values.size(); ++v) {
      if (problem_.values[v].is_output && !holds(v)) return say("an output is gone at the end");
    }
    if (!leaving_.empty()) return say("a copy is never waited for");
    if (std::abs(clock_ - plan_.seconds) > 1e-9 * std::max(1.0, clock_))
      return say("the time is not as claimed");
    return fault_;
  }

 private:
  std::string say(std::string what) {
    if (fault_.empty()) fault_ = what + " (event " + std::to_string(event_) + ")";
    return fault_;
  }

  // Returns whether the newest instance of the value still has all its bytes.
  bool holds(std::uint32_t value) {
    const auto newest = newest_.find(value);
    if (newest == newest_.end()) return false;
    const std::uint64_t bytes = problem_.values[value].bytes;
    if (bytes == 0) return true;
    const auto at = memory_.find(newest->second.second);
    return at != memory_.end() && at->second.first == newest->second.second + bytes &&
           at->second.second == newest->second.first;
  }

  // Overwrites [low, high) and invalidates every previous content of it entirely.
  void write(std::uint64_t low, std::uint64_t high, const Content* content) {
    for (auto it = memory_.begin(); it != memory_.end();) {
      const bool meets = it->first < high && low < it->second.first;
      if (meets && is_leaving(it->second.second))
        say("bytes are overwritten while they are copied out");
      it = meets ? memory_.erase(it) : std::next(it);
    }
    if (content != nullptr && high > low) memory_[low] = {high, *content};
  }

  bool is_leaving(const Content& content) const {
    const auto found = leaving_.find(content.value);
    return found != leaving_.end() && found->second.first == content;
  }

  void make(std::uint32_t value) {
    const auto place = place_.find({value, static_cast<std::uint32_t>(event_)});
    if (place == place_.end()) {
      say("a result has no place");
      return;
    }
    const Content content{value, static_cast<std::uint32_t>(event_)};
    write(place->second, place->second + problem_.values[value].bytes, &content);
    newest_[value] = {content, place->second};
  }

  void play_run(const Event& event, bool is_first) {
    const auto& item = problem_.items[event.index];
    if (!is_first && !item.may_repeat) say("an item runs again that may not");
    if (event.alternative >= item.alternatives.size()) {
      say("no such way");
      return;
    }
    // Ranges that one item accesses must be disjoint, except for a result that overwrites its
    // operand.
    struct Range {
      std::uint64_t low, high;
      std::uint32_t value;
      bool is_result;
    };
    std::vector<Range> ranges;
    for (std::uint32_t v : item.reads) {
      if (!holds(v)) {
        say("an operand is not there: " + problem_.values[v].name);
        return;
      }
      clock_ = std::max(clock_, arrival_.count(v) != 0 ? arrival_[v] : 0);
      const std::uint64_t low = newest_[v].second;
      ranges.push_back({low, low + problem_.values[v].bytes, v, false});
    }
    for (std::uint32_t v : item.makes) {
      const auto place = place_.find({v, static_cast<std::uint32_t>(event_)});
      if (place == place_.end()) {
        say("a result has no place");
        return;
      }
      ranges.push_back({place->second, place->second + problem_.values[v].bytes, v, true});
    }
    const std::uint64_t workspace = item.alternatives[event.alternative].workspace_bytes;
    if (workspace > 0) {
      const auto found = workspace_.find(static_cast<std::uint32_t>(event_));
      if (found == workspace_.end() || plan_.blocks[found->second].bytes < workspace) {
        say("no workspace");
        return;
      }
      const std::uint64_t low = plan_.blocks[found->second].offset;
      ranges.push_back({low, low + workspace, static_cast<std::uint32_t>(-1), true});
    }
    for (std::size_t x = 0; x < ranges.size(); ++x) {
      for (std::size_t y = 0; y < ranges.size(); ++y) {
        if (x == y || !ranges[x].is_result) continue;
        if (ranges[x].low >= ranges[y].high || ranges[y].low >= ranges[x].high) continue;
        bool is_allowed = false;
        for (const auto& [result, operand] : item.may_share) {
          is_allowed = is_allowed || (!ranges[y].is_result && result == ranges[x].value &&
                                      operand == ranges[y].value && ranges[x].low == ranges[y].low);
        }
        if (!is_allowed) say("an item writes where it still reads or writes");
      }
    }
    if (workspace > 0) {
      const std::uint64_t low = plan_.blocks[workspace_[static_cast<std::uint32_t>(event_)]].offset;
      write(low, low + workspace, nullptr);
    }
    for (std::uint32_t v : item.makes) {
      make(v);
      arrival_.erase(v);
    }
    clock_ += item.alternatives[event.alternative].seconds;
  }

  double copy_seconds(std::uint32_t value) const {
    return problem_.link->latency_s +
           static_cast<double>(problem_.values[value].bytes) / problem_.link->bytes_per_s;
  }
  void play_out(std::uint32_t value) {
    if (!problem_.link || !holds(value)) {
      say("a value is copied out that is not there");
      return;
    }
    if (leaving_.count(value) != 0) say("a value is copied out twice at once");
    out_clock_ = std::max(out_clock_, clock_) + copy_seconds(value);
    leaving_[value] = {newest_[value].first, out_clock_};
  }
  void play_free(std::uint32_t value) {
    const auto found = leaving_.find(value);
    if (found == leaving_.end()) {
      say("a copy is waited for that never began");
      return;
    }
    clock_ = std::max(clock_, found->second.second);
    saved_[value] = found->second.second;
    leaving_.erase(found);
  }
  void play_in(std::uint32_t value) {
    if (saved_.count(value) == 0) {
      say("a value is copied back that was not copied out");
      return;
    }
    make(value);
    in_clock_ = std::max({in_clock_, clock_, saved_[value]}) + copy_seconds(value);
    arrival_[value] = in_clock_;
  }

  const Problem& problem_;
  const Plan& plan_;
  std::string fault_;
  std::size_t event_ = 0;
  double clock_ = 0, out_clock_ = 0, in_clock_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> place_;
  std::map<std::uint32_t, std::size_t> workspace_;
  std::map<std::uint64_t, std::pair<std::uint64_t, Content>> memory_;
  std::map<std::uint32_t, std::pair<Content, std::uint64_t>> newest_;
  std::map<std::uint32_t, std::pair<Content, double>> leaving_;
  std::map<std::uint32_t, double> saved_, arrival_;
};

}  // namespace

std::string fault_in(const memory::Problem& problem, const memory::Plan& plan) {
  return Player(problem, plan).run();
}

}  // namespace tenon::testing
