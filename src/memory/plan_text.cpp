#include "base/error.h"
#include "base/text.h"
#include "memory/problem.h"

#include <limits>

// The text form of a plan:
//
// plan
// arena 7277821952 live 7277821952 seconds 0.5561
// run 3 0 "Convolution2DFunction"
// out 5 "ReLU_3"
// storage 1024 2048 0 7 5@0 6@3
namespace tenon::memory {
namespace {

constexpr const char* kEventNames[] = {"run", "out", "free", "in"};

[[noreturn]] void refuse(std::string_view source, std::size_t line, std::string expected,
                         std::string_view got) {
  throw Error("a line of a memory plan cannot be read")
      .at(source, ", line ", line)
      .expected(expected)
      .got("'", got, "'");
}

}  // namespace

std::string print(const Plan& plan, const Problem& problem) {
  std::string text = concat("plan\narena ", plan.arena_bytes, " live ", plan.max_live_bytes,
                            " seconds ", format_real(plan.seconds), "\n");
  for (const Event& event : plan.events) {
    const bool is_run = event.kind == Event::Kind::Run;
    const std::string& name =
        is_run ? problem.items[event.index].name : problem.values[event.index].name;
    text += concat(kEventNames[static_cast<int>(event.kind)], " ", event.index);
    if (is_run) text += concat(" ", event.alternative);
    text += concat(" ", quote(name), "\n");
  }
  for (const ArenaBlock& storage : plan.blocks) {
    text += concat("storage ", storage.offset, " ", storage.bytes, " ", storage.begin, " ",
                   storage.end);
    for (const Instance& instance : storage.instances) {
      text += concat(" ", instance.value, "@", instance.made_at);
    }
    text += "\n";
  }
  return text;
}

Plan parse_plan(std::string_view text, std::string_view source) {
  Plan plan;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (number == 1) {
      if (line != "plan") refuse(source, number, "the word 'plan'", line);
      continue;
    }
    if (line.empty()) continue;
    const std::vector<std::string> words = split(line, ' ');
    const auto integer = [&](std::string_view word) {
      const auto value = parse_integer(word);
      if (!value || *value < 0) refuse(source, number, "a number of zero or more", word);
      return static_cast<std::uint64_t>(*value);
    };
    const auto index = [&](std::string_view word) {
      const std::uint64_t value = integer(word);
      if (value > std::numeric_limits<std::uint32_t>::max()) {
        refuse(source, number, "a number of 32 bits", word);
      }
      return static_cast<std::uint32_t>(value);
    };
    if (words[0] == "arena") {
      const auto seconds = words.size() == 6 ? parse_real(words[5]) : std::nullopt;
      if (!seconds) refuse(source, number, "arena BYTES live BYTES seconds SECONDS", line);
      plan.arena_bytes = integer(words[1]);
      plan.max_live_bytes = integer(words[3]);
      plan.seconds = *seconds;
      continue;
    }
    if (words[0] == "storage") {
      if (words.size() < 5)
        refuse(source, number, "storage OFFSET BYTES BEGIN END VALUE@EVENT…", line);
      ArenaBlock storage;
      storage.offset = integer(words[1]);
      storage.bytes = integer(words[2]);
      storage.begin = index(words[3]);
      storage.end = index(words[4]);
      for (std::size_t k = 5; k < words.size(); ++k) {
        const std::vector<std::string> parts = split(words[k], '@');
        if (parts.size() != 2) refuse(source, number, "VALUE@EVENT", words[k]);
        storage.instances.push_back({index(parts[0]), index(parts[1])});
      }
      plan.blocks.push_back(std::move(storage));
      continue;
    }
    bool is_event = false;
    for (int kind = 0; kind < 4; ++kind) {
      if (words[0] != kEventNames[kind]) continue;
      if (words.size() < (kind == 0 ? 3U : 2U)) refuse(source, number, "an index", line);
      plan.events.push_back(
          {static_cast<Event::Kind>(kind), index(words[1]), kind == 0 ? index(words[2]) : 0});
      is_event = true;
    }
    if (!is_event) refuse(source, number, "run, out, free, in, storage or arena", line);
  }
  return plan;
}

}  // namespace tenon::memory
