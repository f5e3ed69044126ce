#include "base/text.h"

#include "base/error.h"
#include "ir/lexer.h"
#include "ir/text.h"
#include "tasks/task_list.h"

#include <algorithm>

namespace tenon {
namespace {

using Task = TaskList::Task;

std::string listed(const std::vector<std::uint32_t>& buffers) {
  std::string text;
  for (const std::uint32_t buffer : buffers) text += concat(text.empty() ? "%" : ", %", buffer);
  return text;
}

std::string quoted(std::string_view text) { return print(AttrValue(std::string(text))); }

std::string buffer_text(const TaskList::Buffer& buffer) {
  std::string text =
      concat(print_name(buffer.name), ": ", to_string(TensorType{buffer.dtype, buffer.dims, {}}),
             " ", name_of(buffer.life));
  if (buffer.life == Life::Input || buffer.life == Life::Output) text += concat(" ", buffer.port);
  if (buffer.space.kind != MemorySpace::Kind::Host) {
    static constexpr std::string_view kSpaces[] = {"host", "pinned", "device", "file"};
    text += concat(" in ", kSpaces[static_cast<std::size_t>(buffer.space.kind)], " ",
                   buffer.space.device);
  }
  if (buffer.form)
    text += concat(" form ", quoted(buffer.form->text), " of %", buffer.form->source);
  if (buffer.is_looked_up) text += " looked_up";
  return text;
}

std::string kernel_text(const TaskList::Kernel& kernel) {
  std::string text =
      concat(print_name(kernel.name), " scratch [", to_string(kernel.scratch_bytes), "]");
  if (kernel.threads > 0) text += concat(" threads ", kernel.threads);
  if (!kernel.library.empty()) text += concat(" library ", quoted(kernel.library));
  return text;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view source) : in_(text, source) {}

  TaskList run() {
    expect_word("tasks");
    list_.name = in_.name("the list's name");
    in_.expect('{', "before what is in the list");
    while (!in_.take('}')) entry();
    if (!in_.is_at_end()) throw in_.error_here("a list of tasks ends here");
    return std::move(list_);
  }

 private:
  void expect_word(std::string_view word) {
    if (!in_.take_word(word)) throw in_.error_here(concat("expected '", word, "'"));
  }
  template <class Integer>
  Integer number(std::string_view what) {
    const std::size_t at = in_.position();
    const std::int64_t value = in_.integer(what);
    if (value < 0 || value > std::int64_t{UINT32_MAX})
      throw in_.error_at(at, concat(what, " is out of range"));
    return static_cast<Integer>(value);
  }
  std::uint32_t buffer() {
    in_.expect('%', "before a buffer's number");
    const std::size_t at = in_.position();
    const auto id = number<std::uint32_t>("a buffer's number");
    if (id >= list_.buffers.size()) throw in_.error_at(at, concat("there is no buffer %", id));
    return id;
  }
  std::vector<std::uint32_t> buffers() {
    std::vector<std::uint32_t> list;
    if (in_.peek() != '%') return list;
    do list.push_back(buffer());
    while (in_.take(','));
    return list;
  }

  void entry() {
    if (in_.peek() == '%') return buffer_entry();
    if (in_.take_word("symbol")) return symbol();
    if (in_.take_word("kernel")) return kernel();
    if (in_.take_word("inputs")) return void(list_.inputs = buffers());
    if (in_.take_word("outputs")) return void(list_.outputs = buffers());
    if (in_.take_word("task")) return task();
    throw in_.error_here("expected a symbol, a buffer, a kernel, inputs, outputs or a task");
  }

  void symbol() {
    TaskList::Symbol made;
    made.name = in_.symbol();
    expect_word("from");
    made.lo = in_.integer("the least value");
    expect_word("to");
    made.hi = in_.integer("the greatest value");
    expect_word("axis");
    made.axis = number<std::uint32_t>("an axis");
    expect_word("of");
    made.input = number<std::uint32_t>("an input");
    ranges_[made.name] = {made.lo, made.hi};
    list_.symbols.push_back(std::move(made));
  }

  void buffer_entry() {
    in_.expect('%', "before a buffer's number");
    const std::size_t at = in_.position();
    if (number<std::size_t>("a buffer's number") != list_.buffers.size()) {
      throw in_.error_at(
          at, concat("buffers are numbered in order: %", list_.buffers.size(), " comes next"));
    }
    TaskList::Buffer made;
    made.name = in_.name("a buffer's name");
    in_.expect(':', "behind a buffer's name");
    const std::size_t type_at = in_.position();
    const Type type = in_.type(ranges_);
    if (!type.is_tensor()) throw in_.error_at(type_at, "a buffer holds a tensor");
    made.dtype = type.tensor().dtype;
    made.dims = type.tensor().dims;
    made.life = life();
    if (made.life == Life::Input || made.life == Life::Output)
      made.port = number<std::uint32_t>("which one");
    if (in_.take_word("in")) made.space = space();
    if (in_.take_word("form")) {
      TaskList::Form form;
      form.text = in_.text("a form");
      expect_word("of");
      form.source = buffer();
      made.form = std::move(form);
    }
    made.is_looked_up = in_.take_word("looked_up");
    list_.buffers.push_back(std::move(made));
  }

  Life life() {
    for (const Life each :
         {Life::Input, Life::Output, Life::Constant, Life::State, Life::Value, Life::Sized}) {
      if (in_.take_word(name_of(each))) return each;
    }
    throw in_.error_here("expected input, output, constant, state, value or sized");
  }
  MemorySpace space() {
    static constexpr std::pair<std::string_view, MemorySpace::Kind> kKinds[] = {
        {"host", MemorySpace::Kind::Host},
        {"pinned", MemorySpace::Kind::Pinned},
        {"device", MemorySpace::Kind::Device},
        {"file", MemorySpace::Kind::File}};
    for (const auto& [word, kind] : kKinds) {
      if (in_.take_word(word)) return {kind, number<std::uint16_t>("a device")};
    }
    throw in_.error_here("expected host, pinned, device or file");
  }

  // Nests are printed apart; a list that was read knows only what its kernels are called.
  void kernel() {
    const std::size_t at = in_.position();
    if (number<std::size_t>("a kernel's number") != list_.kernels.size()) {
      throw in_.error_at(
          at, concat("kernels are numbered in order: ", list_.kernels.size(), " comes next"));
    }
    TaskList::Kernel made;
    made.name = in_.name("a kernel's name");
    expect_word("scratch");
    in_.expect('[', "before a kernel's scratch");
    made.scratch_bytes = in_.dim(ranges_);
    in_.expect(']', "behind a kernel's scratch");
    if (in_.take_word("threads")) made.threads = number<std::uint32_t>("threads of a block");
    if (in_.take_word("library")) made.library = in_.text("a library's function");
    list_.kernels.push_back(std::move(made));
  }

  void task() {
    Task made;
    made.name = in_.name("a task's name");
    made.kind = kind();
    expect_word("reads");
    made.reads = buffers();
    expect_word("writes");
    made.writes = buffers();
    in_.expect('{', "before the ways of a task");
    while (!in_.take('}')) {
      if (in_.take_word("share")) {
        const std::uint32_t result = buffer();
        expect_word("with");
        made.may_share.emplace_back(result, buffer());
      } else {
        expect_word("way");
        made.ways.push_back(way());
      }
    }
    list_.tasks.push_back(std::move(made));
  }

  Task::Kind kind() {
    using Kind = Task::Kind;
    for (const Kind each :
         {Kind::Compute, Kind::Form, Kind::Host, Kind::Copy, Kind::Branch, Kind::Loop}) {
      if (in_.take_word(name_of(each))) return each;
    }
    throw in_.error_here("expected compute, form, host, copy, branch or loop");
  }

  TaskList::Way way() {
    TaskList::Way made;
    made.candidate = in_.text("a candidate's name");
    while (in_.take_word("when")) {
      const std::size_t at = in_.position();
      const std::string name = in_.symbol();
      const auto found = std::ranges::find(list_.symbols, name, &TaskList::Symbol::name);
      if (found == list_.symbols.end()) throw in_.error_at(at, concat("there is no symbol ", name));
      TaskList::Guard guard{static_cast<std::uint32_t>(found - list_.symbols.begin()), 0, 0};
      expect_word("from");
      guard.lo = in_.integer("the least value");
      expect_word("to");
      guard.hi = in_.integer("the greatest value");
      made.when.push_back(guard);
    }
    in_.expect('{', "before the calls of a way");
    while (!in_.take('}')) {
      expect_word("call");
      const std::size_t at = in_.position();
      TaskList::Call call;
      call.kernel = number<std::uint32_t>("a kernel's number");
      if (call.kernel >= list_.kernels.size())
        throw in_.error_at(at, concat("there is no kernel ", call.kernel));
      in_.expect('(', "before a call's buffers");
      call.buffers = buffers();
      in_.expect(')', "behind a call's buffers");
      expect_word("told");
      in_.expect('[', "before what a kernel is told");
      while (!in_.take(']')) {
        call.extents.push_back(in_.dim(ranges_));
        if (in_.peek() != ']') in_.expect(',', "between what a kernel is told");
      }
      expect_word("items");
      in_.expect('[', "before how many items there are");
      call.work = in_.dim(ranges_);
      in_.expect(']', "behind how many items there are");
      expect_word("flops");
      call.flops = in_.real("flops");
      expect_word("bytes");
      call.bytes = in_.real("bytes");
      made.calls.push_back(std::move(call));
    }
    return made;
  }

  Lexer in_;
  TaskList list_;
  SymbolRanges ranges_;
};

}  // namespace

std::string to_string(const TaskList& tasks) {
  std::string text = concat("tasks ", print_name(tasks.name), " {\n");
  for (const TaskList::Symbol& symbol : tasks.symbols) {
    text += concat("  symbol ", symbol.name, " from ", symbol.lo, " to ", symbol.hi, " axis ",
                   symbol.axis, " of ", symbol.input, "\n");
  }
  for (std::size_t k = 0; k < tasks.buffers.size(); ++k)
    text += concat("  %", k, " ", buffer_text(tasks.buffers[k]), "\n");
  for (std::size_t k = 0; k < tasks.kernels.size(); ++k) {
    text += concat("  kernel ", k, " ", kernel_text(tasks.kernels[k]), "\n");
  }
  text += concat("  inputs ", listed(tasks.inputs), "\n  outputs ", listed(tasks.outputs), "\n");
  for (const Task& task : tasks.tasks) {
    text += concat("  task ", print_name(task.name), " ", name_of(task.kind), " reads ",
                   listed(task.reads), " writes ", listed(task.writes), " {\n");
    for (const TaskList::Way& way : task.ways) {
      text += concat("    way ", quoted(way.candidate));
      for (const TaskList::Guard& guard : way.when) {
        text += concat(" when ", tasks.symbols[guard.symbol].name, " from ", guard.lo, " to ",
                       guard.hi);
      }
      text += " {\n";
      for (const TaskList::Call& call : way.calls) {
        text += concat("      call ", call.kernel, "(", listed(call.buffers), ") told ",
                       to_string(call.extents), " items [", to_string(call.work), "] flops ",
                       format_real(call.flops), " bytes ", format_real(call.bytes), "\n");
      }
      text += "    }\n";
    }
    for (const auto& [result, operand] : task.may_share)
      text += concat("    share %", result, " with %", operand, "\n");
    text += "  }\n";
  }
  return text + "}\n";
}

TaskList parse_tasks(std::string_view text, std::string_view source_name) {
  return Parser(text, source_name).run();
}

}  // namespace tenon
