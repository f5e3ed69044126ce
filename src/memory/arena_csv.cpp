#include "memory/arena_csv.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <limits>

namespace tenon::memory {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 50;

}  // namespace

ArenaTable parse_arena_table(std::string_view text, std::string_view source) {
  ArenaTable table;
  std::vector<std::string> columns;
  std::size_t number = 0;
  std::uint64_t total = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty()) continue;
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, ',')) cells.emplace_back(trim(cell));
    const auto error = [&](std::string what) {
      return Error(std::move(what)).at(source, ", line ", number);
    };
    if (columns.empty()) {
      columns = cells;
      for (const char* needed : {"id", "lower", "upper", "size"}) {
        if (std::count(columns.begin(), columns.end(), needed) != 1) {
          throw error("a table of buffers has no column of that name, or several")
              .expected("id,lower,upper,size")
              .got("'", line, "'")
              .hint("the missing one is '", needed, "'");
        }
      }
      continue;
    }
    if (cells.size() != columns.size()) {
      throw error("a line has another number of cells than the header")
          .expected(std::to_string(columns.size()), " cells")
          .got(std::to_string(cells.size()));
    }
    const auto cell = [&](std::string_view name) -> const std::string* {
      const auto found = std::find(columns.begin(), columns.end(), name);
      return found == columns.end() ? nullptr
                                    : &cells[static_cast<std::size_t>(found - columns.begin())];
    };
    const auto integer = [&](std::string_view name, std::int64_t most) {
      const auto value = parse_integer(*cell(name));
      if (!value || *value < 0 || *value > most) {
        throw error(concat("a buffer's ", name, " cannot be"))
            .expected("an integer from 0 to ", most)
            .got("'", *cell(name), "'");
      }
      return static_cast<std::uint64_t>(*value);
    };
    constexpr std::int64_t kMaxMoment = std::numeric_limits<std::uint32_t>::max() - 1;
    ArenaBuffer buffer;
    buffer.begin = static_cast<std::uint32_t>(integer("lower", kMaxMoment));
    buffer.end = static_cast<std::uint32_t>(integer("upper", kMaxMoment));
    buffer.bytes = integer("size", kMaxSize);
    if (const std::string* offset = cell("offset"); offset != nullptr && !offset->empty()) {
      buffer.fixed_offset = integer("offset", kMaxSize);
    }
    if (buffer.begin >= buffer.end) {
      throw error("a buffer is needed at no moment")
          .expected("lower < upper")
          .got("lower ", buffer.begin, ", upper ", buffer.end);
    }
    if ((total += buffer.bytes) > static_cast<std::uint64_t>(kMaxSize)) {
      throw error("the sizes add up to more than any memory has");
    }
    table.ids.push_back(*cell("id"));
    table.buffers.push_back(buffer);
  }
  if (columns.empty())
    throw Error("a table of buffers is empty").at(source).expected("id,lower,upper,size");
  // Buffers with fixed offsets must not overlap. They are few, so all pairs are compared.
  std::vector<std::size_t> fixed;
  for (std::size_t k = 0; k < table.buffers.size(); ++k) {
    if (table.buffers[k].fixed_offset) fixed.push_back(k);
  }
  for (std::size_t x = 0; x < fixed.size(); ++x) {
    for (std::size_t y = 0; y < x; ++y) {
      const ArenaBuffer& a = table.buffers[fixed[x]];
      const ArenaBuffer& b = table.buffers[fixed[y]];
      const bool meet_in_time = a.begin < b.end && b.begin < a.end;
      const bool meet = *a.fixed_offset < *b.fixed_offset + b.bytes &&
                        *b.fixed_offset < *a.fixed_offset + a.bytes;
      if (meet_in_time && meet) {
        throw Error("two buffers are given places that overlap while both are needed")
            .at(source)
            .got("'", table.ids[fixed[y]], "' and '", table.ids[fixed[x]], "'");
      }
    }
  }
  return table;
}

std::string print_arena_table(const ArenaTable& table, const std::vector<std::uint64_t>& offsets) {
  std::string text = "id,lower,upper,size,offset\n";
  for (std::size_t k = 0; k < table.buffers.size(); ++k) {
    const ArenaBuffer& buffer = table.buffers[k];
    text += concat(table.ids[k], ",", buffer.begin, ",", buffer.end, ",", buffer.bytes, ",",
                   offsets[k], "\n");
  }
  return text;
}

}  // namespace tenon::memory
