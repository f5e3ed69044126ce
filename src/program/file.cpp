#include "program/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

constexpr std::array<char, 8> kMagic = {'T', 'E', 'N', 'O', 'N', 'P', 'R', '9'};
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMaxTables = std::uint64_t{1} << 30;
constexpr int kMaxDepth = 64;  // of bodies inside bodies

// Code and constants are those of the program, then those of its parts; each's constants start a page.
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

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// The program and its parts, in the order in which their code and constants are written.
template <class P>
std::vector<P*> with_parts(P& program) {
  std::vector<P*> list{&program};
  for (P& part : program.parts) list.push_back(&part);
  return list;
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
  std::uint32_t small() { return id(std::size_t{1} << 32); }
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

void write_routine(Writer& out, const Routine& routine) {
  const auto flags = [&](const std::vector<bool>& list) {
    out.number(list.size());
    for (const bool flag : list) out.number(flag);
  };
  out.numbers(routine.inputs);
  out.numbers(routine.outputs);
  out.number(routine.slot_count);
  out.list(routine.steps, [&](const Routine::Step& step) {
    out.number(static_cast<std::uint64_t>(step.kind));
    out.text(step.name);
    out.numbers(step.operands);
    out.numbers(step.results);
    out.number(step.part);
    out.text(step.graph);
    out.real(step.run_count);
    out.number(step.state_count);
    out.number(step.input_count);
    flags(step.input_is_reversed);
    flags(step.output_is_reversed);
    out.list(step.bodies, [&](const Routine& body) { write_routine(out, body); });
  });
}

void write_tables(Writer& out, const Program& program) {
  out.text(program.name);
  out.text(program.target);
  out.list(program.symbols, [&](const Program::Symbol& symbol) {
    out.text(symbol.name);
    for (std::int64_t number : {symbol.lo, symbol.hi}) out.number(static_cast<std::uint64_t>(number));
    out.number(symbol.input);
    out.number(symbol.axis);
  });
  out.list(program.checks, [&](const ShapeCheck& check) {
    out.number(static_cast<std::uint64_t>(check.kind));
    out.extent(check.a);
    out.extent(check.b);
    for (const std::string* text : {&check.op, &check.where, &check.rule}) out.text(*text);
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
    out.number((buffer.is_looked_up ? 1 : 0) + (buffer.is_weight ? 2 : 0));
  });
  out.numbers(program.inputs);
  out.numbers(program.outputs);
  out.list(program.kernels, [&](const Program::Kernel& kernel) {
    out.text(kernel.name);
    out.text(kernel.symbol);
    out.extent(kernel.scratch_bytes);
    out.list(kernel.checks, [&](const std::string& check) { out.text(check); });
    out.number(kernel.threads);
    out.text(kernel.library);
  });
  const auto call = [&](const Program::Call& made) {
    out.number(made.kernel);
    out.numbers(made.buffers);
    out.extents(made.extents);
    out.extent(made.work);
    out.text(made.candidate);
  };
  out.list(program.steps, [&](const Program::Step& step) {
    call(step);
    out.text(step.name);
    out.list(step.when, [&](const Program::Guard& guard) {
      out.number(guard.symbol);
      for (std::int64_t number : {guard.lo, guard.hi}) out.number(static_cast<std::uint64_t>(number));
    });
    out.real(step.flops);
    out.real(step.bytes);
  });
  out.number(program.arena_bytes);
  out.number(program.is_arena_planned);
  out.list(block_checksums({program.constants.get(), program.constant_bytes}),
           [&](std::uint64_t sum) { out.number(sum); });
  out.number(program.code.size());
  out.number(program.constant_bytes);
  out.list(program.parts, [&](const Program& part) { write_tables(out, part); });
  write_routine(out, program.routine);
}

Routine read_routine(Reader& in, int depth) {
  if (depth > kMaxDepth) throw damaged("bodies inside bodies without end");
  const auto numbers = [&] {
    std::vector<std::uint32_t> list;
    for (std::size_t left = in.count(8); left > 0; --left) list.push_back(in.small());
    return list;
  };
  const auto flags = [&] {
    std::vector<bool> list;
    for (std::size_t left = in.count(8); left > 0; --left) list.push_back(in.id(2) != 0);
    return list;
  };
  Routine routine;
  routine.inputs = numbers();
  routine.outputs = numbers();
  routine.slot_count = in.small();
  for (std::size_t left = in.count(96); left > 0; --left) {
    Routine::Step step;
    step.kind = static_cast<Routine::Step::Kind>(in.id(3));
    step.name = in.text();
    step.operands = numbers();
    step.results = numbers();
    step.part = in.small();
    step.graph = in.text();
    step.run_count = in.real();
    step.state_count = in.small();
    step.input_count = in.small();
    step.input_is_reversed = flags();
    step.output_is_reversed = flags();
    for (std::size_t bodies = in.count(32); bodies > 0; --bodies) {
      step.bodies.push_back(read_routine(in, depth + 1));
    }
    routine.steps.push_back(std::move(step));
  }
  return routine;
}

// How much of the file's code and constants is a program's own; the parts' follow.
struct Share {
  std::uint64_t code_bytes = 0, constant_bytes = 0;
};

Program read_tables(Reader& in, std::vector<Share>& shares, bool may_have_parts) {
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
  for (std::size_t left = in.count(80); left > 0; --left) {
    ShapeCheck& check = program.checks.emplace_back();
    check.kind = static_cast<ShapeCheck::Kind>(in.id(4));
    check.a = in.extent(symbols);
    check.b = in.extent(symbols);
    for (std::string* text : {&check.op, &check.where, &check.rule}) *text = in.text();
  }
  const auto extents = [&] {
    std::vector<Extent> list;
    for (std::size_t left = in.count(24); left > 0; --left) list.push_back(in.extent(symbols));
    return list;
  };
  for (std::size_t left = in.count(72); left > 0; --left) {
    Program::Buffer buffer;
    buffer.name = in.text();
    buffer.dtype = in.text();
    buffer.element_bytes = static_cast<std::uint32_t>(in.number());
    buffer.dims = extents();
    buffer.place = static_cast<Program::Place>(in.id(4));
    buffer.offset = in.number();
    buffer.first_step = static_cast<std::uint32_t>(in.number());
    buffer.last_step = static_cast<std::uint32_t>(in.number());
    const std::uint32_t flags = in.id(4);
    buffer.is_looked_up = (flags & 1) != 0;
    buffer.is_weight = (flags & 2) != 0;
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
    kernel.threads = static_cast<std::uint32_t>(in.number());
    kernel.library = in.text();
    program.kernels.push_back(std::move(kernel));
  }
  const auto read_call = [&](Program::Call& call) {
    call.kernel = in.id(program.kernels.size());
    call.buffers = ids(program.buffers.size());
    call.extents = extents();
    call.work = in.extent(symbols);
    call.candidate = in.text();
  };
  for (std::size_t left = in.count(56); left > 0; --left) {
    Program::Step step;
    read_call(step);
    step.name = in.text();
    for (std::size_t guards = in.count(24); guards > 0; --guards) {
      Program::Guard& guard = step.when.emplace_back();
      guard.symbol = in.id(symbols);
      guard.lo = static_cast<std::int64_t>(in.number());
      guard.hi = static_cast<std::int64_t>(in.number());
    }
    step.flops = in.real();
    step.bytes = in.real();
    program.steps.push_back(std::move(step));
  }
  program.arena_bytes = in.number();
  program.is_arena_planned = in.number() != 0;
  for (std::size_t left = in.count(8); left > 0; --left) program.constant_checksums.push_back(in.number());
  Share& own = shares.emplace_back();
  own.code_bytes = in.number();
  own.constant_bytes = in.number();
  const std::size_t part_count = in.count(96);
  if (part_count > 0 && !may_have_parts) throw damaged("a part that has parts");
  for (std::size_t k = 0; k < part_count; ++k) program.parts.push_back(read_tables(in, shares, false));
  program.routine = read_routine(in, 0);
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
      if (mapped != MAP_FAILED) {
        data = static_cast<const std::byte*>(mapped);
        // Asks for large pages where the file has yet to be read: kernels go through the constants a fifth
        // faster, and the system maps them in a hundredth of the time. Whoever cannot gives small ones.
        madvise(mapped, size, MADV_HUGEPAGE);
      }
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
struct FileLayout {
  explicit FileLayout(std::span<const std::byte> bytes) {
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

ProgramBytes write_program(const Program& program, std::ostream& head, std::ostream& constants) {
  Writer tables;
  write_tables(tables, program);
  std::vector<std::byte> code;
  Header header;
  for (const Program* part : with_parts(program)) {
    code.insert(code.end(), part->code.begin(), part->code.end());
    if (part->constant_bytes == 0) continue;
    header.constant_bytes = whole_pages(header.constant_bytes) + part->constant_bytes;
  }
  header.table_bytes = tables.bytes().size();
  header.code_bytes = code.size();
  header.constant_offset = whole_pages(sizeof(Header) + header.table_bytes + header.code_bytes);
  header.checksum = header_checksum(std::as_bytes(std::span(tables.bytes())), code);

  std::uint64_t written = 0;
  const auto write = [&](std::ostream& out, const void* data, std::size_t size) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    written += size;
  };
  const auto fill_page = [&](std::ostream& out) {
    const std::vector<std::byte> gap(whole_pages(written) - written);
    write(out, gap.data(), gap.size());
  };
  write(head, &header, sizeof(header));
  write(head, tables.bytes().data(), tables.bytes().size());
  write(head, code.data(), code.size());
  fill_page(head);
  for (const Program* part : with_parts(program)) {
    if (part->constant_bytes == 0) continue;
    fill_page(constants);
    write(constants, part->constants.get(), part->constant_bytes);
  }
  return {header.constant_offset, header.constant_bytes};
}

void write_program(const Program& program, const std::string& path) {
  NewFile file(path);
  write_program(program, file.out(), file.out());
  file.finish();
}

bool starts_like_program(std::span<const std::byte> start) {
  // Of any version, which is the last letter: what is wrong with another one is said by whoever reads it.
  return start.size() >= kMagic.size() && std::memcmp(start.data(), kMagic.data(), kMagic.size() - 1) == 0;
}

Program parse_program(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const FileLayout layout(bytes);
  if (header_checksum(layout.tables, layout.code) != layout.header.checksum) throw damaged("its checksum differs");
  for (const std::byte byte : layout.gap) {
    if (byte != std::byte{0}) throw damaged("something between its parts");
  }
  Reader in(layout.tables);
  std::vector<Share> shares;
  Program program = read_tables(in, shares, true);
  if (!in.is_at_end()) throw damaged("something behind its tables");
  std::uint64_t code_at = 0, constants_at = 0;
  const std::vector<Program*> parts = with_parts(program);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    Program& part = *parts[k];
    const auto [code_bytes, constant_bytes] = shares[k];
    const std::uint64_t before = constants_at;
    if (constant_bytes > 0) constants_at = whole_pages(constants_at);
    if (code_bytes > layout.code.size() - code_at || constants_at > layout.constants.size() ||
        constant_bytes > layout.constants.size() - constants_at) {
      throw damaged("a part of it lies outside");
    }
    for (const std::byte byte : layout.constants.subspan(before, constants_at - before)) {
      if (byte != std::byte{0}) throw damaged("something between its parts");
    }
    const std::span code = layout.code.subspan(code_at, code_bytes);
    part.code.assign(code.begin(), code.end());
    part.constants = std::shared_ptr<const std::byte>(owner, layout.constants.data() + constants_at);
    part.constant_bytes = constant_bytes;
    const std::size_t blocks = (constant_bytes + kChecksumBlock - 1) / kChecksumBlock;
    if (part.constant_checksums.size() != blocks) throw damaged("constants without a checksum");
    code_at += code_bytes;
    constants_at += constant_bytes;
  }
  if (code_at != layout.code.size() || constants_at != layout.constants.size()) {
    throw damaged("something that no part of it has");
  }
  verify(program);
  return program;
}

Program read_program(const std::string& path) {
  const auto mapping = std::make_shared<const Mapping>(path);
  try {
    Program program = parse_program({mapping->data, mapping->size}, mapping);
    for (Program* part : with_parts(program)) part->is_mapped = true;
    return program;
  } catch (Error& error) {
    if (!error.has_place()) error.at(path);
    throw;
  }
}

void seal_program(std::span<std::byte> bytes) {
  FileLayout layout(bytes);
  layout.header.checksum = header_checksum(layout.tables, layout.code);
  std::memcpy(bytes.data(), &layout.header, sizeof(Header));
}

}  // namespace tenon
