#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "memory/arena_csv.h"
#include "memory/size_text.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <sstream>

namespace tenon::cli {

namespace {

struct ArenaOptions {
  std::string file, capacity, output;
  std::uint64_t alignment = 1, node_limit = 6'000'000;
};

int arena(const ArenaOptions& options, OutputFormat format) {
  std::ifstream file(options.file, std::ios::binary);
  if (!file) throw Error("a file cannot be read", ErrorKind::Usage).got(options.file);
  std::ostringstream text;
  text << file.rdbuf();
  const memory::ArenaTable table = memory::parse_arena_table(text.str(), options.file);
  memory::PlaceOptions place;
  place.alignment = options.alignment;
  place.node_limit = options.node_limit;
  if (options.alignment == 0) throw Error("an alignment is a positive number", ErrorKind::Usage);
  if (!options.capacity.empty()) {
    place.capacity = memory::parse_bytes(options.capacity);
    if (!place.capacity) {
      throw Error("a capacity is a number of bytes", ErrorKind::Usage)
          .expected("such as 1048576 or 1MiB")
          .got("'", options.capacity, "'");
    }
  }
  const memory::Arena found = memory::place(table.buffers, place);
  if (!options.output.empty()) {
    NewFile out(options.output);
    out.out() << memory::print_arena_table(table, found.offsets);
    out.finish();
  }
  const bool is_within = !place.capacity || found.bytes <= *place.capacity;
  if (format == OutputFormat::Json) {
    nlohmann::ordered_json json = {{"buffers", table.buffers.size()},
                                   {"arena_bytes", found.bytes},
                                   {"max_live_bytes", found.max_live_bytes},
                                   {"lower_bound_bytes", found.lower_bound_bytes},
                                   {"gap", found.gap()},
                                   {"is_optimal", found.is_optimal()},
                                   {"search_nodes", found.node_count}};
    if (place.capacity) json["is_within_capacity"] = is_within;
    out() << json.dump(2) << "\n";
  } else {
    Table shown({"", ">bytes"});
    shown.add({"buffers", std::to_string(table.buffers.size())});
    shown.add({"most needed at one moment", std::to_string(found.max_live_bytes)});
    shown.add({"proven least arena", std::to_string(found.lower_bound_bytes)});
    shown.add({"arena", std::to_string(found.bytes)});
    shown.add({"gap in %", format_real(std::round(found.gap() * 1e5) / 1e3)});
    shown.add({"nodes searched", std::to_string(found.node_count)});
    shown.print(out());
  }
  if (!is_within) {
    Error error("the buffers were not placed within the capacity", ErrorKind::OutOfMemory);
    error.expected("at most ", *place.capacity, " bytes")
        .got("an arena of ", found.bytes, " bytes");
    if (found.lower_bound_bytes > *place.capacity) {
      error.hint("no placement takes less than ", found.lower_bound_bytes, " bytes");
    } else {
      error.hint("none was found; it is not proven that there is none: try a larger --nodes");
    }
    throw error;
  }
  return 0;
}

}  // namespace

void add_arena(Commands& commands) {
  const auto [app, options] = commands.add<ArenaOptions>(
      "arena", "Place buffers with lifetimes in an arena: a table id,lower,upper,size", arena);
  app.add_option("file", options.file, "a CSV file of the public benchmarks")->required();
  app.add_option("--capacity", options.capacity,
                 "bytes that suffice; exit code 5 if more are needed");
  app.add_option("--alignment", options.alignment, "alignment of every buffer (default: 1)");
  app.add_option("--nodes", options.node_limit, "limit of search nodes");
  app.add_option("-o,--output", options.output, "write the table with offsets");
}

}  // namespace tenon::cli
