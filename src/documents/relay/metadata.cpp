#include "documents/relay/metadata.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/relay/types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>

namespace tenon::documents::relay {
namespace {

constexpr std::string_view kConstantKey = "relay.Constant";
constexpr std::uint64_t kArrayMagic = 0xDD5E40F096B4A13FU;
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kLongestLine = 10;  // longer lists have one number per line
constexpr std::int64_t kMaxRank = 32;

const frontends::JsonValue* member(const frontends::JsonValue* json, std::string_view name) {
  const auto* object = json ? std::get_if<frontends::JsonValue::Object>(&json->value) : nullptr;
  if (object == nullptr) return nullptr;
  for (const frontends::JsonValue::Member& item : *object) {
    if (item.first == name) return &item.second;
  }
  return nullptr;
}
const frontends::JsonValue* element(const frontends::JsonValue* json, std::int64_t index) {
  const auto* array = json ? std::get_if<frontends::JsonValue::Array>(&json->value) : nullptr;
  if (array == nullptr || index < 0 || index >= static_cast<std::int64_t>(array->size()))
    return nullptr;
  return &(*array)[static_cast<std::size_t>(index)];
}
std::optional<std::int64_t> integer(const frontends::JsonValue* json) {
  if (json == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<std::int64_t>(&json->value)) return *number;
  if (const auto* text = std::get_if<std::string>(&json->value)) {
    if (text->empty() || text->size() > 9 ||
        text->find_first_not_of("0123456789") != std::string::npos) {
      return std::nullopt;
    }
    return std::stoll(*text);
  }
  return std::nullopt;
}

// Returns the node that lists the constants: the section is a map from kinds to lists.
std::optional<std::int64_t> list_of_constants(const frontends::JsonValue& metadata) {
  const frontends::JsonValue* nodes = member(&metadata, "nodes");
  const frontends::JsonValue* root =
      element(nodes, integer(member(&metadata, "root")).value_or(-1));
  const frontends::JsonValue* keys = member(root, "keys");
  for (std::int64_t k = 0; element(keys, k) != nullptr; ++k) {
    const auto* key = std::get_if<std::string>(&element(keys, k)->value);
    if (key && *key == kConstantKey) return integer(element(member(root, "data"), k));
  }
  return std::nullopt;
}

// Prints like dmlc's JSON writer: a space after each comma, short lists of numbers on one line.
void append_text(std::string& to, std::string_view text) {
  frontends::append_json_text(to, text, "\"\\nrt");
}
void append_real(std::string& to, double number) { to += format_real(number); }
constexpr frontends::JsonStyle kStyle{"{", "[", append_text, append_real};

void print(const frontends::JsonValue& json, std::size_t depth, bool is_map, std::string& text);

void print_items(std::size_t depth, bool is_multiline, std::size_t count, std::string& text,
                 const std::function<void(std::size_t)>& print_item) {
  for (std::size_t k = 0; k < count; ++k) {
    if (k > 0) text += ", ";
    if (is_multiline) text += "\n" + std::string(2 * (depth + 1), ' ');
    print_item(k);
  }
  if (is_multiline && count > 0) text += "\n" + std::string(2 * depth, ' ');
}

bool is_number(const frontends::JsonValue& json) {
  return std::holds_alternative<std::int64_t>(json.value) ||
         std::holds_alternative<double>(json.value);
}

void print(const frontends::JsonValue& json, std::size_t depth, bool is_map, std::string& text) {
  if (const auto* object = std::get_if<frontends::JsonValue::Object>(&json.value)) {
    text += "{";
    print_items(depth, !is_map || object->size() > 1, object->size(), text, [&](std::size_t k) {
      append_text(text, (*object)[k].first);
      text += ": ";
      print((*object)[k].second, depth + 1, (*object)[k].first == "attrs", text);
    });
    text += "}";
  } else if (const auto* array = std::get_if<frontends::JsonValue::Array>(&json.value)) {
    const bool is_short =
        array->size() <= kLongestLine && std::all_of(array->begin(), array->end(), is_number);
    text += "[";
    print_items(depth, !is_short, array->size(), text,
                [&](std::size_t k) { print((*array)[k], depth + 1, false, text); });
    text += "]";
  } else {
    frontends::print_json(text, json, kStyle);
  }
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=' || c == '\n') continue;
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>((bits >> count) & 0xff);
    }
  }
  return bytes;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  for (std::size_t k = 0; k < bytes.size(); k += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = (bits << 8) | (k + j < bytes.size() ? static_cast<unsigned char>(bytes[k + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += k + j <= bytes.size() ? kDigits[(bits >> (18 - 6 * j)) & 63] : '=';
    }
  }
  return text;
}

template <class T>
void append(std::string& bytes, T value) {
  static_assert(std::endian::native == std::endian::little);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  T take() {
    T value{};
    if (rest_.size() < sizeof value) throw Error("an array in the metadata ends too soon");
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// Codes of DLPack: 0 signed, 1 unsigned (bool is one bit of it), 2 float, 4 brain float.
std::string dtype_text(int code, int bits) {
  if (code == 1 && bits == 1) return "bool";
  const std::string_view stem = code == 0   ? "int"
                                : code == 1 ? "uint"
                                : code == 2 ? "float"
                                : code == 4 ? "bfloat"
                                            : "";
  return concat(stem, bits);
}
std::pair<std::uint8_t, std::uint8_t> dtype_code(DType dtype) {
  const std::string name = dtype_name(dtype);
  const auto bits = static_cast<std::uint8_t>(info(dtype).bits);
  if (dtype == DType::Bool) return {1, 1};
  if (name.starts_with("uint")) return {1, bits};
  if (name.starts_with("int")) return {0, bits};
  return {name.starts_with("bfloat") ? 4 : 2, bits};
}

Constant read_array(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.take<std::uint64_t>() != kArrayMagic)
    throw Error("the metadata has something that is no array");
  reader.take<std::uint64_t>();
  reader.take<std::int32_t>();
  reader.take<std::int32_t>();
  const auto rank = reader.take<std::int32_t>();
  const auto code = reader.take<std::uint8_t>();
  const auto bits = reader.take<std::uint8_t>();
  const auto lanes = reader.take<std::uint16_t>();
  const std::optional<DType> dtype = to_dtype(dtype_text(code, bits));
  if (!dtype || lanes != 1 || rank < 0 || rank > kMaxRank) {
    throw Error("the metadata has an array of elements that Tenon does not have");
  }
  Shape shape;
  for (int k = 0; k < rank; ++k) shape.push_back(reader.take<std::int64_t>());
  const auto size = reader.take<std::int64_t>();
  if (size != static_cast<std::int64_t>(reader.rest().size())) {
    throw Error("an array in the metadata has another size than it says")
        .expected(size)
        .got(reader.rest().size());
  }
  const std::int64_t count = checked_element_count(shape);
  const auto width = static_cast<std::int64_t>(info(*dtype).storage_bytes);
  if (count > size || count * width != size) {
    throw Error("an array in the metadata has another size than its shape")
        .expected(concat(count, " elements"))
        .got(concat(size, " bytes"));
  }
  Tensor tensor(*dtype, shape);
  if (size > 0)
    std::memcpy(tensor.mutable_bytes().data(), reader.rest().data(),
                static_cast<std::size_t>(size));
  return tensor;
}

std::string write_array(const Constant& constant) {
  const Tensor tensor = constant.materialise();
  std::string bytes;
  append(bytes, kArrayMagic);
  append(bytes, std::uint64_t{0});
  append(bytes, std::int32_t{1});  // in the memory of a CPU
  append(bytes, std::int32_t{0});
  append(bytes, static_cast<std::int32_t>(tensor.rank()));
  const auto [code, bits] = dtype_code(tensor.dtype());
  append(bytes, code);
  append(bytes, bits);
  append(bytes, std::uint16_t{1});
  for (const std::int64_t extent : tensor.shape()) append(bytes, extent);
  append(bytes, static_cast<std::int64_t>(tensor.byte_size()));
  bytes.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.byte_size());
  return bytes;
}

}  // namespace

std::string print_metadata(const frontends::JsonValue& metadata,
                           const std::vector<std::int64_t>& constants) {
  frontends::JsonValue ordered = metadata;
  if (const std::optional<std::int64_t> list = list_of_constants(metadata)) {
    const frontends::JsonValue* data = member(element(member(&metadata, "nodes"), *list), "data");
    frontends::JsonValue::Array moved;
    for (const std::int64_t index : constants) {
      if (const frontends::JsonValue* entry = element(data, index)) moved.push_back(*entry);
    }
    // Located through the const accessors, modified in the copy.
    auto* copy = const_cast<frontends::JsonValue*>(
        member(element(member(&ordered, "nodes"), *list), "data"));
    if (copy != nullptr && moved.size() == constants.size())
      copy->value.emplace<frontends::JsonValue::Array>(std::move(moved));
  }
  std::string text;
  print(ordered, 0, false, text);
  return text;
}

std::optional<Constant> metadata_constant(const frontends::JsonValue& metadata,
                                          std::int64_t index) {
  const std::optional<std::int64_t> list = list_of_constants(metadata);
  if (!list) return std::nullopt;
  const frontends::JsonValue* nodes = member(&metadata, "nodes");
  const std::optional<std::int64_t> node =
      integer(element(member(element(nodes, *list), "data"), index));
  const std::optional<std::int64_t> array =
      integer(member(member(element(nodes, node.value_or(-1)), "attrs"), "data"));
  const frontends::JsonValue* encoded =
      element(member(&metadata, "b64ndarrays"), array.value_or(-1));
  const auto* text = encoded ? std::get_if<std::string>(&encoded->value) : nullptr;
  if (text == nullptr) return std::nullopt;
  const std::optional<std::string> bytes = from_base64(*text);
  if (!bytes) throw Error("an array in the metadata is not in base 64");
  return read_array(*bytes);
}

frontends::JsonValue make_metadata(const std::vector<Constant>& constants) {
  constexpr std::size_t first_constant = 3;
  std::string listed, nodes, arrays;
  for (std::size_t k = 0; k < constants.size(); ++k) {
    const std::string_view comma = k > 0 ? "," : "";
    listed += concat(comma, first_constant + k);
    nodes += concat(R"(,{"type_key":"relay.Constant","attrs":{"_checked_type_":"0","data":")", k,
                    R"(","span":"0"}})");
    arrays += concat(comma, "\"", to_base64(write_array(constants[k])), "\"");
  }
  return frontends::parse_json(
      concat(R"({"root":1,"nodes":[{"type_key":""},)",
             R"({"type_key":"Map","keys":["relay.Constant"],"data":[2]},)",
             R"({"type_key":"Array","data":[)", listed, "]}", nodes, R"(],"b64ndarrays":[)", arrays,
             R"(],"attrs":{"tvm_version":"0.8.0"}})"),
      "metadata");
}

}  // namespace tenon::documents::relay
