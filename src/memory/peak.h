#pragma once

#include "memory/problem.h"

namespace tenon::memory {

/// The moment of a plan that needs most, and what lies in the arena then.
struct Peak {
  struct Alive {
    std::string name;
    std::uint64_t bytes = 0;
  };
  std::uint32_t event = 0;
  /// that runs there, or next; empty where nothing does
  std::string item;
  /// alive
  std::uint64_t bytes = 0;
  /// largest first
  std::vector<Alive> alive;
};
Peak peak_of(const Plan& plan, const Problem& problem);
/// "step 'conv', where 5 MiB are alive: 'x' 3 MiB, …", the ten largest.
std::string text_of(const Peak& peak);

}  // namespace tenon::memory
