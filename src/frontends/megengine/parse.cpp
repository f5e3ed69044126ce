#include "base/text.h"
#include "frontends/megengine/tables.h"

#include <algorithm>
#include <cmath>

namespace tenon::megengine {
namespace {

// 15 digits of a greater one would round to what no double holds.
constexpr double kLargestReal = 1.79769313486231e308;
constexpr std::size_t kMaxIdDigits = 18;

double real_in_range(double value, const JsonReader& at) {
  if (std::fabs(value) > kLargestReal)
    throw at.error("the number is out of range").got(format_real(value));
  return value;
}

// Members that have no field are kept as they are; their numbers have to be printable too.
void require_printable(const Json& json, const JsonReader& at) {
  if (const auto* number = std::get_if<double>(&json.value)) {
    real_in_range(*number, at);
  } else if (const auto* list = std::get_if<Json::Array>(&json.value)) {
    for (const Json& element : *list) require_printable(element, at);
  } else if (const auto* object = std::get_if<Json::Object>(&json.value)) {
    for (const auto& [name, value] : *object) require_printable(value, at);
  }
}

ItemId to_id(std::string_view text, const JsonReader& at) {
  const bool is_number =
      !text.empty() && text.size() <= kMaxIdDigits &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
      (text.size() == 1 || text.front() != '0');
  if (!is_number) {
    throw at.error("this is not the number of an operator or var")
        .expected("digits, as in \"42\"")
        .got(quote(text.substr(0, 40)));
  }
  return *parse_integer(text);
}
ItemId id_in(const JsonReader& at) { return to_id(at.text(), at); }

std::vector<ItemId> ids_in(const JsonReader& at) {
  std::vector<ItemId> ids;
  for (const JsonReader& element : at.elements()) ids.push_back(id_in(element));
  return ids;
}

template <class Read>
auto unless_null(const JsonReader& at, const Read& read) -> std::optional<decltype(read(at))> {
  if (at.is_null()) return std::nullopt;
  return read(at);
}

std::int64_t address_in(const JsonReader& at) { return at.integer(0); }

// Infinities and NaN stand as texts.
double real_in(const JsonReader& at) {
  if (!at.is_text()) return real_in_range(at.real(), at);
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (at.text() == "inf") return infinity;
  if (at.text() == "-inf") return -infinity;
  if (at.text() == "nan") return nan;
  if (at.text() == "-nan") return -nan;
  throw at.error("this is not a number").got(quote(at.text().substr(0, 40)));
}

Extents extents_in(const JsonReader& at) {
  Extents extents;
  for (const JsonReader& element : at.elements()) {
    extents.push_back(element.integer(0, std::int64_t{1} << 56));
  }
  return extents;
}

class Parser {
 public:
  explicit Parser(Profile& profile) : profile_(profile) {}

  void parse(const JsonReader& at) {
    require(at, {"graph_exec"});
    read_members(at, profile_, [&](std::string_view name, const JsonReader& value) {
      if (name == "profiler") {
        profile_.profiler = profiler(value);
      } else if (name == "graph_exec") {
        profile_.graph_exec = graph_exec(value);
      } else {
        return false;
      }
      return true;
    });
  }

 private:
  static void require(const JsonReader& at, std::initializer_list<std::string_view> names) {
    for (std::string_view name : names) at.member(name);
  }

  template <class Field>
  void read_members(const JsonReader& at, Object& object, const Field& field) {
    std::vector<std::string> names;
    for (const auto& [name, value] : at.members()) {
      names.emplace_back(name);
      if (field(name, value)) continue;
      require_printable(value.json(), value);
      object.other.emplace_back(std::string(name), value.json());
    }
    object.order = profile_.orders.intern(std::move(names));
  }

  Times times(const JsonReader& at) {
    Times result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "start") {
        result.start = unless_null(value, real_in);
      } else if (name == "kern") {
        result.kern = unless_null(value, real_in);
      } else if (name == "end") {
        result.end = unless_null(value, real_in);
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  std::vector<Measured> measured(const JsonReader& at) {
    std::vector<Measured> list;
    for (const auto& [opr, places] : at.members()) {
      Measured entry{to_id(opr, places), {}};
      for (const auto& [place, value] : places.members())
        entry.at.emplace_back(place, times(value));
      list.push_back(std::move(entry));
    }
    return list;
  }

  OprFootprint footprint(ItemId opr, const JsonReader& at) {
    require(at, {"memory", "in_shapes", "out_shapes"});
    OprFootprint result;
    result.opr = opr;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "memory") {
        result.memory = value.integer(0);
      } else if (name == "computation") {
        result.computation = unless_null(value, address_in);
      } else if (name == "in_shapes" || name == "out_shapes") {
        auto& shapes = name == "in_shapes" ? result.in_shapes : result.out_shapes;
        for (const JsonReader& shape : value.elements()) shapes.push_back(extents_in(shape));
      } else if (name == "in_layouts") {
        for (const JsonReader& strides : value.elements()) {
          result.in_layouts.push_back(
              unless_null(strides, [](const JsonReader& each) { return each.integers(); }));
        }
      } else if (name == "param") {
        require_printable(value.json(), value);
        result.param = value.json();
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  Profiler profiler(const JsonReader& at) {
    Profiler result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "host") {
        result.host = measured(value);
      } else if (name == "device") {
        result.device = measured(value);
      } else if (name == "opr_footprint") {
        for (const auto& [opr, entry] : value.members()) {
          result.opr_footprint.push_back(footprint(to_id(opr, entry), entry));
        }
      } else if (name == "opr_internal_pf") {
        require_printable(value.json(), value);
        result.opr_internal_pf = value.json();
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  Extra extra(const JsonReader& at) {
    Extra result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      std::optional<std::int64_t>* field = name == "priority"            ? &result.priority
                                           : name == "input_update_time" ? &result.input_update_time
                                           : name == "dfs_step_num"      ? &result.dfs_step_num
                                                                         : nullptr;
      if (field == nullptr) return false;
      *field = unless_null(value, [](const JsonReader& each) {
        return each.integer(std::numeric_limits<std::int32_t>::min(),
                            std::numeric_limits<std::int32_t>::max());
      });
      return true;
    });
    return result;
  }

  std::vector<Waiting> waiting_spec(const JsonReader& at) {
    std::vector<Waiting> list;
    for (const auto& [comp_node, spec] : at.members()) {
      Waiting waiting;
      waiting.comp_node = comp_node;
      read_members(spec, waiting, [&](std::string_view name, const JsonReader& value) {
        if (name != "dev_ready") return false;
        waiting.dev_ready = ids_in(value);
        return true;
      });
      list.push_back(std::move(waiting));
    }
    return list;
  }

  Operator opr(std::string_view key, const JsonReader& at) {
    require(at, {"id", "name", "type", "input", "output"});
    Operator result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "id") {
        result.id = same_id(key, value);
      } else if (name == "name") {
        result.name = value.text();
      } else if (name == "type") {
        result.type = value.text();
      } else if (name == "input") {
        result.input = ids_in(value);
      } else if (name == "output") {
        result.output = ids_in(value);
      } else if (name == "extra") {
        result.extra = extra(value);
      } else if (name == "waiting_spec") {
        result.waiting_spec =
            unless_null(value, [&](const JsonReader& each) { return waiting_spec(each); });
      } else if (name == "node_type") {
        same_kind(value, "operator");
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  InferTag::Dep dep(const JsonReader& at) {
    require(at, {"var", "dep_type"});
    InferTag::Dep result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "var") {
        result.var = id_in(value);
      } else if (name == "dep_type") {
        result.dep_type = value.text();
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  InferTag infer_tag(const JsonReader& at) {
    InferTag result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "infer_type") {
        result.infer_type = value.text();
      } else if (name == "deps") {
        for (const JsonReader& each : value.elements()) result.deps.push_back(dep(each));
      } else if (name == "inferred_result") {
        if (value.is_text()) {
          result.inferred_result = value.text();
        } else if (!value.is_null()) {
          std::vector<double> elements;
          for (const JsonReader& each : value.elements()) elements.push_back(real_in(each));
          result.inferred_result = std::move(elements);
        }
      } else if (name == "node_type") {
        same_kind(value, "static_infer_tag");
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  StaticInferTags infer_tags(const JsonReader& at) {
    StaticInferTags result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "SHAPE") {
        result.shape = infer_tag(value);
      } else if (name == "VALUE") {
        result.value = infer_tag(value);
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  TensorLayout layout(const JsonReader& at) {
    require(at, {"dtype", "shape", "stride"});
    TensorLayout result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "dtype") {
        result.dtype = value.text();
      } else if (name == "shape") {
        result.shape = extents_in(value);
      } else if (name == "stride") {
        result.stride = value.integers();
      } else {
        return false;
      }
      return true;
    });
    if (result.shape.size() != result.stride.size()) {
      throw at.error("shape and stride differ in length")
          .got(result.shape.size(), " extents, ", result.stride.size(), " strides");
    }
    return result;
  }

  MemPlan mem_plan(const JsonReader& at) {
    require(at, {"mem_chunk_id", "layout"});
    MemPlan result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "mem_chunk_id") {
        result.mem_chunk_id = value.text();
      } else if (name == "layout") {
        result.layout = layout(value);
      } else if (name == "offset_byte") {
        result.offset_byte = value.integer(0);
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  VarNode var(std::string_view key, const JsonReader& at) {
    require(at, {"id", "name"});
    VarNode result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "id") {
        result.id = same_id(key, value);
      } else if (name == "name") {
        result.name = value.text();
      } else if (name == "comp_node") {
        result.comp_node = value.text();
      } else if (name == "flag") {
        for (const JsonReader& flag : value.elements()) result.flag.push_back(flag.text());
      } else if (name == "mem_plan") {
        result.mem_plan =
            unless_null(value, [&](const JsonReader& each) { return mem_plan(each); });
      } else if (name == "dev_ptr") {
        result.dev_ptr = unless_null(value, address_in);
      } else if (name == "prev_dev_ptr") {
        result.prev_dev_ptr = unless_null(value, address_in);
      } else if (name == "prev_dev_ptr_end") {
        result.prev_dev_ptr_end = unless_null(value, address_in);
      } else if (name == "mem_readonly_fwd_src") {
        result.mem_readonly_fwd_src = unless_null(value, id_in);
      } else if (name == "force_update_src") {
        result.force_update_src = unless_null(value, id_in);
      } else if (name == "static_infer_tags") {
        result.static_infer_tags = infer_tags(value);
      } else if (name == "node_type") {
        same_kind(value, "var");
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  MemChunk mem_chunk(std::string_view key, const JsonReader& at) {
    require(at, {"id", "owner_var", "size"});
    MemChunk result;
    result.key = key;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "id") {
        result.id = value.text();
        if (result.id != key)
          throw value.error("the id is not the chunk's key").expected(key).got(result.id);
      } else if (name == "owner_var") {
        result.owner_var = id_in(value);
      } else if (name == "size") {
        result.size = value.integer(0);
      } else if (name == "dev_ptr") {
        result.dev_ptr = unless_null(value, address_in);
      } else if (name == "node_type") {
        same_kind(value, "mem_chunk");
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  GraphExec graph_exec(const JsonReader& at) {
    require(at, {"comp_seq", "operator", "var"});
    GraphExec result;
    read_members(at, result, [&](std::string_view name, const JsonReader& value) {
      if (name == "comp_seq") {
        result.comp_seq = ids_in(value);
      } else if (name == "operator") {
        for (const auto& [key, each] : value.members()) result.operators.push_back(opr(key, each));
      } else if (name == "var") {
        for (const auto& [key, each] : value.members()) result.vars.push_back(var(key, each));
      } else if (name == "mem_chunk") {
        for (const auto& [key, each] : value.members())
          result.mem_chunks.push_back(mem_chunk(key, each));
      } else {
        return false;
      }
      return true;
    });
    return result;
  }

  static ItemId same_id(std::string_view key, const JsonReader& at) {
    const ItemId id = id_in(at);
    if (id != to_id(key, at))
      throw at.error("the id is not the one it is listed under").expected(key).got(id);
    return id;
  }
  static void same_kind(const JsonReader& at, std::string_view kind) {
    if (at.text() != kind)
      throw at.error("this is something else").expected(kind).got(quote(at.text()));
  }

  Profile& profile_;
};

}  // namespace

Profile parse_profile(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  Profile profile;
  Parser(profile).parse(JsonReader(json, source));
  return profile;
}

}  // namespace tenon::megengine
