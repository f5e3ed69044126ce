#include "program/file.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "program/checksum.h"
#include "program/tables.h"
#include "program/verify.h"

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

namespace tenon::inline program {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'E', 'N', 'O', 'N', 'P', 'R', 'F'};
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMaxTables = std::uint64_t{1} << 30;

// File layout: tables, code, then page-aligned constants. One checksum covers everything before the
// constants. The constants are mapped and may be hundreds of megabytes; their checksums are stored
// in the tables and compared on first use.
struct ProgramHeader {
  std::array<char, 8> magic = kMagic;
  std::uint64_t table_bytes = 0, code_bytes = 0, constant_offset = 0, constant_bytes = 0;
  std::uint64_t checksum = 0;
};

// The last character of the magic is the version of the format.
Error other_version(const std::array<char, 8>& magic) {
  if (!std::equal(magic.begin(), magic.end() - 1, kMagic.begin()))
    return Error("this is no program");
  return Error("the program has another version of the format")
      .expected("version ", std::string(1, kMagic.back()))
      .got("version ", std::string(1, magic.back()))
      .hint("compile the model again");
}

std::uint64_t header_checksum(std::span<const std::byte> tables, std::span<const std::byte> code) {
  return checksum(tables) * 31 + checksum(code);
}

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// A mapped file, unmapped when the last reference to its constants is released.
struct FileMapping {
  explicit FileMapping(const std::string& path) {
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
        // Requests huge pages: kernels read constants a fifth faster and mapping takes a hundredth
        // of the time. Systems without support fall back to small pages.
        madvise(mapped, size, MADV_HUGEPAGE);
      }
    }
    close(file);
    if (problem == ENOMEM) {
      throw Error("no memory to map the program and its constants", ErrorKind::OutOfMemory)
          .at(path)
          .got(format_bytes(size));
    }
    if (problem != 0)
      throw Error("cannot map the program", ErrorKind::Usage).at(path).got(std::strerror(problem));
    if (data == nullptr) throw damaged("an empty file");
  }
  FileMapping(const FileMapping&) = delete;
  ~FileMapping() {
    munmap(const_cast<std::byte*>(data), size);
  }  // NOLINT: unmapped as it was mapped
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

// Parts of a file according to its header.
struct FileLayout {
  explicit FileLayout(std::span<const std::byte> bytes) {
    if (bytes.size() < sizeof(header)) throw damaged("it ends inside its header");
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.magic != kMagic) throw other_version(header.magic);
    if (header.table_bytes > kMaxTables || header.code_bytes > kMaxTables ||
        sizeof(header) + header.table_bytes + header.code_bytes > header.constant_offset ||
        header.constant_offset > bytes.size() || header.constant_offset % kPage != 0 ||
        header.constant_bytes != bytes.size() - header.constant_offset) {
      throw damaged("it is cut short, or longer than it says");
    }
    tables = bytes.subspan(sizeof(header), header.table_bytes);
    code = bytes.subspan(sizeof(header) + header.table_bytes, header.code_bytes);
    gap = bytes.subspan(
        sizeof(header) + header.table_bytes + header.code_bytes,
        header.constant_offset - sizeof(header) - header.table_bytes - header.code_bytes);
    constants = bytes.subspan(header.constant_offset, header.constant_bytes);
  }
  ProgramHeader header;
  std::span<const std::byte> tables, code, gap, constants;
};

}  // namespace

ProgramBytes write_program(const Program& program, std::ostream& head, std::ostream& constants) {
  if (!program.transfers.empty()) {
    throw Error("a program that swaps cannot be written to a file", ErrorKind::Unsupported)
        .hint("compile it without a budget");
  }
  BinaryWriter tables;
  write_tables(tables, program);
  ProgramHeader header;
  header.table_bytes = tables.bytes().size();
  header.code_bytes = program.code.size();
  header.constant_offset =
      whole_pages(sizeof(ProgramHeader) + header.table_bytes + header.code_bytes);
  header.constant_bytes = program.constant_bytes;
  header.checksum = header_checksum(std::as_bytes(std::span(tables.bytes())), program.code);

  const auto write = [](std::ostream& out, const void* data, std::size_t size) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  };
  write(head, &header, sizeof(header));
  write(head, tables.bytes().data(), tables.bytes().size());
  write(head, program.code.data(), program.code.size());
  const std::vector<std::byte> gap(header.constant_offset - sizeof(ProgramHeader) -
                                   header.table_bytes - header.code_bytes);
  write(head, gap.data(), gap.size());
  write(constants, program.constants.get(), program.constant_bytes);
  return {header.constant_offset, header.constant_bytes};
}

void write_program(const Program& program, const std::string& path) {
  NewFile file(path);
  write_program(program, file.out(), file.out());
  file.finish();
}

bool starts_like_program(std::span<const std::byte> start) {
  // Accepts every version (the last character of the magic): the reader reports a version mismatch.
  return start.size() >= kMagic.size() &&
         std::memcmp(start.data(), kMagic.data(), kMagic.size() - 1) == 0;
}

Program parse_program(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const FileLayout layout(bytes);
  if (header_checksum(layout.tables, layout.code) != layout.header.checksum)
    throw damaged("its checksum differs");
  for (const std::byte byte : layout.gap) {
    if (byte != std::byte{0}) throw damaged("something between its parts");
  }
  BinaryReader in(layout.tables);
  Program program = read_tables(in);
  if (!in.is_at_end()) throw damaged("something after its tables");
  program.code.assign(layout.code.begin(), layout.code.end());
  program.constants = std::shared_ptr<const std::byte>(std::move(owner), layout.constants.data());
  program.constant_bytes = layout.constants.size();
  const std::size_t blocks = (program.constant_bytes + kChecksumBlock - 1) / kChecksumBlock;
  if (program.constant_checksums.size() != blocks) throw damaged("constants without a checksum");
  verify(program);
  return program;
}

Program read_program(const std::string& path) {
  const auto mapping = std::make_shared<const FileMapping>(path);
  try {
    Program program = parse_program({mapping->data, mapping->size}, mapping);
    program.is_mapped = true;
    return program;
  } catch (Error& error) {
    if (!error.has_place()) error.at(path);
    throw;
  }
}

void seal_program(std::span<std::byte> bytes) {
  FileLayout layout(bytes);
  layout.header.checksum = header_checksum(layout.tables, layout.code);
  std::memcpy(bytes.data(), &layout.header, sizeof(ProgramHeader));
}

}  // namespace tenon::inline program
