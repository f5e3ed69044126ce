#include "codegen/cuda/wgmma_template.h"

#include "base/error.h"
#include "base/text.h"

#include <span>
#include <vector>

namespace tenon::codegen::cuda {
namespace {

std::string numbered(const char* before, int count, const char* after) {
  std::vector<std::string> list;
  for (int k = 0; k < count; ++k) list.push_back(concat(before, k, after));
  return join(list, ", ");
}

// Operand types of a wgmma instruction, and its K: 32 bytes of each operand.
struct WgmmaType {
  const char* format;
  const char* name;  // type suffix for accumulator and both operands
  int depth;
  bool may_be_transposed = false;
  bool are_whole = false;

  const char* sum() const { return are_whole ? "i32" : "float"; }
  const char* constraint() const { return are_whole ? "\"+r\"(d[" : "\"+f\"(d["; }
};

// wgmma m64: each of the warpgroup's 128 threads holds `columns` / 2 accumulator registers.
std::string multiply(const WgmmaType& numbers, int columns) {
  const int sums = columns / 2;
  const std::string transposed = numbers.may_be_transposed ? concat(", 0, %", sums + 3) : "";
  const char* const signs = numbers.are_whole ? "" : ", 1, 1";
  return concat("template <", numbers.may_be_transposed ? "bool TURNED" : "", "> struct Multiply<",
                numbers.format, ", ", columns, ", ", numbers.may_be_transposed ? "TURNED" : "false",
                "> {\n", "  static FN void add(", numbers.sum(), "* d, u64 a, u64 b, int adds) {\n",
                "    asm volatile(\"{\\n.reg .pred adds;\\nsetp.ne.b32 adds, %", sums + 2,
                ", 0;\\n\"\n", "      \"wgmma.mma_async.sync.aligned.m64n", columns, "k",
                numbers.depth, ".", numbers.name, " {", numbered("%", sums, ""), "}, %", sums,
                ", %", sums + 1, ", adds", signs, transposed,
                ";\\n}\"\n      : ", numbered(numbers.constraint(), sums, "])"),
                "\n      : \"l\"(a), \"l\"(b), \"r\"(adds)",
                numbers.may_be_transposed ? ", \"n\"(TURNED ? 1 : 0)" : "", ");\n  }\n};\n");
}

// wgmma with A in registers: four per thread for a warp's 16 rows.
std::string multiply_rows(const WgmmaType& numbers, int columns) {
  const int sums = columns / 2;
  return concat(
      "template <> struct MultiplyRows<", numbers.format, ", ", columns, "> {\n",
      "  static FN void add(float* d, const u32* a, u64 b) {\n",
      "    asm volatile(\"wgmma.mma_async.sync.aligned.m64n", columns, "k", numbers.depth, ".",
      numbers.name, " {", numbered("%", sums, ""), "}, {%", sums, ", %", sums + 1, ", %", sums + 2,
      ", %", sums + 3, "}, %", sums + 4,
      ", 1, 1, 1;\"\n      : ", numbered("\"+f\"(d[", sums, "])"),
      "\n      : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b));\n  }\n};\n");
}

// wgmma of 16-bit types with A in registers: four per thread for a warp's 16 rows.
std::string multiply_fragments(const WgmmaType& numbers, int columns) {
  const int sums = columns / 2;
  return concat(
      "template <bool TURNED> struct MultiplyFragments<", numbers.format, ", ", columns,
      ", TURNED> {\n", "  static FN void add(float* d, const u32* a, u64 b, int adds) {\n",
      "    asm volatile(\"{\\n.reg .pred adds;\\nsetp.ne.b32 adds, %", sums + 5, ", 0;\\n\"\n",
      "      \"wgmma.mma_async.sync.aligned.m64n", columns, "k16.", numbers.name, " {",
      numbered("%", sums, ""), "}, {%", sums, ", %", sums + 1, ", %", sums + 2, ", %", sums + 3,
      "}, %", sums + 4, ", adds, 1, 1, %", sums + 6,
      ";\\n}\"\n      : ", numbered("\"+f\"(d[", sums, "])"),
      "\n      : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), \"r\"(adds), ",
      "\"n\"(TURNED ? 1 : 0));\n  }\n};\n");
}

}  // namespace

std::string wgmma_template(bool has_attention) {
  std::string text = R"cuda(
#ifndef TENON_EMULATION
template <class FORMAT, int COLUMNS, bool TURNED> struct Multiply;
template <class FORMAT, int COLUMNS> struct MultiplyRows;
template <class FORMAT, int COLUMNS, bool TURNED> struct MultiplyFragments;
)cuda";
  const WgmmaType all[] = {{"FormatF16", "f32.f16.f16", 16, true},
                           {"FormatBf16", "f32.bf16.bf16", 16, true},
                           {"FormatTf32", "f32.tf32.tf32", 8},
                           {"FormatBytes<false, false>", "s32.u8.u8", 32, false, true},
                           {"FormatBytes<false, true>", "s32.u8.s8", 32, false, true},
                           {"FormatBytes<true, false>", "s32.s8.u8", 32, false, true},
                           {"FormatBytes<true, true>", "s32.s8.s8", 32, false, true}};
  for (const WgmmaType& numbers : all) {
    for (const int columns : {64, 128}) text += multiply(numbers, columns);
  }
  for (const WgmmaType& numbers : std::span(all).first(has_attention ? 2 : 0)) {
    for (const int keys : {80, 176}) text += multiply(numbers, keys);
    for (const int size : {64, 128, 256}) text += multiply_fragments(numbers, size);
  }
  return text + multiply_rows({"FormatTf32", "f32.tf32.tf32", 8}, 64) + "#endif\n";
}

}  // namespace tenon::codegen::cuda
