#include "base/error.h"
#include "tune/cache.h"

#include <nlohmann/json.hpp>

#include <set>

namespace tenon::tune {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "tenon tuning";
constexpr std::int64_t kExchangeVersion = 1;

// Validating reader of untrusted JSON: reports the location of an invalid member.
class TuningJsonReader {
 public:
  explicit TuningJsonReader(std::string source) : source_(std::move(source)) {}

  Error wrong(const std::string& place, const std::string& expected, const Json* found) const {
    std::string got =
        found == nullptr ? "nothing" : found->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (got.size() > 60) got = got.substr(0, 60) + "…";
    return Error("this is no list of timed kernels")
        .at(source_, place.empty() ? "" : ", ", place)
        .expected(expected)
        .got(got);
  }
  const Json& member(const Json& object, const std::string& place, const char* name) const {
    if (!object.is_object()) throw wrong(place, "an object", &object);
    const auto found = object.find(name);
    if (found == object.end())
      throw wrong(concat(place, place.empty() ? "" : "/", name), "a member of this name", nullptr);
    return *found;
  }
  std::string text(const Json& object, const std::string& place, const char* name) const {
    const Json& value = member(object, place, name);
    if (!value.is_string()) throw wrong(concat(place, "/", name), "a text", &value);
    return value.get<std::string>();
  }
  std::int64_t integer(const Json& object, const std::string& place, const char* name) const {
    const Json& value = member(object, place, name);
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
    if (!fits) throw wrong(concat(place, "/", name), "a whole number", &value);
    return value.get<std::int64_t>();
  }
  double real(const Json& object, const std::string& place, const char* name) const {
    const Json& value = member(object, place, name);
    if (!value.is_number()) throw wrong(concat(place, "/", name), "a number", &value);
    return value.get<double>();
  }
  const Json& list(const Json& object, const std::string& place, const char* name) const {
    const Json& value = member(object, place, name);
    if (!value.is_array())
      throw wrong(concat(place, place.empty() ? "" : "/", name), "a list", &value);
    return value;
  }

  TunedKernel kernel(const Json& json, const std::string& place) const {
    TunedKernel kernel;
    kernel.place.machine = text(json, place, "machine");
    kernel.place.generator = text(json, place, "generator");
    const std::int64_t threads = integer(json, place, "threads");
    if (threads < 1 || threads > 1'000'000)
      throw wrong(place + "/threads", "1 or more", &json["threads"]);
    kernel.place.threads = static_cast<int>(threads);
    kernel.name = text(json, place, "name");
    kernel.work = text(json, place, "work");
    kernel.symbol = text(json, place, "symbol");
    kernel.flops = real(json, place, "flops");
    const Json& timings = list(json, place, "timings");
    std::set<std::pair<std::int64_t, std::string>> seen;
    for (std::size_t k = 0; k < timings.size(); ++k) {
      const std::string at = concat(place, "/timings/", k);
      kernel.timings.push_back({text(timings[k], at, "candidate"), integer(timings[k], at, "at"),
                                real(timings[k], at, "seconds"), integer(timings[k], at, "runs")});
      if (!seen.emplace(kernel.timings.back().at, kernel.timings.back().candidate).second) {
        throw wrong(at, "each candidate once at each value", &timings[k]);
      }
    }
    const Json& ranges = list(json, place, "ranges");
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      const std::string at = concat(place, "/ranges/", k);
      kernel.ranges.push_back({integer(ranges[k], at, "lo"), integer(ranges[k], at, "hi"),
                               text(ranges[k], at, "candidate")});
    }
    if (const auto problem = problem_of(kernel)) {
      throw Error("this is no list of timed kernels").at(source_, ", ", place).got(*problem);
    }
    return kernel;
  }

 private:
  std::string source_;
};

}  // namespace

std::string to_json(const std::vector<TunedKernel>& kernels) {
  Json list = Json::array();
  for (const TunedKernel& kernel : kernels) {
    Json timings = Json::array(), ranges = Json::array();
    for (const auto& [candidate, at, seconds, runs] : kernel.timings) {
      timings.push_back(
          {{"candidate", candidate}, {"at", at}, {"seconds", seconds}, {"runs", runs}});
    }
    for (const auto& [lo, hi, candidate] : kernel.ranges) {
      ranges.push_back({{"lo", lo}, {"hi", hi}, {"candidate", candidate}});
    }
    list.push_back({{"machine", kernel.place.machine},
                    {"generator", kernel.place.generator},
                    {"threads", kernel.place.threads},
                    {"name", kernel.name},
                    {"work", kernel.work},
                    {"symbol", kernel.symbol},
                    {"flops", kernel.flops},
                    {"timings", std::move(timings)},
                    {"ranges", std::move(ranges)}});
  }
  return Json{{"format", kFormat}, {"version", kExchangeVersion}, {"kernels", std::move(list)}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::vector<TunedKernel> tuned_kernels_from_json(const std::string& text,
                                                 const std::string& source) {
  const TuningJsonReader reader(source);
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& problem) {
    throw Error("this is no list of timed kernels").at(source).expected("JSON").got(problem.what());
  }
  if (reader.text(json, "", "format") != kFormat)
    throw reader.wrong("format", concat("\"", kFormat, "\""), &json["format"]);
  if (reader.integer(json, "", "version") != kExchangeVersion) {
    throw reader.wrong("version", concat("version ", kExchangeVersion), &json["version"]);
  }
  std::vector<TunedKernel> kernels;
  const Json& list = reader.list(json, "", "kernels");
  for (std::size_t k = 0; k < list.size(); ++k)
    kernels.push_back(reader.kernel(list[k], concat("kernels/", k)));
  return kernels;
}

}  // namespace tenon::tune
