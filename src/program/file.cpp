#include "program/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "program/checksum.h"
#include "program/verify.h"

namespace tenon {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'E', 'N', 'O', 'N', 'P', 'R', '2'};
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMaxTables = std::uint64_t{1} << 30;

// Everything before the constants is covered by a checksum of its bytes. The constants, which are mapped
// and may be hundreds of megabytes, have theirs in the tables, to be compared when they are first used.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint64_t table_bytes = 0, code_bytes = 0, constant_offset = 0, constant_bytes = 0;
  std::uint64_t checksum = 0;
};

std::uint64_t header_checksum(std::span<const std::byte> tables, std::span<const std::byte> code) {
  return checksum(tables) * 31 + checksum(code);
}

class Writer {
 public:
  void number(std::uint64_t value) {
    for (int k = 0; k < 8; ++k) bytes_ += static_cast<char>(value >> (8 * k));
  }
  void real(double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    number(bits);
  }
  void text(const std::string& value) {
    number(value.size());
    bytes_ += value;
  }
  void extent(const Extent& value) {
    number(value.steps().size());
    for (const Extent::Step& step : value.steps()) {
      number(static_cast<std::uint64_t>(step.op));
      number(static_cast<std::uint64_t>(step.number));
    }
  }
  template <class T, class F>
  void list(const std::vector<T>& items, F write) {
    number(items.size());
    for (const T& item : items) write(item);
  }
  void numbers(const std::vector<std::uint32_t>& items) {
    list(items, [&](std::uint32_t item) { number(item); });
  }
  void extents(const std::vector<Extent>& items) {
    list(items, [&](const Extent& item) { extent(item); });
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

Error damaged(std::string_view what) {
  return Error("the program file is damaged").got(what).hint("compile the model again");
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    if (bytes_.size() < 8) throw damaged("it ends inside its tables");
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data(), 8);
    bytes_ = bytes_.subspan(8);
    return value;
  }
  std::uint32_t id(std::size_t bound) {
    const std::uint64_t value = number();
    if (value >= bound) throw damaged("a number that nothing has");
    return static_cast<std::uint32_t>(value);
  }
  double real() {
    const std::uint64_t bits = number();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  std::size_t count(std::size_t least_bytes) {
    const std::uint64_t value = number();
    if (value > bytes_.size() / least_bytes) throw damaged("a list longer than the file");
    return value;
  }
  std::string text() {
    const std::size_t size = count(1);
    std::string value(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  Extent extent(std::size_t symbol_count) {
    const std::size_t size = count(16);
    std::vector<Extent::Step> steps;
    std::size_t depth = 0;
    for (std::size_t k = 0; k < size; ++k) {
      const std::uint64_t op = number();
      const auto value = static_cast<std::int64_t>(number());
      if (op > static_cast<std::uint64_t>(Extent::Op::Maximum)) throw damaged("an unknown step of an extent");
      const auto kind = static_cast<Extent::Op>(op);
      if (kind == Extent::Op::Symbol && (value < 0 || static_cast<std::uint64_t>(value) >= symbol_count)) {
        throw damaged("an extent of an unknown symbol");
      }
      const bool is_leaf = kind == Extent::Op::Number || kind == Extent::Op::Symbol;
      if (!is_leaf && depth < 2) throw damaged("an extent without operands");
      depth = is_leaf ? depth + 1 : depth - 1;
      steps.push_back({kind, value});
    }
    if (depth != 1) throw damaged("an extent that is not one number");
    return Extent::of(std::move(steps));
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

std::string tables_of(const Program& program) {
  Writer out;
  out.text(program.name);
  out.text(program.target);
  out.list(program.symbols, [&](const Program::Symbol& symbol) {
    out.text(symbol.name);
    for (std::int64_t number : {symbol.lo, symbol.hi}) out.number(static_cast<std::uint64_t>(number));
    out.number(symbol.input);
    out.number(symbol.axis);
  });
  out.list(program.buffers, [&](const Program::Buffer& buffer) {
    out.text(buffer.name);
    out.text(buffer.dtype);
    out.number(buffer.element_bytes);
    out.extents(buffer.dims);
    out.number(static_cast<std::uint64_t>(buffer.place));
    out.number(buffer.offset);
    out.number(buffer.first_step);
    out.number(buffer.last_step);
  });
  out.numbers(program.inputs);
  out.numbers(program.outputs);
  out.list(program.kernels, [&](const Program::Kernel& kernel) {
    out.text(kernel.name);
    out.text(kernel.symbol);
    out.extent(kernel.scratch_bytes);
    out.list(kernel.checks, [&](const std::string& check) { out.text(check); });
  });
  out.list(program.steps, [&](const Program::Step& step) {
    out.number(step.kernel);
    out.numbers(step.buffers);
    out.extents(step.extents);
    out.extent(step.work);
    out.text(step.name);
    out.real(step.flops);
    out.real(step.bytes);
  });
  out.number(program.arena_bytes);
  out.number(program.is_arena_planned);
  out.list(block_checksums({program.constants.get(), program.constant_bytes}),
           [&](std::uint64_t sum) { out.number(sum); });
  return out.bytes();
}

Program read_tables(Reader in) {
  Program program;
  program.name = in.text();
  program.target = in.text();
  for (std::size_t left = in.count(40); left > 0; --left) {
    Program::Symbol symbol;
    symbol.name = in.text();
    symbol.lo = static_cast<std::int64_t>(in.number());
    symbol.hi = static_cast<std::int64_t>(in.number());
    symbol.input = static_cast<std::uint32_t>(in.number());
    symbol.axis = static_cast<std::uint32_t>(in.number());
    program.symbols.push_back(std::move(symbol));
  }
  const std::size_t symbols = program.symbols.size();
  const auto extents = [&] {
    std::vector<Extent> list;
    for (std::size_t left = in.count(24); left > 0; --left) list.push_back(in.extent(symbols));
    return list;
  };
  for (std::size_t left = in.count(64); left > 0; --left) {
    Program::Buffer buffer;
    buffer.name = in.text();
    buffer.dtype = in.text();
    buffer.element_bytes = static_cast<std::uint32_t>(in.number());
    buffer.dims = extents();
    buffer.place = static_cast<Program::Place>(in.id(4));
    buffer.offset = in.number();
    buffer.first_step = static_cast<std::uint32_t>(in.number());
    buffer.last_step = static_cast<std::uint32_t>(in.number());
    program.buffers.push_back(std::move(buffer));
  }
  const auto ids = [&](std::size_t bound) {
    std::vector<std::uint32_t> list;
    for (std::size_t left = in.count(8); left > 0; --left) list.push_back(in.id(bound));
    return list;
  };
  program.inputs = ids(program.buffers.size());
  program.outputs = ids(program.buffers.size());
  for (std::size_t left = in.count(40); left > 0; --left) {
    Program::Kernel kernel;
    kernel.name = in.text();
    kernel.symbol = in.text();
    kernel.scratch_bytes = in.extent(symbols);
    for (std::size_t checks = in.count(8); checks > 0; --checks) kernel.checks.push_back(in.text());
    program.kernels.push_back(std::move(kernel));
  }
  for (std::size_t left = in.count(64); left > 0; --left) {
    Program::Step step;
    step.kernel = in.id(program.kernels.size());
    step.buffers = ids(program.buffers.size());
    step.extents = extents();
    step.work = in.extent(symbols);
    step.name = in.text();
    step.flops = in.real();
    step.bytes = in.real();
    program.steps.push_back(std::move(step));
  }
  program.arena_bytes = in.number();
  program.is_arena_planned = in.number() != 0;
  for (std::size_t left = in.count(8); left > 0; --left) program.constant_checksums.push_back(in.number());
  if (!in.is_at_end()) throw damaged("something behind its tables");
  return program;
}

// The file, mapped for as long as anybody holds its constants.
struct Mapping {
  explicit Mapping(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw Error("cannot open the program", ErrorKind::Usage).got(path);
    struct stat status {};
    int problem = 0;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
      size = static_cast<std::size_t>(status.st_size);
      void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      problem = mapped == MAP_FAILED ? errno : 0;
      if (mapped != MAP_FAILED) data = static_cast<const std::byte*>(mapped);
    }
    close(file);
    if (problem == ENOMEM) {
      throw Error("no memory to map the program and its constants", ErrorKind::OutOfMemory)
          .at(path)
          .got(format_bytes(size));
    }
    if (problem != 0) throw Error("cannot map the program", ErrorKind::Usage).at(path).got(std::strerror(problem));
    if (data == nullptr) throw damaged("an empty file");
  }
  Mapping(const Mapping&) = delete;
  ~Mapping() { munmap(const_cast<std::byte*>(data), size); }  // NOLINT: unmapped as it was mapped
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

// The parts of a file, as its header says.
struct Layout {
  explicit Layout(std::span<const std::byte> bytes) {
    if (bytes.size() < sizeof(header)) throw damaged("it ends inside its header");
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.magic != kMagic) throw Error("this is no program of this version").hint("compile the model again");
    if (header.table_bytes > kMaxTables || header.code_bytes > kMaxTables ||
        sizeof(header) + header.table_bytes + header.code_bytes > header.constant_offset ||
        header.constant_offset > bytes.size() || header.constant_offset % kPage != 0 ||
        header.constant_bytes != bytes.size() - header.constant_offset) {
      throw damaged("it is cut short, or longer than it says");
    }
    tables = bytes.subspan(sizeof(header), header.table_bytes);
    code = bytes.subspan(sizeof(header) + header.table_bytes, header.code_bytes);
    gap = bytes.subspan(sizeof(header) + header.table_bytes + header.code_bytes,
                        header.constant_offset - sizeof(header) - header.table_bytes - header.code_bytes);
    constants = bytes.subspan(header.constant_offset, header.constant_bytes);
  }
  Header header;
  std::span<const std::byte> tables, code, gap, constants;
};

}  // namespace

void write_program(const Program& program, const std::string& path) {
  const std::string tables = tables_of(program);
  Header header;
  header.table_bytes = tables.size();
  header.code_bytes = program.code.size();
  const std::uint64_t before = sizeof(Header) + tables.size() + program.code.size();
  header.constant_offset = (before + kPage - 1) / kPage * kPage;
  header.constant_bytes = program.constant_bytes;
  header.checksum = header_checksum(std::as_bytes(std::span(tables)), program.code);

  NewFile file(path);
  const auto write = [&](const void* data, std::size_t size) {
    file.out().write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  };
  write(&header, sizeof(header));
  write(tables.data(), tables.size());
  write(program.code.data(), program.code.size());
  const std::vector<std::byte> gap(header.constant_offset - before);
  write(gap.data(), gap.size());
  write(program.constants.get(), program.constant_bytes);
  file.finish();
}

bool is_program_file(const std::string& path) {
  std::array<char, 8> magic{};
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  const bool is_read = std::fread(magic.data(), 1, magic.size(), file) == magic.size();
  std::fclose(file);
  return is_read && magic == kMagic;
}

Program parse_program(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const Layout layout(bytes);
  if (header_checksum(layout.tables, layout.code) != layout.header.checksum) throw damaged("its checksum differs");
  for (const std::byte byte : layout.gap) {
    if (byte != std::byte{0}) throw damaged("something between its parts");
  }
  Program program = read_tables(Reader(layout.tables));
  program.code.assign(layout.code.begin(), layout.code.end());
  program.constants = std::shared_ptr<const std::byte>(std::move(owner), layout.constants.data());
  program.constant_bytes = layout.constants.size();
  const std::size_t blocks = (layout.constants.size() + kChecksumBlock - 1) / kChecksumBlock;
  if (program.constant_checksums.size() != blocks) throw damaged("constants without a checksum");
  verify(program);
  return program;
}

Program read_program(const std::string& path) {
  const auto mapping = std::make_shared<const Mapping>(path);
  try {
    return parse_program({mapping->data, mapping->size}, mapping);
  } catch (Error& error) {
    if (!error.has_place()) error.at(path);
    throw;
  }
}

void seal_program(std::span<std::byte> bytes) {
  Layout layout(bytes);
  layout.header.checksum = header_checksum(layout.tables, layout.code);
  std::memcpy(bytes.data(), &layout.header, sizeof(Header));
}

}  // namespace tenon
