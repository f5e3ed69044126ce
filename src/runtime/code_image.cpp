#include "runtime/code_image.h"

#include "base/error.h"
#include "base/text.h"

#include <elf.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace tenon::inline runtime {
namespace {

Error broken(std::string_view what) {
  return Error("the program's code cannot be loaded").got(what).hint("compile the model again");
}

Error no_memory(std::size_t bytes) {
  return Error("no memory for the program's code", ErrorKind::OutOfMemory)
      .got(format_bytes(bytes), " wanted");
}

// Returns the address of a function that generated code may import; it has no other dependencies.
void* imported(std::string_view name) {
  struct Import {
    std::string_view name;
    void* address;
  };
  using Real = double (*)(double);
  using RealPair = double (*)(double, double);
  using NumberPair = float (*)(float, float);
  static const Import imports[] = {
      {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
      {"memset", reinterpret_cast<void*>(&std::memset)},
      {"memmove", reinterpret_cast<void*>(&std::memmove)},
#define TENON_IMPORT(f) {#f, reinterpret_cast<void*>(static_cast<Real>(&std::f))}
      TENON_IMPORT(exp),
      TENON_IMPORT(log),
      TENON_IMPORT(log1p),
      TENON_IMPORT(sin),
      TENON_IMPORT(cos),
      TENON_IMPORT(tan),
      TENON_IMPORT(asin),
      TENON_IMPORT(acos),
      TENON_IMPORT(atan),
      TENON_IMPORT(sinh),
      TENON_IMPORT(cosh),
      TENON_IMPORT(tanh),
      TENON_IMPORT(asinh),
      TENON_IMPORT(acosh),
      TENON_IMPORT(atanh),
      TENON_IMPORT(erf),
#undef TENON_IMPORT
      {"pow", reinterpret_cast<void*>(static_cast<RealPair>(&std::pow))},
      {"fmod", reinterpret_cast<void*>(static_cast<RealPair>(&std::fmod))},
      {"atan2", reinterpret_cast<void*>(static_cast<RealPair>(&std::atan2))},
      // The compiler emits these for comparisons of 16-bit floats.
      {"fmaxf", reinterpret_cast<void*>(static_cast<NumberPair>(&std::fmax))},
      {"fminf", reinterpret_cast<void*>(static_cast<NumberPair>(&std::fmin))},
      {"fmax", reinterpret_cast<void*>(static_cast<RealPair>(&std::fmax))},
      {"fmin", reinterpret_cast<void*>(static_cast<RealPair>(&std::fmin))},
  };
  for (const Import& import : imports) {
    if (import.name == name) return import.address;
  }
  throw broken(concat("it calls '", name, "'"));
}

// Bounds-checked view of an ELF object.
class ObjectFile {
 public:
  explicit ObjectFile(std::span<const std::byte> bytes) : bytes_(bytes) {
    const auto& header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_REL ||
        header.e_machine != EM_X86_64 || header.e_shentsize != sizeof(Elf64_Shdr)) {
      throw broken("no relocatable x86-64 object");
    }
    sections_ = list<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  }
  std::span<const Elf64_Shdr> sections() const { return sections_; }
  const Elf64_Shdr& section(std::size_t index) const {
    if (index >= sections_.size()) throw broken("a section that is not there");
    return sections_[index];
  }
  template <class T>
  std::span<const T> content(const Elf64_Shdr& section) const {
    return list<T>(section.sh_offset, section.sh_size / sizeof(T));
  }
  std::string text(const Elf64_Shdr& strings, std::size_t offset) const {
    const auto all = content<char>(strings);
    if (offset >= all.size()) throw broken("a name that is not there");
    return std::string(all.data() + offset, strnlen(all.data() + offset, all.size() - offset));
  }

 private:
  template <class T>
  std::span<const T> list(std::uint64_t offset, std::uint64_t count) const {
    if (offset % alignof(T) != 0 || offset > bytes_.size() ||
        count > (bytes_.size() - offset) / sizeof(T)) {
      throw broken("a part past its end");
    }
    return {reinterpret_cast<const T*>(bytes_.data() + offset), count};
  }
  template <class T>
  const T& at(std::uint64_t offset) const {
    return list<T>(offset, 1).front();
  }

  std::span<const std::byte> bytes_;
  std::span<const Elf64_Shdr> sections_;
};

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStubBytes = 16;  // jmp *[rip]; address
constexpr std::size_t kPadding = 16;
constexpr std::uint64_t kMaxImage = std::uint64_t{1} << 30;

// Writes a jump to an absolute address: relative calls reach only 2 GiB.
void write_stub(std::byte* stub, void* target) {
  static constexpr unsigned char kJump[] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0x90, 0x90};
  std::memcpy(stub, kJump, sizeof(kJump));
  std::memcpy(stub + sizeof(kJump), &target, sizeof(target));
}

// `room`: bytes from `place` to the end of the section. An offset may lead to any byte of the
// image, and no further: the distance to an instruction's end is part of the addend, so the image
// starts with padding.
void relocate(std::byte* place, std::uint64_t room, std::uint32_t type, const std::byte* target,
              std::int64_t addend, std::span<const std::byte> image) {
  const bool is_absolute = type == R_X86_64_64;
  if (!is_absolute && type != R_X86_64_PC32 && type != R_X86_64_PLT32) {
    throw broken(concat("a relocation of kind ", type));
  }
  if (room < (is_absolute ? sizeof(std::int64_t) : sizeof(std::int32_t)))
    throw broken("a relocation outside");
  const std::uint64_t value =
      reinterpret_cast<std::uint64_t>(target) + static_cast<std::uint64_t>(addend);
  if (value - reinterpret_cast<std::uint64_t>(image.data()) >= image.size())
    throw broken("an address outside");
  if (is_absolute) {
    std::memcpy(place, &value, sizeof(value));
    return;
  }
  const auto distance = static_cast<std::int64_t>(value - reinterpret_cast<std::uint64_t>(place));
  if (distance != static_cast<std::int32_t>(distance)) throw broken("a jump that is too far");
  const auto stored = static_cast<std::int32_t>(distance);
  std::memcpy(place, &stored, sizeof(stored));
}

}  // namespace

CodeImage::CodeImage(std::span<const std::byte> object_bytes) {
  const ObjectFile object(object_bytes);
  std::vector<std::size_t> offsets(object.sections().size(), 0);
  const Elf64_Shdr* symbol_table = nullptr;
  std::size_t size = kPadding;
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    const Elf64_Shdr& section = object.section(k);
    if (section.sh_type == SHT_SYMTAB) symbol_table = &section;
    if ((section.sh_flags & SHF_ALLOC) == 0) continue;
    if (section.sh_size > kMaxImage || section.sh_addralign > kPage)
      throw broken("a section too large");
    size = round_up(size, std::max<std::size_t>(section.sh_addralign, 1));
    offsets[k] = size;
    size += section.sh_size;
    if (size > kMaxImage) throw broken("sections too large");
  }
  if (symbol_table == nullptr) throw broken("no symbols");
  const auto symbols = object.content<Elf64_Sym>(*symbol_table);
  const Elf64_Shdr& names = object.section(symbol_table->sh_link);
  const std::size_t stubs = round_up(size, kStubBytes);
  size_ = round_up(stubs + symbols.size() * kStubBytes + 1, kPage);

  void* mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw no_memory(size_);
  memory_ = static_cast<std::byte*>(mapped);
  try {
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      const Elf64_Shdr& section = object.section(k);
      if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOBITS) continue;
      const auto content = object.content<std::byte>(section);
      std::memcpy(memory_ + offsets[k], content.data(), content.size());
    }
    std::vector<std::byte*> addresses(symbols.size(), nullptr);
    for (std::size_t k = 1; k < symbols.size(); ++k) {
      const Elf64_Sym& symbol = symbols[k];
      const std::string name = object.text(names, symbol.st_name);
      if (symbol.st_shndx == SHN_UNDEF) {
        if (name.empty()) continue;
        addresses[k] = memory_ + stubs + k * kStubBytes;
        write_stub(addresses[k], imported(name));
      } else if (symbol.st_shndx < offsets.size()) {
        const Elf64_Shdr& section = object.section(symbol.st_shndx);
        if ((section.sh_flags & SHF_ALLOC) == 0) continue;  // the section has no address
        const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
        if (symbol.st_value > section.sh_size ||
            (is_function && symbol.st_value == section.sh_size)) {
          throw broken("a symbol outside");
        }
        if (is_function && (section.sh_flags & SHF_EXECINSTR) == 0)
          throw broken("a function that is no code");
        addresses[k] = memory_ + offsets[symbol.st_shndx] + symbol.st_value;
        if (is_function) functions_[name] = addresses[k];
      }
    }
    for (const Elf64_Shdr& section : object.sections()) {
      if (section.sh_type != SHT_RELA) continue;
      const Elf64_Shdr& target = object.section(section.sh_info);
      if ((target.sh_flags & SHF_ALLOC) == 0) continue;
      for (const Elf64_Rela& entry : object.content<Elf64_Rela>(section)) {
        const std::size_t symbol = ELF64_R_SYM(entry.r_info);
        if (symbol >= addresses.size() || addresses[symbol] == nullptr ||
            entry.r_offset > target.sh_size) {
          throw broken("a relocation outside");
        }
        relocate(memory_ + offsets[section.sh_info] + entry.r_offset,
                 target.sh_size - entry.r_offset,
                 static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info)), addresses[symbol],
                 entry.r_addend, {memory_, size_});
      }
    }
    if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0)
      throw broken("the system forbids to run it");
  } catch (...) {
    munmap(memory_, size_);
    throw;
  }
}

CodeImage::CodeImage(CodeImage&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      functions_(std::move(other.functions_)) {}

CodeImage& CodeImage::operator=(CodeImage&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  std::swap(functions_, other.functions_);
  return *this;
}

CodeImage::~CodeImage() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

void* CodeImage::function(const std::string& name) const {
  const auto found = functions_.find(name);
  if (found == functions_.end()) throw broken(concat("no function '", name, "'"));
  return found->second;
}

}  // namespace tenon::inline runtime
