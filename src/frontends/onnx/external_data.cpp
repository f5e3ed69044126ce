#include "frontends/onnx/external_data.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/sha1.h"

#include <optional>

namespace tenon::frontends::onnx {
namespace {

struct Entries {
  std::string location, checksum;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

std::uint64_t byte_number(std::string_view key, const std::string& text) {
  const std::optional<std::int64_t> number = parse_integer(text);
  if (!number || *number < 0) {
    throw Error(concat("external data: the ", key, " is not a number of bytes")).got(quote(text));
  }
  return static_cast<std::uint64_t>(*number);
}

Entries read_entries(const onnx_schema::TensorProto& tensor) {
  Entries entries;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") entries.location = entry.value();
    if (entry.key() == "checksum") entries.checksum = entry.value();
    if (entry.key() == "offset") entries.offset = byte_number("offset", entry.value());
    if (entry.key() == "length") entries.length = byte_number("length", entry.value());
  }
  if (entries.location.empty())
    throw Error("external data: no 'location' says which file it is in");
  return entries;
}

}  // namespace

ExternalFiles::Piece ExternalFiles::bytes_of(const onnx_schema::TensorProto& tensor) {
  const Entries entries = read_entries(tensor);
  if (!has_folder_) {
    throw Error("external data: the model was not read from a file, so nothing lies beside it")
        .got("location: ", quote(entries.location))
        .hint("give the model as a path, or the folder of its data");
  }
  OpenFile& open = files_[entries.location];
  if (!open.file) open.file = MappedFile::open_beneath(folder_, entries.location);
  const std::span<const std::byte> all = open.file->bytes();

  const std::uint64_t offset = entries.offset;
  if (offset > all.size() || entries.length.value_or(0) > all.size() - offset) {
    throw Error("external data: the tensor lies outside the file")
        .expected("at most ", all.size(), " bytes, the size of '", entries.location, "'")
        .got("offset ", offset, ", length ", entries.length.value_or(0));
  }
  if (!entries.checksum.empty()) {
    if (open.sha1.empty()) open.sha1 = sha1_hex(all);
    std::string wanted = entries.checksum;
    for (char& c : wanted) c = static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    if (wanted != open.sha1) {
      throw Error(concat("external data: '", entries.location, "' is not the file the model means"))
          .expected("SHA-1 ", wanted)
          .got("SHA-1 ", open.sha1);
    }
  }
  return {open.file, all.subspan(offset, entries.length.value_or(all.size() - offset))};
}

}  // namespace tenon::frontends::onnx
