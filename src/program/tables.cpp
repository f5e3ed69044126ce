#include "program/tables.h"

#include "program/checksum.h"

namespace tenon::inline program {
namespace {

void write_operator(BinaryWriter& out, const HostOperator& made) {
  const auto texts = [&](const std::vector<std::string>& list) {
    out.list(list, [&](const std::string& text) { out.text(text); });
  };
  out.text(made.op);
  out.list(made.attributes, [&](const ProgramAttribute& attribute) {
    out.text(attribute.name);
    out.number(static_cast<std::uint64_t>(attribute.kind));
    out.extents(attribute.integers);
    out.list(attribute.reals, [&](double real) { out.real(real); });
    texts(attribute.texts);
    out.bytes_of(attribute.bytes);
  });
  out.numbers(made.operands);
  out.numbers(made.results);
  texts(made.layouts);
  out.text(made.where);
}

void write_branch(BinaryWriter& out, const BranchStep& made) {
  for (const std::uint32_t number : {made.condition, made.then_end, made.else_end})
    out.number(number);
  out.list(made.results, [&](const BranchStep::Result& each) {
    for (const std::uint32_t id : {each.result, each.first, each.second}) out.number(id);
  });
}

void write_loop(BinaryWriter& out, const LoopStep& made) {
  for (const std::uint32_t number : {made.end, made.trip_count, made.condition, made.counter,
                                     made.goes_on, made.next_condition}) {
    out.number(number);
  }
  out.list(made.carried, [&](const LoopStep::Carried& each) {
    for (const std::uint32_t id : {each.initial, each.in, each.out, each.result, each.spare})
      out.number(id);
    out.number(each.is_direct);
  });
  out.list(made.scanned, [&](const LoopStep::Scanned& each) {
    for (const std::uint32_t id : {each.source, each.in}) out.number(id);
    out.number(static_cast<std::uint64_t>(each.axis));
    for (const bool flag : {each.is_reversed, each.is_sequence}) out.number(flag);
  });
  out.list(made.stacked, [&](const LoopStep::Stacked& each) {
    for (const std::uint32_t id : {each.out, each.result}) out.number(id);
    out.number(static_cast<std::uint64_t>(each.axis));
    for (const bool flag : {each.is_reversed, each.is_sequence, each.is_direct}) out.number(flag);
  });
  out.real(made.run_count);
}

// Reads a buffer id or kNoBuffer.
std::uint32_t read_optional(BinaryReader& in, std::size_t buffers) {
  const std::uint32_t id = in.small();
  if (id != kNoBuffer && id >= buffers) throw damaged("a number that nothing has");
  return id;
}
bool read_flag(BinaryReader& in) { return in.id(2) != 0; }

HostOperator read_operator(BinaryReader& in, std::size_t symbols, std::size_t buffers) {
  const auto texts = [&] {
    std::vector<std::string> list;
    for (std::size_t left = in.count(8); left > 0; --left) list.push_back(in.text());
    return list;
  };
  const auto ids = [&] {
    std::vector<std::uint32_t> list;
    for (std::size_t left = in.count(8); left > 0; --left)
      list.push_back(read_optional(in, buffers));
    return list;
  };
  HostOperator made;
  made.op = in.text();
  for (std::size_t left = in.count(48); left > 0; --left) {
    ProgramAttribute attribute;
    attribute.name = in.text();
    attribute.kind = static_cast<ProgramAttribute::Kind>(in.id(10));
    for (std::size_t count = in.count(24); count > 0; --count)
      attribute.integers.push_back(in.extent(symbols));
    for (std::size_t count = in.count(8); count > 0; --count) attribute.reals.push_back(in.real());
    attribute.texts = texts();
    attribute.bytes = in.bytes();
    made.attributes.push_back(std::move(attribute));
  }
  made.operands = ids();
  made.results = ids();
  made.layouts = texts();
  made.where = in.text();
  return made;
}

BranchStep read_branch(BinaryReader& in, std::size_t buffers) {
  BranchStep made;
  made.condition = in.id(buffers);
  made.then_end = in.small();
  made.else_end = in.small();
  for (std::size_t left = in.count(24); left > 0; --left) {
    auto& each = made.results.emplace_back();
    for (std::uint32_t* id : {&each.result, &each.first, &each.second}) *id = in.id(buffers);
  }
  return made;
}

LoopStep read_loop(BinaryReader& in, std::size_t buffers) {
  LoopStep made;
  made.end = in.small();
  for (std::uint32_t* id :
       {&made.trip_count, &made.condition, &made.counter, &made.goes_on, &made.next_condition}) {
    *id = read_optional(in, buffers);
  }
  for (std::size_t left = in.count(48); left > 0; --left) {
    auto& each = made.carried.emplace_back();
    for (std::uint32_t* id : {&each.initial, &each.in, &each.out}) *id = in.id(buffers);
    for (std::uint32_t* id : {&each.result, &each.spare}) *id = read_optional(in, buffers);
    each.is_direct = read_flag(in);
  }
  for (std::size_t left = in.count(40); left > 0; --left) {
    auto& each = made.scanned.emplace_back();
    for (std::uint32_t* id : {&each.source, &each.in}) *id = in.id(buffers);
    each.axis = static_cast<std::int64_t>(in.number());
    for (bool* flag : {&each.is_reversed, &each.is_sequence}) *flag = read_flag(in);
  }
  for (std::size_t left = in.count(48); left > 0; --left) {
    auto& each = made.stacked.emplace_back();
    for (std::uint32_t* id : {&each.out, &each.result}) *id = in.id(buffers);
    each.axis = static_cast<std::int64_t>(in.number());
    for (bool* flag : {&each.is_reversed, &each.is_sequence, &each.is_direct})
      *flag = read_flag(in);
  }
  made.run_count = in.real();
  return made;
}

}  // namespace

void write_tables(BinaryWriter& out, const Program& program) {
  out.text(program.name);
  out.text(program.target);
  out.list(program.symbols, [&](const Program::Symbol& symbol) {
    out.text(symbol.name);
    for (std::int64_t number : {symbol.lo, symbol.hi})
      out.number(static_cast<std::uint64_t>(number));
    out.number(symbol.buffer);
    out.number(symbol.axis);
  });
  out.list(program.checks, [&](const ShapeCheck& check) {
    out.number(static_cast<std::uint64_t>(check.kind));
    out.extent(check.a);
    out.extent(check.b);
    for (const std::string* text : {&check.op, &check.where, &check.rule}) out.text(*text);
    for (const std::uint32_t step : {check.begin, check.end}) out.number(step);
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
    out.number(kernel.shared_bytes);
    out.list(kernel.maps, [&](const Program::TensorMap& map) {
      out.number(map.buffer);
      out.extent(map.rows);
      for (const std::vector<std::uint64_t>* list :
           {&map.extents, &map.pitches, &map.box, &map.steps, &map.before, &map.places})
        out.list(*list, [&](std::uint64_t number) { out.number(number); });
    });
    out.number(kernel.cluster);
  });
  const auto call = [&](const Program::Call& made) {
    out.number(made.kernel);
    out.numbers(made.buffers);
    out.extents(made.extents);
    out.extent(made.work);
    out.text(made.candidate);
  };
  out.list(program.steps, [&](const Program::Step& step) {
    out.text(step.name);
    out.text(step.value);
    out.number(static_cast<std::uint64_t>(step.kind));
    out.number(step.detail);
    if (step.kind != Program::StepKind::Kernel) return;
    call(step);
    out.list(step.when, [&](const Program::Guard& guard) {
      out.number(guard.symbol);
      for (std::int64_t number : {guard.lo, guard.hi})
        out.number(static_cast<std::uint64_t>(number));
    });
    out.real(step.flops);
    out.real(step.bytes);
  });
  out.number(program.arena_bytes);
  out.number(program.is_arena_planned);
  out.list(block_checksums({program.constants.get(), program.constant_bytes}),
           [&](std::uint64_t sum) { out.number(sum); });
  out.list(program.operators, [&](const HostOperator& made) { write_operator(out, made); });
  out.list(program.branches, [&](const BranchStep& made) { write_branch(out, made); });
  out.list(program.loops, [&](const LoopStep& made) { write_loop(out, made); });
}

Program read_tables(BinaryReader& in) {
  Program program;
  program.name = in.text();
  program.target = in.text();
  for (std::size_t left = in.count(40); left > 0; --left) {
    Program::Symbol symbol;
    symbol.name = in.text();
    symbol.lo = static_cast<std::int64_t>(in.number());
    symbol.hi = static_cast<std::int64_t>(in.number());
    symbol.buffer = in.small();
    symbol.axis = in.small();
    program.symbols.push_back(std::move(symbol));
  }
  const std::size_t symbols = program.symbols.size();
  for (std::size_t left = in.count(80); left > 0; --left) {
    ShapeCheck& check = program.checks.emplace_back();
    check.kind = static_cast<ExtentRelation>(in.id(4));
    check.a = in.extent(symbols);
    check.b = in.extent(symbols);
    for (std::string* text : {&check.op, &check.where, &check.rule}) *text = in.text();
    for (std::uint32_t* step : {&check.begin, &check.end}) *step = in.small();
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
    buffer.place = static_cast<Program::BufferKind>(in.id(6));
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
    kernel.shared_bytes = static_cast<std::uint32_t>(in.number());
    for (std::size_t maps = in.count(64); maps > 0; --maps) {
      Program::TensorMap map;
      map.buffer = static_cast<std::uint32_t>(in.number());
      map.rows = in.extent(symbols);
      for (std::vector<std::uint64_t>* list :
           {&map.extents, &map.pitches, &map.box, &map.steps, &map.before, &map.places}) {
        for (std::size_t axes = in.count(8); axes > 0; --axes) list->push_back(in.number());
      }
      kernel.maps.push_back(std::move(map));
    }
    kernel.cluster = static_cast<std::uint32_t>(in.number());
    program.kernels.push_back(std::move(kernel));
  }
  const auto read_call = [&](Program::Call& call) {
    call.kernel = in.id(program.kernels.size());
    call.buffers = ids(program.buffers.size());
    call.extents = extents();
    call.work = in.extent(symbols);
    call.candidate = in.text();
  };
  for (std::size_t left = in.count(32); left > 0; --left) {
    Program::Step step;
    step.name = in.text();
    step.value = in.text();
    step.kind = static_cast<Program::StepKind>(in.id(4));
    step.detail = in.small();
    if (step.kind != Program::StepKind::Kernel) {
      program.steps.push_back(std::move(step));
      continue;
    }
    read_call(step);
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
  for (std::size_t left = in.count(8); left > 0; --left)
    program.constant_checksums.push_back(in.number());
  const std::size_t buffers = program.buffers.size();
  for (std::size_t left = in.count(48); left > 0; --left) {
    program.operators.push_back(read_operator(in, symbols, buffers));
  }
  for (std::size_t left = in.count(32); left > 0; --left)
    program.branches.push_back(read_branch(in, buffers));
  for (std::size_t left = in.count(80); left > 0; --left)
    program.loops.push_back(read_loop(in, buffers));
  for (Program::Step& step : program.steps) {
    if (step.kind == Program::StepKind::Kernel) continue;
    const std::size_t counts[] = {0, program.operators.size(), program.branches.size(),
                                  program.loops.size()};
    if (step.detail >= counts[static_cast<std::size_t>(step.kind)])
      throw damaged("a step that says nothing");
    step.buffers = buffers_of(program, step);
  }
  return program;
}

}  // namespace tenon::inline program
