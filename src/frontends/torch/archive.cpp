#include "frontends/torch/archive.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cstring>

namespace tenon::frontends::torch {
namespace {

constexpr std::string_view kModels = "models/", kWeights = "data/weights/",
                           kConstants = "data/constants/";
constexpr std::size_t kMaxStoredRank = 64;

struct ScalarType {
  std::int64_t number;
  DType dtype;
};
constexpr ScalarType kScalarTypes[] = {
    {1, DType::U8},    {2, DType::I8},   {3, DType::I16},       {4, DType::I32},
    {5, DType::I64},   {6, DType::F16},  {7, DType::F32},       {8, DType::F64},
    {9, DType::F16},   {10, DType::F32}, {11, DType::F64},      {12, DType::Bool},
    {13, DType::BF16}, {28, DType::U16}, {29, DType::F8E4M3FN}, {30, DType::F8E5M2},
};

std::vector<std::int64_t> numbers_of(const JsonReader& sizes) {
  std::vector<std::int64_t> numbers;
  for (const JsonReader& size : sizes.elements())
    numbers.push_back(size.member("as_int").integer(0, kMaxExtent));
  if (numbers.size() > kMaxStoredRank) throw sizes.error("a tensor has too many axes");
  return numbers;
}

// Copies the elements of a strided tensor in row-major order.
Tensor packed(DType dtype, const Shape& shape, const std::vector<std::int64_t>& strides,
              std::int64_t offset, std::span<const std::byte> storage) {
  Tensor tensor(dtype, shape);
  const auto width = static_cast<std::size_t>(info(dtype).storage_bytes);
  std::byte* to = tensor.mutable_bytes().data();
  std::vector<std::int64_t> at(shape.size(), 0);
  for (std::int64_t k = 0; k < tensor.size(); ++k, to += width) {
    std::int64_t element = offset;
    for (std::size_t axis = 0; axis < at.size(); ++axis) element += at[axis] * strides[axis];
    std::memcpy(to, storage.data() + static_cast<std::size_t>(element) * width, width);
    for (std::size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
  return tensor;
}

// Returns the position after the last element of a strided tensor; nullopt on overflow.
std::optional<std::int64_t> end_of(const Shape& shape, const std::vector<std::int64_t>& strides,
                                   std::int64_t offset) {
  std::int64_t last = offset;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return offset;
    std::int64_t step = 0;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return last + 1;
}

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * std::max<std::int64_t>(shape[axis], 1);
  return strides;
}

}  // namespace

DType dtype_of_scalar_type(std::int64_t number) {
  const auto found = std::ranges::find(kScalarTypes, number, &ScalarType::number);
  if (found == std::end(kScalarTypes)) {
    throw Error("an element type of PyTorch has no counterpart", ErrorKind::Unsupported)
        .got("scalar type ", number);
  }
  return found->dtype;
}

bool is_complex_type(std::int64_t number) { return number >= 9 && number <= 11; }

Archive::Archive(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                 std::string source)
    : source_(std::move(source)),
      owner_(std::move(owner)),
      reader_(bytes),
      entries_(reader_.entries()) {
  std::vector<const numpy::ZipEntry*> models;
  for (const numpy::ZipEntry& entry : entries_) {
    const std::size_t folder = entry.name.find('/');
    if (folder == std::string::npos) continue;
    const std::string_view path = std::string_view(entry.name).substr(folder + 1);
    if (path.starts_with(kModels) && path.ends_with(".json")) models.push_back(&entry);
    if (path == "serialized_exported_program.json" || path == "serialized_state_dict.pt") {
      throw Error("the archive has the layout of PyTorch before 2.9", ErrorKind::Unsupported)
          .hint("load it with torch.export.load and save it again with PyTorch 2.9 or newer");
    }
  }
  if (models.size() != 1) {
    throw Error("the archive is not one exported program")
        .expected("one file models/NAME.json, as torch.export.save writes it")
        .got(models.size(), " such files");
  }
  root_ = models.front()->name.substr(0, models.front()->name.find('/') + 1);
  std::string name = models.front()->name.substr(root_.size() + kModels.size());
  name.resize(name.size() - std::strlen(".json"));
  if (const auto order = find("byteorder"); order && text_of(*order) != "little")
    throw Error("the archive was written on a big-endian machine", ErrorKind::Unsupported);
  program_ = parse_json(text_of(*models.front()), source_);
  read_tensors(concat(kWeights, name, "_weights_config.json"), kWeights);
  read_tensors(concat(kConstants, name, "_constants_config.json"), kConstants);
}

std::optional<numpy::ZipEntry> Archive::find(std::string_view path) const {
  const auto found = std::ranges::find_if(entries_, [&](const numpy::ZipEntry& entry) {
    return entry.name.size() == root_.size() + path.size() && entry.name.starts_with(root_) &&
           entry.name.ends_with(path);
  });
  return found == entries_.end() ? std::nullopt : std::optional(*found);
}

std::string Archive::text_of(const numpy::ZipEntry& entry) {
  const numpy::UnpackedEntry content = reader_.unpacked(entry);
  return {reinterpret_cast<const char*>(content.bytes.data()), content.bytes.size()};
}

void Archive::read_tensors(const std::string& config, std::string_view folder) {
  const auto entry = find(config);
  if (!entry) return;
  const JsonValue json = parse_json(text_of(*entry), source_);
  for (const auto& [name, described] : JsonReader(json, source_).member("config").members()) {
    const std::string& path = described.member("path_name").text();
    tensors_.try_emplace(std::string(name), Stored{concat(folder, path), described.json()});
  }
}

Tensor Archive::tensor(const std::string& name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw Error("the archive lacks a tensor").got("'", name, "'");
  const JsonReader described(found->second.description, source_);
  if (described.member("use_pickle").boolean()) {
    throw Error("a tensor is stored as a Python object", ErrorKind::Unsupported)
        .got("'", name, "'");
  }
  const JsonReader meta = described.member("tensor_meta");
  const std::int64_t type = meta.member("dtype").integer();
  const DType dtype = dtype_of_scalar_type(type);
  Shape shape = numbers_of(meta.member("sizes"));
  std::vector<std::int64_t> strides = numbers_of(meta.member("strides"));
  std::int64_t offset = meta.member("storage_offset").member("as_int").integer(0, kMaxExtent);
  if (strides.size() != shape.size()) throw meta.error("a tensor has other axes than strides");
  if (is_complex_type(type)) {  // Pairs of real numbers.
    for (std::int64_t& stride : strides) stride *= 2;
    offset *= 2;
    shape.push_back(2);
    strides.push_back(1);
  }
  const auto entry = find(found->second.path);
  if (!entry) throw Error("the archive lacks a file").got(found->second.path);
  const numpy::UnpackedEntry content = reader_.unpacked(*entry);
  const auto width = static_cast<std::uint64_t>(info(dtype).storage_bytes);
  const std::int64_t count = checked_element_count(shape);
  const auto end = end_of(shape, strides, offset);
  if (!end || static_cast<std::uint64_t>(*end) > content.bytes.size() / width) {
    throw Error("a tensor lies outside its file")
        .at(found->second.path)
        .got("'", name, "' in ", content.bytes.size(), " bytes");
  }
  if (strides != row_major_strides(shape) && count > 1)
    return packed(dtype, shape, strides, offset, content.bytes);
  const auto stored = content.bytes.subspan(static_cast<std::size_t>(offset) * width,
                                            static_cast<std::size_t>(count) * width);
  return Tensor::borrow(dtype, shape, content.owner ? content.owner : owner_, stored);
}

}  // namespace tenon::frontends::torch
