#include "frontends/megengine/tables.h"

#include <cmath>
#include <cstdio>

namespace tenon::megengine {
namespace {

// Objects are "{ " members "}" and arrays "[" with a space before each element, on one line.
class Printer {
 public:
  explicit Printer(const Profile& profile) : profile_(profile) { text_.reserve(1 << 16); }

  std::string print() {
    members(profile_, [&](std::string_view name) {
      if (name == "profiler") {
        profiler(profile_.profiler);
      } else if (name == "graph_exec") {
        graph_exec(profile_.graph_exec);
      } else {
        return false;
      }
      return true;
    });
    return std::move(text_);
  }

 private:
  void key(std::string_view name, bool& is_first) {
    if (!is_first) text_ += ", ";
    is_first = false;
    string(name);
    text_ += ": ";
  }

  // The members in the object's order; `field` prints the value of one that has a field.
  template <class Field>
  void members(const Object& object, const Field& field) {
    text_ += "{ ";
    bool is_first = true;
    auto other = object.other.begin();  // these stand in the same order
    for (const std::string& name : profile_.orders.names(object.order)) {
      key(name, is_first);
      if (!field(name)) json((other++)->second);
    }
    text_ += '}';
  }

  template <class List, class Name, class Item>
  void object_of(const List& list, const Name& name, const Item& item) {
    text_ += "{ ";
    bool is_first = true;
    for (const auto& each : list) {
      key(name(each), is_first);
      item(each);
    }
    text_ += '}';
  }

  template <class List, class Item>
  void array_of(const List& list, const Item& item) {
    text_ += '[';
    bool is_first = true;
    for (const auto& each : list) {
      text_ += is_first ? " " : ", ";
      is_first = false;
      item(each);
    }
    text_ += ']';
  }

  void null() { text_ += "null"; }
  void integer(std::int64_t value) { text_ += std::to_string(value); }
  void real(double value) {
    if (!std::isfinite(value)) {
      text_ +=
          concat("\"", std::signbit(value) ? "-" : "", std::isnan(value) ? "nan" : "inf", "\"");
    } else if (value == 0) {
      text_ += '0';
    } else {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.15g", value);
      text_ += digits;
    }
  }
  void string(std::string_view value) {
    text_ += '"';
    for (const char c : value) {
      switch (c) {
        case '"':
          text_ += "\\\"";
          break;
        case '\\':
          text_ += "\\\\";
          break;
        case '/':
          text_ += "\\/";
          break;
        case '\b':
          text_ += "\\b";
          break;
        case '\f':
          text_ += "\\f";
          break;
        case '\n':
          text_ += "\\n";
          break;
        case '\r':
          text_ += "\\r";
          break;
        case '\t':
          text_ += "\\t";
          break;
        default:
          if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
            text_ += code;
          } else {
            text_ += c;
          }
      }
    }
    text_ += '"';
  }
  void id(ItemId value) { text_ += concat("\"", value, "\""); }

  template <class T, class Print>
  void or_null(const std::optional<T>& value, const Print& print) {
    if (value) {
      print(*value);
    } else {
      null();
    }
  }
  void integer_or_null(const std::optional<std::int64_t>& value) {
    or_null(value, [&](std::int64_t each) { integer(each); });
  }
  void id_or_null(const std::optional<ItemId>& value) {
    or_null(value, [&](ItemId each) { id(each); });
  }
  void ids(const std::vector<ItemId>& list) {
    array_of(list, [&](ItemId each) { id(each); });
  }
  void integers(const Extents& list) {
    array_of(list, [&](std::int64_t each) { integer(each); });
  }

  void json(const Json& value) {
    struct Visitor {
      Printer& out;
      void operator()(std::nullptr_t) const { out.null(); }
      void operator()(bool flag) const { out.text_ += flag ? "true" : "false"; }
      void operator()(std::int64_t number) const { out.integer(number); }
      void operator()(double number) const { out.real(number); }
      void operator()(const std::string& text) const { out.string(text); }
      void operator()(const Json::Array& list) const {
        out.array_of(list, [this](const Json& each) { out.json(each); });
      }
      void operator()(const Json::Object& object) const {
        out.object_of(
            object, [](const Json::Member& each) -> const std::string& { return each.first; },
            [this](const Json::Member& each) { out.json(each.second); });
      }
    };
    std::visit(Visitor{*this}, value.value);
  }

  void times(const Times& value) {
    members(value, [&](std::string_view name) {
      const std::optional<double>* field = name == "start"  ? &value.start
                                           : name == "kern" ? &value.kern
                                           : name == "end"  ? &value.end
                                                            : nullptr;
      if (field == nullptr) return false;
      or_null(*field, [&](double each) { real(each); });
      return true;
    });
  }
  void measured(const std::vector<Measured>& list) {
    object_of(
        list, [](const Measured& each) { return std::to_string(each.opr); },
        [&](const Measured& each) {
          object_of(
              each.at, [](const auto& place) -> const std::string& { return place.first; },
              [&](const auto& place) { times(place.second); });
        });
  }
  void footprint(const OprFootprint& value) {
    members(value, [&](std::string_view name) {
      if (name == "memory") {
        integer(value.memory);
      } else if (name == "computation") {
        integer_or_null(value.computation);
      } else if (name == "in_shapes" || name == "out_shapes") {
        array_of(name == "in_shapes" ? value.in_shapes : value.out_shapes,
                 [&](const Extents& shape) { integers(shape); });
      } else if (name == "in_layouts") {
        array_of(value.in_layouts, [&](const std::optional<Extents>& strides) {
          or_null(strides, [&](const Extents& each) { integers(each); });
        });
      } else if (name == "param") {
        json(value.param);
      } else {
        return false;
      }
      return true;
    });
  }
  void profiler(const Profiler& value) {
    members(value, [&](std::string_view name) {
      if (name == "host") {
        measured(value.host);
      } else if (name == "device") {
        measured(value.device);
      } else if (name == "opr_footprint") {
        object_of(
            value.opr_footprint, [](const OprFootprint& each) { return std::to_string(each.opr); },
            [&](const OprFootprint& each) { footprint(each); });
      } else if (name == "opr_internal_pf") {
        json(value.opr_internal_pf);
      } else {
        return false;
      }
      return true;
    });
  }

  void extra(const Extra& value) {
    members(value, [&](std::string_view name) {
      const std::optional<std::int64_t>* field = name == "priority" ? &value.priority
                                                 : name == "input_update_time"
                                                     ? &value.input_update_time
                                                 : name == "dfs_step_num" ? &value.dfs_step_num
                                                                          : nullptr;
      if (field == nullptr) return false;
      integer_or_null(*field);
      return true;
    });
  }
  void waiting_spec(const std::vector<Waiting>& list) {
    object_of(
        list, [](const Waiting& each) -> const std::string& { return each.comp_node; },
        [&](const Waiting& each) {
          members(each, [&](std::string_view name) {
            if (name != "dev_ready") return false;
            ids(each.dev_ready);
            return true;
          });
        });
  }
  void opr(const Operator& value) {
    members(value, [&](std::string_view name) {
      if (name == "id") {
        id(value.id);
      } else if (name == "name") {
        string(value.name);
      } else if (name == "type") {
        string(value.type);
      } else if (name == "input") {
        ids(value.input);
      } else if (name == "output") {
        ids(value.output);
      } else if (name == "extra") {
        extra(value.extra);
      } else if (name == "waiting_spec") {
        or_null(value.waiting_spec, [&](const std::vector<Waiting>& each) { waiting_spec(each); });
      } else if (name == "node_type") {
        string("operator");
      } else {
        return false;
      }
      return true;
    });
  }

  void dep(const InferTag::Dep& value) {
    members(value, [&](std::string_view name) {
      if (name == "var") {
        id(value.var);
      } else if (name == "dep_type") {
        string(value.dep_type);
      } else {
        return false;
      }
      return true;
    });
  }
  void infer_tag(const InferTag& value) {
    members(value, [&](std::string_view name) {
      if (name == "infer_type") {
        string(value.infer_type);
      } else if (name == "deps") {
        array_of(value.deps, [&](const InferTag::Dep& each) { dep(each); });
      } else if (name == "inferred_result") {
        if (const auto* list = std::get_if<std::vector<double>>(&value.inferred_result)) {
          array_of(*list, [&](double each) { real(each); });
        } else if (const auto* text = std::get_if<std::string>(&value.inferred_result)) {
          string(*text);
        } else {
          null();
        }
      } else if (name == "node_type") {
        string("static_infer_tag");
      } else {
        return false;
      }
      return true;
    });
  }
  void infer_tags(const StaticInferTags& value) {
    members(value, [&](std::string_view name) {
      if (name != "SHAPE" && name != "VALUE") return false;
      infer_tag(name == "SHAPE" ? value.shape : value.value);
      return true;
    });
  }
  void layout(const TensorLayout& value) {
    members(value, [&](std::string_view name) {
      if (name == "dtype") {
        string(value.dtype);
      } else if (name == "shape") {
        integers(value.shape);
      } else if (name == "stride") {
        integers(value.stride);
      } else {
        return false;
      }
      return true;
    });
  }
  void mem_plan(const MemPlan& value) {
    members(value, [&](std::string_view name) {
      if (name == "mem_chunk_id") {
        string(value.mem_chunk_id);
      } else if (name == "layout") {
        layout(value.layout);
      } else if (name == "offset_byte") {
        integer(value.offset_byte);
      } else {
        return false;
      }
      return true;
    });
  }
  void var(const VarNode& value) {
    members(value, [&](std::string_view name) {
      if (name == "id") {
        id(value.id);
      } else if (name == "name") {
        string(value.name);
      } else if (name == "comp_node") {
        string(value.comp_node);
      } else if (name == "flag") {
        array_of(value.flag, [&](const std::string& flag) { string(flag); });
      } else if (name == "mem_plan") {
        or_null(value.mem_plan, [&](const MemPlan& each) { mem_plan(each); });
      } else if (name == "dev_ptr") {
        integer_or_null(value.dev_ptr);
      } else if (name == "prev_dev_ptr") {
        integer_or_null(value.prev_dev_ptr);
      } else if (name == "prev_dev_ptr_end") {
        integer_or_null(value.prev_dev_ptr_end);
      } else if (name == "mem_readonly_fwd_src") {
        id_or_null(value.mem_readonly_fwd_src);
      } else if (name == "force_update_src") {
        id_or_null(value.force_update_src);
      } else if (name == "static_infer_tags") {
        infer_tags(value.static_infer_tags);
      } else if (name == "node_type") {
        string("var");
      } else {
        return false;
      }
      return true;
    });
  }
  void mem_chunk(const MemChunk& value) {
    members(value, [&](std::string_view name) {
      if (name == "id") {
        string(value.id);
      } else if (name == "owner_var") {
        id(value.owner_var);
      } else if (name == "size") {
        integer(value.size);
      } else if (name == "dev_ptr") {
        integer_or_null(value.dev_ptr);
      } else if (name == "node_type") {
        string("mem_chunk");
      } else {
        return false;
      }
      return true;
    });
  }
  void graph_exec(const GraphExec& value) {
    members(value, [&](std::string_view name) {
      if (name == "comp_seq") {
        ids(value.comp_seq);
      } else if (name == "operator") {
        object_of(
            value.operators, [](const Operator& each) { return std::to_string(each.id); },
            [&](const Operator& each) { opr(each); });
      } else if (name == "var") {
        object_of(
            value.vars, [](const VarNode& each) { return std::to_string(each.id); },
            [&](const VarNode& each) { var(each); });
      } else if (name == "mem_chunk") {
        object_of(
            value.mem_chunks, [](const MemChunk& each) -> const std::string& { return each.key; },
            [&](const MemChunk& each) { mem_chunk(each); });
      } else {
        return false;
      }
      return true;
    });
  }

  const Profile& profile_;
  std::string text_;
};

}  // namespace

std::string print_profile(const Profile& profile) { return Printer(profile).print(); }

}  // namespace tenon::megengine
