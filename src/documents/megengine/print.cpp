#include "documents/megengine/schema.h"
#include "documents/megengine/vocabulary.h"

#include <cmath>

namespace tenon::documents::megengine {
namespace {

void append_real(std::string& text, double value) {
  if (!std::isfinite(value)) {
    text += concat("\"", std::signbit(value) ? "-" : "", std::isnan(value) ? "nan" : "inf", "\"");
  } else if (value == 0) {
    text += '0';
  } else {
    text += fifteen_digits(value);
  }
}

void append_text(std::string& text, std::string_view value) {
  frontends::append_json_text(text, value, "\"\\/bfnrt");
}

// Objects are "{ " members "}" and arrays "[" with a space before each element, on one line.
constexpr frontends::JsonStyle kStyle{"{ ", "[ ", append_text, append_real};

class ProfilePrinter {
 public:
  explicit ProfilePrinter(const MemberOrders& orders) : orders_(orders) { text_.reserve(1 << 16); }

  std::string take() { return std::move(text_); }

  // Writes the members in the object's order.
  template <class Row>
  void print(Record, const Row& row) {
    text_ += kStyle.open_object;
    auto other = row.other.begin();  // members without a field are in this order
    for (bool is_first = true; const std::string& name : orders_.names(row.order)) {
      put_key(name, is_first);
      Field field{*this, name};
      fields(field, row);
      if (!field.is_there) print(AnyJson(), (other++)->second);
    }
    text_ += '}';
  }

 private:
  // Prints the field of one name, if there is one.
  struct Field {
    ProfilePrinter& printer;
    std::string_view name;
    bool is_there = false;

    template <class As, class T>
    void operator()(std::string_view field, const As& as, const T& value) {
      if (field != name) return;
      is_there = true;
      printer.print(as, value);
    }
    void needed(std::string_view field, const auto& as, const auto& value) {
      (*this)(field, as, value);
    }
  };

  void put_key(std::string_view name, bool& is_first) {
    if (!is_first) text_ += ", ";
    is_first = false;
    append_text(text_, name);
    text_ += ": ";
  }
  static const std::string& key_text(const std::string& key) { return key; }
  static std::string key_text(ItemId key) { return std::to_string(key); }

  void print(Text, const std::string& value) { append_text(text_, value); }
  void print(ObjectId, ItemId value) { text_ += concat("\"", value, "\""); }
  void print(Count, std::int64_t value) { text_ += std::to_string(value); }
  void print(Int32, std::int64_t value) { print(Count(), value); }
  void print(Integer, std::int64_t value) { print(Count(), value); }
  void print(ExtentNumber, std::int64_t value) { print(Count(), value); }
  void print(Real, double value) { append_real(text_, value); }
  void print(AnyJson, const frontends::JsonValue& value) {
    frontends::print_json(text_, value, kStyle);
  }
  void print(const Again<ItemId>&, ItemId value) { print(ObjectId(), value); }
  void print(const Again<std::string>&, const std::string& value) { print(Text(), value); }
  void print(const Kind& kind, const std::string&) { append_text(text_, kind.word); }
  void print(Inferred, const auto& value) {
    if (const auto* list = std::get_if<std::vector<double>>(&value)) {
      print(ListOf<Real>(), *list);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      print(Text(), *text);
    } else {
      text_ += "null";
    }
  }
  template <class Value, class T>
  void print(OrNull<Value>, const std::optional<T>& value) {
    value ? print(Value(), *value) : void(text_ += "null");
  }
  template <class Value, class T>
  void print(ListOf<Value>, const std::vector<T>& list) {
    if (list.empty()) text_ += '[';
    for (const T& each : list) {
      text_ += &each == &list.front() ? kStyle.open_array : ", ";
      print(Value(), each);
    }
    text_ += ']';
  }
  template <class Value, class T>
  void print(ByKey<Value>, const std::vector<T>& rows) {
    text_ += kStyle.open_object;
    for (bool is_first = true; const T& row : rows) {
      put_key(key_text(key_of(row)), is_first);
      print(Value(), value_of(row));
    }
    text_ += '}';
  }

  const MemberOrders& orders_;
  std::string text_;
};

}  // namespace

std::string print_profile(const MegEngineProfile& profile) {
  ProfilePrinter printer(profile.orders);
  printer.print(Record(), profile);
  return printer.take();
}

}  // namespace tenon::documents::megengine
