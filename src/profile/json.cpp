#include "base/error.h"
#include "base/text.h"
#include "profile/profile.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace tenon::profile {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "tenon-profile";
constexpr int kVersion = 1;

Json to_json(const Profile::Spread& spread) {
  return {
      {"median", spread.median}, {"p10", spread.p10}, {"p90", spread.p90}, {"least", spread.least}};
}
Json to_json(const std::vector<Profile::Span>& spans) {
  Json json = Json::array();
  for (const auto& [lane, start, kern, end] : spans) json.push_back({lane, start, kern, end});
  return json;
}
Json to_json(const std::vector<Profile::Remark>& remarks) {
  Json json = Json::array();
  for (const auto& [who, text] : remarks) json.push_back({{"who", who}, {"text", text}});
  return json;
}
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json to_json(const Profile::Step& step) {
  Json json = {{"name", step.name},
               {"value", step.value},
               {"op", step.op},
               {"kind", to_string(step.kind)},
               {"source", step.source},
               {"members", step.members},
               {"kernel", step.kernel},
               {"candidate", step.candidate},
               {"why", to_json(step.why)},
               {"remarks", to_json(step.remarks)},
               {"reads", step.reads},
               {"writes", step.writes},
               {"after", step.after},
               {"flops", step.flops},
               {"bytes", step.bytes},
               {"computation", or_null(step.computation)},
               {"memory", or_null(step.memory)},
               {"seconds", to_json(step.seconds)},
               {"device", to_json(step.device)},
               {"host", to_json(step.host)}};
  json["counters"] = Json();
  if (step.counters) {
    json["counters"] = {{"cycles", step.counters->cycles},
                        {"instructions", step.counters->instructions},
                        {"cache_misses", step.counters->cache_misses}};
  }
  return json;
}

Json to_json(const Profile::Buffer& buffer) {
  return {{"name", buffer.name},
          {"dtype", buffer.dtype},
          {"shape", buffer.shape},
          {"bytes", buffer.bytes},
          {"place", to_string(buffer.place)},
          {"offset", buffer.offset},
          {"arena", buffer.arena},
          {"first_step", buffer.first_step},
          {"last_step", buffer.last_step},
          {"inside", or_null(buffer.inside)},
          {"making", to_string(buffer.making)}};
}

// Reads members and tracks the current path for error messages.
class ProfileJsonReader {
 public:
  ProfileJsonReader(const Json& json, std::string path, std::string_view source)
      : json_(json), path_(std::move(path)), source_(source) {}

  [[noreturn]] void refuse(const std::string& path, const std::string& expected,
                           const std::string& got) const {
    throw Error("no profile that can be read", ErrorKind::InvalidModel)
        .at(source_, ", ", path)
        .expected(expected)
        .got(got);
  }
  ProfileJsonReader at(const std::string& key) const {
    const auto found = json_.is_object() ? json_.find(key) : json_.end();
    if (!json_.is_object() || found == json_.end())
      refuse(path_, concat("a member '", key, "'"), json_.is_object() ? "none" : json_.type_name());
    return {*found, concat(path_, ".", key), source_};
  }
  bool has(const std::string& key) const { return json_.is_object() && json_.contains(key); }
  bool is_null() const { return json_.is_null(); }
  template <class Visit>
  void each(const Visit& visit) const {
    if (!json_.is_array()) refuse(path_, "a list", json_.type_name());
    for (std::size_t k = 0; k < json_.size(); ++k)
      visit(ProfileJsonReader(json_[k], concat(path_, "[", k, "]"), source_));
  }
  ProfileJsonReader item(std::size_t k) const {
    if (!json_.is_array() || k >= json_.size())
      refuse(path_, concat("a list of more than ", k), json_.type_name());
    return {json_[k], concat(path_, "[", k, "]"), source_};
  }
  void operator>>(std::string& value) const {
    if (!json_.is_string()) refuse(path_, "a text", json_.type_name());
    value = json_.get<std::string>();
  }
  void operator>>(double& value) const {
    if (!json_.is_number()) refuse(path_, "a number", json_.type_name());
    value = json_.get<double>();
    if (!std::isfinite(value)) refuse(path_, "a finite number", json_.dump());
  }
  void operator>>(bool& value) const {
    if (!json_.is_boolean()) refuse(path_, "true or false", json_.type_name());
    value = json_.get<bool>();
  }
  void operator>>(std::int64_t& value) const {
    if (!json_.is_number_integer()) refuse(path_, "an integer", json_.type_name());
    value = json_.get<std::int64_t>();
  }
  void operator>>(std::uint64_t& value) const {
    if (!json_.is_number_unsigned()) refuse(path_, "an integer of at least 0", json_.dump());
    value = json_.get<std::uint64_t>();
  }
  void operator>>(std::uint32_t& value) const {
    std::uint64_t wide = 0;
    *this >> wide;
    if (wide > 0xffffffff) refuse(path_, "an integer below 2^32", json_.dump());
    value = static_cast<std::uint32_t>(wide);
  }
  template <class T>
  void operator>>(std::optional<T>& value) const {
    value.reset();
    if (!is_null()) *this >> value.emplace(T{});
  }
  template <class T>
  void operator>>(std::vector<T>& values) const {
    values.clear();
    each([&](const ProfileJsonReader& item) { item >> values.emplace_back(); });
  }
  void operator>>(Profile::Spread& spread) const {
    at("median") >> spread.median;
    at("p10") >> spread.p10;
    at("p90") >> spread.p90;
    at("least") >> spread.least;
  }
  void operator>>(Profile::Span& span) const {
    item(0) >> span.lane;
    item(1) >> span.start;
    item(2) >> span.kern;
    item(3) >> span.end;
  }
  void operator>>(Profile::Remark& remark) const {
    at("who") >> remark.who;
    at("text") >> remark.text;
  }
  void operator>>(Profile::Counters& counters) const {
    at("cycles") >> counters.cycles;
    at("instructions") >> counters.instructions;
    at("cache_misses") >> counters.cache_misses;
  }
  void operator>>(Profile::Lane& lane) const {
    at("name") >> lane.name;
    at("is_device") >> lane.is_device;
  }
  void operator>>(Profile::Symbol& symbol) const {
    at("name") >> symbol.name;
    at("value") >> symbol.value;
  }
  void operator>>(Profile::PassChange& pass) const {
    at("pass") >> pass.pass;
    at("change") >> pass.change;
    at("milliseconds") >> pass.milliseconds;
    at("nodes_before") >> pass.nodes_before;
    at("nodes_after") >> pass.nodes_after;
    at("remarks") >> pass.remarks;
  }
  void operator>>(Profile::BufferKind& place) const {
    one_of(place, {Profile::BufferKind::Input, Profile::BufferKind::Output,
                   Profile::BufferKind::Constant, Profile::BufferKind::Arena});
  }
  void operator>>(Profile::Making& making) const {
    one_of(making, {Profile::Making::Made, Profile::Making::Again, Profile::Making::Back});
  }
  void operator>>(Profile::Kind& kind) const {
    one_of(kind, {Profile::Kind::Kernel, Profile::Kind::Operators, Profile::Kind::Copy});
  }
  void operator>>(Profile::Buffer& buffer) const {
    at("name") >> buffer.name;
    at("dtype") >> buffer.dtype;
    at("shape") >> buffer.shape;
    at("bytes") >> buffer.bytes;
    at("place") >> buffer.place;
    at("offset") >> buffer.offset;
    at("arena") >> buffer.arena;
    at("first_step") >> buffer.first_step;
    at("last_step") >> buffer.last_step;
    at("inside") >> buffer.inside;
    if (has("making")) at("making") >> buffer.making;  // absent in files older than budgets
  }
  void operator>>(Profile::Step& step) const {
    at("name") >> step.name;
    step.value = step.name;
    // absent in files older than step names with operators
    if (has("value")) at("value") >> step.value;
    at("op") >> step.op;
    at("kind") >> step.kind;
    at("source") >> step.source;
    at("members") >> step.members;
    at("kernel") >> step.kernel;
    at("candidate") >> step.candidate;
    at("why") >> step.why;
    at("remarks") >> step.remarks;
    at("reads") >> step.reads;
    at("writes") >> step.writes;
    at("after") >> step.after;
    at("flops") >> step.flops;
    at("bytes") >> step.bytes;
    at("computation") >> step.computation;
    at("memory") >> step.memory;
    at("seconds") >> step.seconds;
    at("device") >> step.device;
    at("host") >> step.host;
    at("counters") >> step.counters;
  }

 private:
  template <class T>
  void one_of(T& value, std::initializer_list<T> known) const {
    std::string text;
    *this >> text;
    std::vector<std::string> names;
    for (const T each : known) {
      if (to_string(each) == text) {
        value = each;
        return;
      }
      names.push_back(to_string(each));
    }
    refuse(path_, concat("one of ", join(names, ", ")), text);
  }

  const Json& json_;
  std::string path_;
  std::string_view source_;
};

void require_below(std::string_view source, const std::string& what, std::uint64_t index,
                   std::size_t count) {
  if (index < count) return;
  throw Error("the profile refers to what is not there", ErrorKind::InvalidModel)
      .at(source, ", ", what)
      .expected("a number below ", count)
      .got(index);
}

void require_references(const Profile& profile, std::string_view source) {
  for (std::size_t k = 0; k < profile.steps.size(); ++k) {
    const Profile::Step& step = profile.steps[k];
    const std::string where = concat("step ", k, " ('", step.name, "')");
    for (const auto* list : {&step.reads, &step.writes}) {
      for (const std::uint32_t id : *list)
        require_below(source, where + ", buffers", id, profile.buffers.size());
    }
    for (const std::uint32_t id : step.after)
      require_below(source, where + ", after", id, profile.steps.size());
    for (const auto* spans : {&step.device, &step.host}) {
      for (const Profile::Span& span : *spans)
        require_below(source, where + ", lane", span.lane, profile.lanes.size());
    }
  }
  for (std::size_t k = 0; k < profile.buffers.size(); ++k) {
    const Profile::Buffer& buffer = profile.buffers[k];
    if (buffer.inside)
      require_below(source, concat("buffer ", k, ", inside"), *buffer.inside,
                    profile.buffers.size());
    if (profile.steps.empty()) continue;
    require_below(source, concat("buffer ", k, ", first_step"), buffer.first_step,
                  profile.steps.size());
    require_below(source, concat("buffer ", k, ", last_step"), buffer.last_step,
                  profile.steps.size());
  }
}

}  // namespace

std::string to_json(const Profile& profile) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"name", profile.name},
               {"origin", profile.origin},
               {"target", profile.target},
               {"device", profile.device},
               {"thread_count", profile.thread_count},
               {"warm_up_runs", profile.warm_up_runs},
               {"runs", profile.runs},
               {"first_run_seconds", profile.first_run_seconds},
               {"run_seconds", to_json(profile.run_seconds)},
               {"last_run_seconds", profile.last_run_seconds}};
  json["lanes"] = Json::array();
  for (const auto& [name, is_device] : profile.lanes)
    json["lanes"].push_back({{"name", name}, {"is_device", is_device}});
  json["steps"] = Json::array();
  for (const Profile::Step& step : profile.steps) json["steps"].push_back(to_json(step));
  json["buffers"] = Json::array();
  for (const Profile::Buffer& buffer : profile.buffers) json["buffers"].push_back(to_json(buffer));
  json["symbols"] = Json::array();
  for (const auto& [name, value] : profile.symbols)
    json["symbols"].push_back({{"name", name}, {"value", value}});
  json["passes"] = Json::array();
  for (const Profile::PassChange& pass : profile.passes) {
    json["passes"].push_back({{"pass", pass.pass},
                              {"change", pass.change},
                              {"milliseconds", pass.milliseconds},
                              {"nodes_before", pass.nodes_before},
                              {"nodes_after", pass.nodes_after},
                              {"remarks", to_json(pass.remarks)}});
  }
  json["ceilings"] = {{"flops_per_s", profile.ceilings.flops_per_s},
                      {"bytes_per_s", profile.ceilings.bytes_per_s},
                      {"cache_bytes_per_s", profile.ceilings.cache_bytes_per_s},
                      {"cache_bytes", profile.ceilings.cache_bytes}};
  json["arena_bytes"] = profile.arena_bytes;
  json["scratch_bytes"] = profile.scratch_bytes;
  json["constant_bytes"] = profile.constant_bytes;
  json["touched_bytes"] = profile.touched_bytes;
  json["budget_bytes"] = profile.budget_bytes;
  json["notes"] = profile.notes;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool is_profile(std::string_view head) {
  head = trim(head);
  if (!head.starts_with('{')) return false;
  head = trim(head.substr(1));
  return head.starts_with("\"format\"") &&
         head.substr(0, 64).find(kFormat) != std::string_view::npos;
}

Profile parse_profile(std::string_view text, std::string_view source) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error("no profile that can be read", ErrorKind::InvalidModel)
        .at(source)
        .got(error.what());
  }
  const ProfileJsonReader root(json, "$", source);
  std::string format;
  std::int64_t version = 0;
  root.at("format") >> format;
  root.at("version") >> version;
  if (format != kFormat) root.refuse("$.format", kFormat, format);
  if (version != kVersion)
    root.refuse("$.version", std::to_string(kVersion), std::to_string(version));
  Profile profile;
  root.at("name") >> profile.name;
  root.at("origin") >> profile.origin;
  root.at("target") >> profile.target;
  root.at("device") >> profile.device;
  root.at("thread_count") >> profile.thread_count;
  root.at("warm_up_runs") >> profile.warm_up_runs;
  root.at("runs") >> profile.runs;
  root.at("first_run_seconds") >> profile.first_run_seconds;
  root.at("run_seconds") >> profile.run_seconds;
  root.at("last_run_seconds") >> profile.last_run_seconds;
  root.at("lanes") >> profile.lanes;
  root.at("steps") >> profile.steps;
  root.at("buffers") >> profile.buffers;
  root.at("symbols") >> profile.symbols;
  root.at("passes") >> profile.passes;
  const ProfileJsonReader ceilings = root.at("ceilings");
  ceilings.at("flops_per_s") >> profile.ceilings.flops_per_s;
  ceilings.at("bytes_per_s") >> profile.ceilings.bytes_per_s;
  ceilings.at("cache_bytes_per_s") >> profile.ceilings.cache_bytes_per_s;
  ceilings.at("cache_bytes") >> profile.ceilings.cache_bytes;
  root.at("arena_bytes") >> profile.arena_bytes;
  root.at("scratch_bytes") >> profile.scratch_bytes;
  root.at("constant_bytes") >> profile.constant_bytes;
  root.at("touched_bytes") >> profile.touched_bytes;
  root.at("budget_bytes") >> profile.budget_bytes;
  root.at("notes") >> profile.notes;
  require_references(profile, source);
  return profile;
}

}  // namespace tenon::profile
