#include "frontends/numpy/npy.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "frontends/mapped_file.h"
#include "frontends/numpy/npy_header.h"

#include <algorithm>
#include <cstring>

namespace tenon::frontends::numpy {
namespace {

bool is_character(char32_t code) { return code < 0xd800 || (code >= 0xe000 && code <= 0x10ffff); }

// Decodes UTF-8 in shortest form; nullopt for invalid text.
std::optional<std::u32string> characters_of(std::string_view text) {
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  std::u32string characters;
  while (!text.empty()) {
    const auto [code, bytes] = decode_utf8(text);
    if (bytes == 0 || code < least[bytes] || !is_character(code)) return std::nullopt;
    characters += code;
    text.remove_prefix(bytes);
  }
  return characters;
}

// Strings of width zero take no bytes in the file, so their number is limited.
constexpr std::int64_t kMaxEmptyTexts = 1 << 20;

// Maps element k of the row-major array to its position in Fortran order.
class FortranOrder {
 public:
  explicit FortranOrder(const Shape& shape) : shape_(shape), at_(shape.size(), 0) {
    std::int64_t stride = 1;
    for (std::int64_t extent : shape) {
      strides_.push_back(stride);
      stride *= extent;
    }
  }
  std::size_t position() const { return static_cast<std::size_t>(position_); }
  void advance() {
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      position_ += strides_[axis];
      if (++at_[axis] < shape_[axis]) return;
      position_ -= strides_[axis] * shape_[axis];
      at_[axis] = 0;
    }
  }

 private:
  const Shape& shape_;
  std::vector<std::int64_t> at_, strides_;
  std::int64_t position_ = 0;
};

// Copies the elements in row-major order and the machine's byte order.
void copy_elements(const NpyHeader& header, std::span<const std::byte> from,
                   std::span<std::byte> to) {
  const std::size_t width = header.format.item_bytes;
  if (header.is_fortran_order && header.shape.size() > 1) {
    FortranOrder order(header.shape);
    for (std::size_t at = 0; at < to.size(); at += width, order.advance()) {
      std::memcpy(&to[at], &from[order.position() * width], width);
    }
  } else if (!to.empty()) {
    std::memcpy(to.data(), from.data(), to.size());
  }
  const std::size_t swapped = header.format.kind == 'c' ? width / 2 : width;
  if (!header.format.is_big_endian || swapped == 1) return;
  for (std::size_t at = 0; at < to.size(); at += swapped) {
    std::ranges::reverse(to.subspan(at, swapped));
  }
}

std::string one_text(const NpyFormat& format, std::span<const std::byte> item) {
  std::string text;
  if (format.kind == 'S') {
    text.assign(reinterpret_cast<const char*>(item.data()), item.size());
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  }
  std::vector<std::uint32_t> characters;
  for (std::size_t at = 0; at < item.size(); at += 4) {
    std::uint32_t character = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t place = format.is_big_endian ? k : 3 - k;
      character = character << 8 | std::to_integer<std::uint32_t>(item[at + place]);
    }
    characters.push_back(character);
  }
  while (!characters.empty() && characters.back() == 0) characters.pop_back();
  for (std::uint32_t character : characters)
    append_utf8(text, is_character(character) ? character : 0xfffd);
  return text;
}

Tensor read_texts(const NpyHeader& header, std::int64_t count, std::span<const std::byte> data) {
  const std::size_t width = header.format.item_bytes;
  if (width == 0 && count > kMaxEmptyTexts)
    throw Error("npy: too many texts of no width").got(count);
  if (count == 0) return Tensor(DType::String, header.shape);
  std::vector<std::string> texts;
  FortranOrder order(header.shape);
  for (std::int64_t k = 0; k < count; ++k, order.advance()) {
    const std::size_t at = header.is_fortran_order ? order.position() : static_cast<std::size_t>(k);
    texts.push_back(one_text(header.format, data.subspan(at * width, width)));
  }
  return Tensor::of_strings(header.shape, std::move(texts));
}

DType dtype_in(const NpyHeader& header, std::optional<DType> as) {
  if (const std::optional<DType> dtype = dtype_of(header.format)) return *dtype;
  const bool is_opaque = header.format.kind == 'V';
  if (is_opaque && as && *as != DType::String &&
      info(*as).storage_bytes == header.format.item_bytes) {
    return *as;
  }
  throw Error("npy: no element type of Tenon's fits", ErrorKind::Unsupported)
      .got("kind '", std::string(1, header.format.kind), "' of ", header.format.item_bytes,
           " bytes")
      .hint(is_opaque ? "say which element type the bytes are" : "convert the array before saving");
}

// Validates elements of a file, where a bool may differ from 0 and 1, and a 4-bit integer may be
// out of range.
void require_valid(const Tensor& tensor) {
  const auto is_bad = [&](std::byte byte) {
    const auto value = static_cast<int>(static_cast<std::int8_t>(byte));
    switch (tensor.dtype()) {
      case DType::Bool:
      case DType::U2:
      case DType::U4:
        return std::to_integer<std::uint64_t>(byte) > highest_integer(tensor.dtype());
      case DType::I2:
      case DType::I4:
        return value < lowest_integer(tensor.dtype()) ||
               value > static_cast<int>(highest_integer(tensor.dtype()));
      case DType::F4E2M1:
        return std::to_integer<unsigned>(byte) > 15;
      default:
        return false;
    }
  };
  if (info(tensor.dtype()).storage_bytes == 1 && std::ranges::any_of(tensor.bytes(), is_bad)) {
    throw Error(concat("npy: a byte is no ", to_string(tensor.dtype())));
  }
}

// Returns the type that `write_npy` writes.
DType widened(DType dtype) {
  if (description_of(dtype)) return dtype;
  if (is_float(dtype)) return DType::F32;
  return info(dtype).arithmetic == Arithmetic::Signed ? DType::I8 : DType::U8;
}

std::string write_texts(const Tensor& tensor) {
  std::vector<std::u32string> texts;
  std::size_t longest = 1, longest_bytes = 1;
  bool is_unicode = true;
  for (const std::string& text : tensor.strings()) {
    std::optional<std::u32string> characters = characters_of(text);
    is_unicode &= characters.has_value();
    texts.push_back(characters.value_or(U""));
    longest = std::max(longest, texts.back().size());
    longest_bytes = std::max(longest_bytes, text.size());
  }
  std::string file = is_unicode ? write_header(concat("<U", longest), tensor.shape())
                                : write_header(concat("|S", longest_bytes), tensor.shape());
  for (std::size_t k = 0; k < texts.size(); ++k) {
    if (is_unicode) {
      for (char32_t character : texts[k]) {
        for (int shift = 0; shift < 32; shift += 8) file += static_cast<char>(character >> shift);
      }
      file.append((longest - texts[k].size()) * 4, '\0');
    } else {
      file += tensor.strings()[k];
      file.append(longest_bytes - tensor.strings()[k].size(), '\0');
    }
  }
  return file;
}

}  // namespace

namespace {

std::span<const std::byte> elements_of(const NpyHeader& header, std::span<const std::byte> bytes) {
  const std::int64_t count = checked_element_count(header.shape);
  const std::span<const std::byte> rest = bytes.subspan(header.data_offset);
  std::size_t needed = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(count), header.format.item_bytes, &needed) ||
      needed > rest.size()) {
    throw Error("npy: the file ends before its array does")
        .expected(count, " elements of ", header.format.item_bytes, " bytes")
        .got(rest.size(), " bytes");
  }
  return rest.first(needed);
}

bool is_as_here(const NpyHeader& header) {
  return (!header.is_fortran_order || header.shape.size() < 2) && !header.format.is_big_endian;
}

}  // namespace

Tensor read_npy(std::span<const std::byte> bytes, std::optional<DType> as,
                std::shared_ptr<const void> owner) {
  const NpyHeader header = read_header(bytes);
  const std::int64_t count = checked_element_count(header.shape);
  const std::span<const std::byte> data = elements_of(header, bytes);
  if (header.format.kind == 'S' || header.format.kind == 'U')
    return read_texts(header, count, data);

  const DType dtype = dtype_in(header, as);
  Tensor tensor;
  if (owner && is_as_here(header)) {
    tensor = Tensor::borrow(dtype, header.shape, std::move(owner), data);
  } else {
    tensor = Tensor(dtype, header.shape);
    if (count > 0) copy_elements(header, data, tensor.mutable_bytes());
  }
  require_valid(tensor);
  return tensor;
}

StoredArray stored_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const NpyHeader header = read_header(bytes);
  const bool is_text = header.format.kind == 'S' || header.format.kind == 'U';
  // Single-byte elements are always aligned, and `read_npy` validates bools.
  if (!is_text && is_as_here(header) && header.format.item_bytes > 1)
    return {dtype_in(header, {}), header.shape, elements_of(header, bytes), std::move(owner)};
  auto tensor = std::make_shared<Tensor>(read_npy(bytes, {}, std::move(owner)));
  if (is_text) throw Error("an array of texts has no bytes to be read", ErrorKind::Unsupported);
  return {tensor->dtype(), tensor->shape(), tensor->bytes(), tensor};
}

Tensor read_npy_file(const std::string& path, std::optional<DType> as) try {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return read_npy(file->bytes(), as, file);
} catch (Error& error) {
  throw error.has_place() ? error : error.at(path);
}

std::string write_npy(const Tensor& tensor) {
  if (tensor.dtype() == DType::String) return write_texts(tensor);
  const DType written = widened(tensor.dtype());
  const Tensor array = written == tensor.dtype() ? tensor : tensor.converted(written);
  std::string file = write_header(*description_of(written), tensor.shape());
  file.append(reinterpret_cast<const char*>(array.bytes().data()), array.byte_size());
  return file;
}

void write_npy_file(const Tensor& tensor, const std::string& path) {
  NewFile file(path);
  // Writes elements without a copy if they are stored unchanged: an output may be as large as the
  // rest of the process.
  const bool is_stored_as_is =
      tensor.dtype() != DType::String && widened(tensor.dtype()) == tensor.dtype();
  const std::string head = is_stored_as_is
                               ? write_header(*description_of(tensor.dtype()), tensor.shape())
                               : write_npy(tensor);
  file.out().write(head.data(), static_cast<std::streamsize>(head.size()));
  if (is_stored_as_is) {
    file.out().write(reinterpret_cast<const char*>(tensor.bytes().data()),
                     static_cast<std::streamsize>(tensor.byte_size()));
  }
  file.finish();
}

}  // namespace tenon::frontends::numpy
