#include "base/text.h"
#include "documents/megengine/schema.h"

#include <algorithm>
#include <cmath>

namespace tenon::documents::megengine {
namespace {

// A larger number, rounded to 15 digits, exceeds the range of double.
constexpr double kLargestReal = 1.79769313486231e308;
constexpr std::size_t kMaxIdDigits = 18;

double real_in_range(double value, const frontends::JsonReader& at) {
  if (std::fabs(value) > kLargestReal)
    throw at.error("the number is out of range").got(format_real(value));
  return value;
}

// Members without a field are kept verbatim; their numbers must be printable as well.
void require_printable(const frontends::JsonValue& json, const frontends::JsonReader& at) {
  if (const auto* number = std::get_if<double>(&json.value)) {
    real_in_range(*number, at);
  } else if (const auto* list = std::get_if<frontends::JsonValue::Array>(&json.value)) {
    for (const frontends::JsonValue& element : *list) require_printable(element, at);
  } else if (const auto* object = std::get_if<frontends::JsonValue::Object>(&json.value)) {
    for (const auto& [name, value] : *object) require_printable(value, at);
  }
}

ItemId to_id(std::string_view text, const frontends::JsonReader& at) {
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

class ProfileParser {
 public:
  explicit ProfileParser(MemberOrders& orders) : orders_(orders) {}

  template <class Row>
  void read(Record, const frontends::JsonReader& at, Row& row) {
    Need need{at};
    fields(need, row);
    std::vector<std::string> names;
    for (const auto& [name, value] : at.members()) {
      names.emplace_back(name);
      Field field{*this, name, value};
      fields(field, row);
      if (field.is_there) continue;
      require_printable(value.json(), value);
      row.other.emplace_back(std::string(name), value.json());
    }
    row.order = orders_.intern(std::move(names));
    verify(at, row);
  }

 private:
  // Refuses an object that lacks a required member.
  struct Need {
    const frontends::JsonReader& at;

    void operator()(std::string_view, const auto&, auto&) const {}
    void needed(std::string_view name, const auto&, auto&) const { at.member(name); }
  };
  // Reads one member into the field of its name, if there is one.
  struct Field {
    ProfileParser& reader;
    std::string_view name;
    const frontends::JsonReader& value;
    bool is_there = false;

    template <class As, class T>
    void operator()(std::string_view field, const As& as, T& into) {
      if (field != name) return;
      is_there = true;
      reader.read(as, value, into);
    }
    void needed(std::string_view field, const auto& as, auto& into) { (*this)(field, as, into); }
  };

  static void verify(const frontends::JsonReader&, const Object&) {}
  static void verify(const frontends::JsonReader& at, const TensorLayout& layout) {
    if (layout.shape.size() == layout.stride.size()) return;
    throw at.error("shape and stride differ in length")
        .got(layout.shape.size(), " extents, ", layout.stride.size(), " strides");
  }

  static void set_key(std::string_view name, const frontends::JsonReader&, std::string& key) {
    key = name;
  }
  static void set_key(std::string_view name, const frontends::JsonReader& at, ItemId& key) {
    key = to_id(name, at);
  }

  static void read(Text, const frontends::JsonReader& at, std::string& into) { into = at.text(); }
  static void read(ObjectId, const frontends::JsonReader& at, ItemId& into) {
    into = to_id(at.text(), at);
  }
  static void read(Count, const frontends::JsonReader& at, std::int64_t& into) {
    into = at.integer(0);
  }
  static void read(Integer, const frontends::JsonReader& at, std::int64_t& into) {
    into = at.integer();
  }
  static void read(Int32, const frontends::JsonReader& at, std::int64_t& into) {
    into = at.integer(std::numeric_limits<std::int32_t>::min(),
                      std::numeric_limits<std::int32_t>::max());
  }
  static void read(ExtentNumber, const frontends::JsonReader& at, std::int64_t& into) {
    into = at.integer(0, std::int64_t{1} << 56);
  }
  static void read(Real, const frontends::JsonReader& at, double& into) {
    if (!at.is_text()) {
      into = real_in_range(at.real(), at);
      return;
    }
    const double infinity = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const auto& [word, value] : {std::pair("inf", infinity), std::pair("-inf", -infinity),
                                      std::pair("nan", nan), std::pair("-nan", -nan)}) {
      into = value;
      if (at.text() == word) return;
    }
    throw at.error("this is not a number").got(quote(at.text().substr(0, 40)));
  }
  static void read(AnyJson, const frontends::JsonReader& at, frontends::JsonValue& into) {
    require_printable(at.json(), at);
    into = at.json();
  }
  void read(Inferred, const frontends::JsonReader& at, auto& into) {
    if (at.is_null()) return;
    if (at.is_text()) {
      into = at.text();
    } else {
      read(ListOf<Real>(), at, into.template emplace<std::vector<double>>());
    }
  }
  static void read(const Again<ItemId>& again, const frontends::JsonReader& at, ItemId& into) {
    const ItemId id = to_id(at.text(), at);
    if (id != again.key)
      throw at.error("the id is not the one it is listed under").expected(again.key).got(id);
    into = id;
  }
  static void read(const Again<std::string>& again, const frontends::JsonReader& at,
                   std::string& into) {
    into = at.text();
    if (into != again.key)
      throw at.error("the id is not the chunk's key").expected(again.key).got(into);
  }
  static void read(const Kind& kind, const frontends::JsonReader& at, const std::string&) {
    if (at.text() != kind.word)
      throw at.error("this is something else").expected(kind.word).got(quote(at.text()));
  }
  template <class Value, class T>
  void read(OrNull<Value>, const frontends::JsonReader& at, std::optional<T>& into) {
    if (!at.is_null()) read(Value(), at, into.emplace());
  }
  template <class Value, class T>
  void read(ListOf<Value>, const frontends::JsonReader& at, std::vector<T>& into) {
    for (const frontends::JsonReader& element : at.elements())
      read(Value(), element, into.emplace_back());
  }
  template <class Value, class T>
  void read(ByKey<Value>, const frontends::JsonReader& at, std::vector<T>& into) {
    for (const auto& [name, element] : at.members()) {
      T& row = into.emplace_back();
      set_key(name, element, key_of(row));
      read(Value(), element, value_of(row));
    }
  }

  MemberOrders& orders_;
};

}  // namespace

MegEngineProfile parse_profile(std::string_view text, std::string_view source) {
  const frontends::JsonValue json = frontends::parse_json(text, source);
  MegEngineProfile profile;
  ProfileParser(profile.orders).read(Record(), frontends::JsonReader(json, source), profile);
  return profile;
}

}  // namespace tenon::documents::megengine
