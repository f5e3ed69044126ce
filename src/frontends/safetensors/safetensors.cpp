#include "frontends/safetensors/safetensors.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "frontends/json.h"
#include "frontends/mapped_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ostream>

namespace tenon::frontends {
namespace {

constexpr std::size_t kLengthBytes = 8, kAlignment = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // limit of the format's own readers
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::pair<DType, std::string_view> kNames[] = {
    {DType::F64, "F64"},  {DType::F32, "F32"}, {DType::F16, "F16"}, {DType::BF16, "BF16"},
    {DType::I64, "I64"},  {DType::I32, "I32"}, {DType::I16, "I16"}, {DType::I8, "I8"},
    {DType::U64, "U64"},  {DType::U32, "U32"}, {DType::U16, "U16"}, {DType::U8, "U8"},
    {DType::Bool, "BOOL"}};

std::string_view name_of(DType dtype) {
  for (const auto& [known, name] : kNames) {
    if (known == dtype) return name;
  }
  throw Error("safetensors has no name for this element type", ErrorKind::Unsupported).got(dtype);
}

DType dtype_named(const JsonReader& reader) {
  for (const auto& [dtype, name] : kNames) {
    if (reader.text() == name) return dtype;
  }
  throw reader.error(concat("there is no element type '", reader.text(), "'"));
}

std::string json_text(std::string_view text) {
  std::string quoted;
  append_json_text(quoted, text, "\"\\");
  return quoted;
}

struct SafeTensorsEntry {
  std::string name;
  DType dtype;
  Shape shape;
  std::uint64_t begin, end;
};

SafeTensorsEntry read_entry(std::string_view name, const JsonReader& reader,
                            std::uint64_t data_bytes) {
  reader.allow_only({"dtype", "shape", "data_offsets"});
  SafeTensorsEntry entry{std::string(name), dtype_named(reader.member("dtype")),
                         reader.member("shape").integers(), 0, 0};
  const JsonReader offsets = reader.member("data_offsets");
  const std::vector<JsonReader> ends = offsets.elements();
  if (ends.size() != 2) throw offsets.error("expected where the elements begin and end");
  entry.begin = static_cast<std::uint64_t>(ends[0].integer(0));
  entry.end = static_cast<std::uint64_t>(ends[1].integer(ends[0].integer()));
  if (entry.end > data_bytes) {
    throw offsets.error("the file ends before the tensor does: it was cut off or is damaged")
        .expected("at least ", entry.end, " bytes of elements")
        .got(data_bytes);
  }
  for (const std::int64_t extent : entry.shape) {
    if (extent < 0 || extent > kMaxExtent)
      throw reader.member("shape").error("an extent is out of range");
  }
  const std::int64_t count = checked_element_count(entry.shape);
  const auto bytes = static_cast<std::uint64_t>(count) * info(entry.dtype).storage_bytes;
  if (bytes != entry.end - entry.begin) {
    throw reader.error("the elements do not fit the shape")
        .expected(bytes, " bytes")
        .got(entry.end - entry.begin, " bytes");
  }
  return entry;
}

// Requires that every byte belongs to one tensor.
void require_whole(std::vector<SafeTensorsEntry> entries, std::uint64_t data_bytes) {
  std::ranges::sort(
      entries, {}, [](const SafeTensorsEntry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t at = 0;
  for (const SafeTensorsEntry& entry : entries) {
    if (entry.begin != at) {
      throw Error("safetensors: elements overlap or leave a gap")
          .at("tensor '", entry.name, "'")
          .expected("begin at byte ", at)
          .got(entry.begin);
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    throw Error("safetensors: the file is longer or shorter than its tensors")
        .expected(at, " bytes of elements")
        .got(data_bytes);
  }
}

}  // namespace

SafeTensors read_safetensors(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  static_assert(std::endian::native == std::endian::little, "elements are little-endian");
  if (bytes.size() < kLengthBytes) {
    throw Error("safetensors: the file is too short")
        .expected("at least 8 bytes")
        .got(bytes.size());
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > bytes.size() - kLengthBytes || header_bytes > kMaxHeaderBytes) {
    throw Error("safetensors: the header is longer than the file")
        .expected("at most ", bytes.size() - kLengthBytes, " bytes")
        .got(header_bytes);
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                                header_bytes);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header_bytes);
  const JsonValue json = parse_json(header, "header");
  SafeTensors content;
  std::vector<SafeTensorsEntry> entries;
  for (const auto& [name, reader] : JsonReader(json, "header").members()) {
    if (name == kMetadata) {
      for (const auto& [key, text] : reader.members()) content.metadata.emplace(key, text.text());
    } else {
      entries.push_back(read_entry(name, reader, data.size()));
    }
  }
  require_whole(entries, data.size());
  for (const SafeTensorsEntry& entry : entries) {
    const std::span<const std::byte> elements = data.subspan(entry.begin, entry.end - entry.begin);
    Tensor tensor;
    if (owner) {
      tensor = Tensor::borrow(entry.dtype, entry.shape, owner, elements);
    } else {
      tensor = Tensor(entry.dtype, entry.shape);
      if (!elements.empty())
        std::memcpy(tensor.mutable_bytes().data(), elements.data(), elements.size());
    }
    content.tensors.emplace_back(entry.name, std::move(tensor));
  }
  return content;
}

SafeTensors read_safetensors_file(const std::string& path) try {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return read_safetensors(file->bytes(), file);
} catch (Error& error) {
  throw error.at(error.has_place() ? concat(path, ", ", error.place()) : path);
}

void write_safetensors_file(const SafeTensors& content, const std::string& path) {
  std::string header = "{";
  const auto add = [&](std::string_view name, const std::string& value) {
    if (header.size() > 1) header += ',';
    header += json_text(name) + ":" + value;
  };
  std::string metadata;
  for (const auto& [key, text] : content.metadata) {
    metadata += concat(metadata.empty() ? "" : ",", json_text(key), ":", json_text(text));
  }
  if (!metadata.empty()) add(kMetadata, "{" + metadata + "}");
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    std::vector<std::string> extents;
    for (const std::int64_t extent : tensor.shape()) extents.push_back(std::to_string(extent));
    const std::uint64_t end = offset + tensor.byte_size();
    add(name, concat("{\"dtype\":\"", name_of(tensor.dtype()), "\",\"shape\":[", join(extents, ","),
                     "],\"data_offsets\":[", offset, ",", end, "]}"));
    offset = end;
  }
  header += "}";
  header.append((kAlignment - header.size() % kAlignment) % kAlignment, ' ');
  NewFile file(path);
  const std::uint64_t header_bytes = header.size();
  file.out().write(reinterpret_cast<const char*>(&header_bytes), kLengthBytes);
  file.out() << header;
  for (const auto& [name, tensor] : content.tensors) {
    const std::span<const std::byte> elements = tensor.bytes();
    file.out().write(reinterpret_cast<const char*>(elements.data()),
                     static_cast<std::streamsize>(elements.size()));
  }
  file.finish();
}

}  // namespace tenon::frontends
