"""Compiled programs, callable with arrays."""

from __future__ import annotations

import ctypes
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, MutableMapping, Sequence

import numpy as np

from ._library import (CPort, CTensor, UnsupportedError, UsageError, check, handle_from, json_from, lib,
                       options_text, take_text)
from ._device import DeviceArray, device_array, is_on_gpu
from ._tensors import DTYPES, Value, address, as_array, describe, extents_of, fitting, shape_of

INPUT, OUTPUT, WEIGHT, STATE = 0, 1, 2, 3


@dataclass(frozen=True)
class Port:
    """An input, output, weight or state. Symbolic extents are texts: ("N", 3, 224, 224)."""

    name: str
    type: str
    shape: tuple[int | str, ...] | None
    dtype: np.dtype | None
    number: int = 0

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


class Outputs(tuple):
    """The results of a run, by position or by name."""

    names: tuple[str, ...]

    def __new__(cls, values: Sequence[Any], names: Sequence[str]) -> "Outputs":
        made = super().__new__(cls, values)
        made.names = tuple(names)
        return made

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"there is no output '{key}'; there are {', '.join(self.names)}")
            return super().__getitem__(self.names.index(key))
        return super().__getitem__(key)

    def items(self) -> Iterator[tuple[str, Any]]:
        return iter(zip(self.names, self))

    def as_dict(self) -> dict[str, Any]:
        return dict(zip(self.names, self))


class _Context:
    """A context of the library with prepared tensor descriptions, for one thread."""

    def __init__(self, program: "Program", threads: int, handle: ctypes.c_void_p | None = None) -> None:
        self._handle = handle or handle_from(lib.tenon_context_create, program._handle,
                                             options_text({"threads": threads}))
        self._inputs, self._outputs = program.inputs, program.outputs
        self._in = (CTensor * len(self._inputs))()
        self._out = (CTensor * len(self._outputs))()
        self._counts = len(self._inputs), len(self._outputs)
        self._shapes: list[tuple[int, ...] | None] = [None] * len(self._inputs)
        self._alive: list[Any] = [None] * len(self._inputs)
        self._given: list[tuple[tuple[int, ...], np.dtype]] = []
        self._is_bound = self._is_done = False
        # Ports that are not numeric tensors, and outputs with data-dependent shapes, take the slow path.
        self._takes_values = any(port.number in (0, 26) for port in (*self._inputs, *self._outputs))
        self._expected = [port.dtype for port in self._inputs]
        described = program.describe()
        self._is_on_gpu = described["target"].startswith("cuda:") and described["operator_steps"] == 0

    def __del__(self) -> None:
        if lib is not None and hasattr(self, "_handle"):
            lib.tenon_context_free(self._handle)

    def _place(self, arrays: list[Any]) -> None:
        """Describes the arrays; rewrites only changed shapes."""
        for k, array in enumerate(arrays):
            if type(array) is not np.ndarray or array.dtype != self._expected[k] or not array.flags.carray and not (
                    array.flags.c_contiguous and array.flags.aligned):
                port = self._inputs[k]
                array = arrays[k] = self._taken(array, port)
            entry = self._in[k]
            entry.data = array.pointer if type(array) is DeviceArray else array.__array_interface__["data"][0]
            if array.shape != self._shapes[k]:
                self._is_bound = False
                shape = (ctypes.c_int64 * array.ndim)(*array.shape)
                self._alive[k] = shape
                entry.shape, entry.rank, entry.dtype = shape, array.ndim, self._inputs[k].number
                self._shapes[k] = array.shape
        if not self._is_bound:
            self._bind()

    def _taken(self, value: Any, port: Port) -> Any:
        """Returns an array over the value's memory, or a GPU tensor for a GPU program."""
        if not self._is_on_gpu or not is_on_gpu(value):
            return fitting(as_array(value), port.number, port.name)
        tensor = device_array(value)
        if tensor.type != DTYPES[port.number][0]:
            raise UsageError(f"'{port.name}' has the wrong element type\n  expected  {DTYPES[port.number][0]}\n"
                             f"  got       {tensor.type}")
        return tensor

    def _bind(self) -> None:
        for entry in self._out:
            entry.data = None
        try:
            check(lib.tenon_context_bind(self._handle, self._in, self._counts[0], self._out, self._counts[1]))
        except BaseException:
            self._shapes = [None] * len(self._shapes)
            raise
        # The context keeps the shapes; these copies belong to the result.
        self._given = [(shape_of(entry), DTYPES[entry.dtype][1]) for entry in self._out]
        self._out_shapes = [(ctypes.c_int64 * len(shape))(*shape) for shape, _ in self._given]
        for entry, shape in zip(self._out, self._out_shapes):
            entry.shape = shape
        self._is_bound = True

    def run(self, arrays: list[Any], out: list[Any] | None = None) -> list[Any]:
        if not self._takes_values:
            try:
                return self._run_tensors(arrays, out)
            except UnsupportedError:
                if self._is_bound:
                    raise
                self._takes_values = True
        results = self._run_values(arrays)
        for k, target in enumerate(out or []):
            if target is not None:
                target = as_array(target)
                if target.shape != results[k].shape or target.dtype != results[k].dtype:
                    raise UsageError(f"output '{self._outputs[k].name}' is {results[k].dtype}{list(results[k].shape)}, "
                                     f"and what is given for it {target.dtype}{list(target.shape)}")
                target[...] = results[k]
                results[k] = target
        return results

    def start(self, arrays: list[Any]) -> list[Any]:
        """Starts a run; outputs are valid after `finish`. Values that are not tensors are computed synchronously."""
        if not self._takes_values:
            try:
                return self._run_tensors(arrays, None, lib.tenon_context_start)
            except UnsupportedError:
                if self._is_bound:
                    raise
        results, self._is_done = self.run(arrays), True
        return results

    def finish(self) -> None:
        if self._is_done:
            self._is_done = False
        else:
            check(lib.tenon_context_finish(self._handle))

    def _run_tensors(self, arrays: list[Any], out: list[Any] | None, run: Any = None) -> list[Any]:
        self._place(arrays)
        stays = self._is_on_gpu and any(type(array) is DeviceArray for array in arrays)
        results = []
        for k, (shape, dtype) in enumerate(self._given):
            target = None if out is None else out[k]
            if target is not None:
                self._out[k].data = self._address_to_fill(target, k)
            elif stays:
                target = DeviceArray.empty(shape, DTYPES[self._outputs[k].number][0])
                self._out[k].data = target.pointer
            else:
                target = np.empty(shape, dtype)
                self._out[k].data = target.__array_interface__["data"][0]
            results.append(target)
        status = (run or lib.tenon_context_run)(self._handle, self._in, self._counts[0], self._out, self._counts[1])
        if status:
            check(status)
        return results

    def _address_to_fill(self, given: Any, k: int) -> int:
        """Returns the address of the caller's output memory if its kind matches the program."""
        shape, dtype = self._given[k]
        if self._is_on_gpu and is_on_gpu(given):
            tensor, expected = device_array(given), DTYPES[self._outputs[k].number][0]
            if tensor.shape != shape or tensor.type != expected:
                raise UsageError(f"output '{self._outputs[k].name}' does not fit\n  expected  {expected}{list(shape)}\n"
                                 f"  got       {tensor.type}{list(tensor.shape)}")
            return tensor.pointer  # `given` keeps it alive until the run ends
        target = as_array(given)
        if target.shape != shape or target.dtype != dtype or not target.flags.carray:
            raise UsageError(f"output '{self._outputs[k].name}' does not fit\n  expected  {dtype}{list(shape)}, row by row\n"
                             f"  got       {target.dtype}{list(target.shape)}")
        return address(target)

    def _run_values(self, arrays: list[Any]) -> list[Any]:
        given = [Value.of(array, port.type) for array, port in zip(arrays, self._inputs)]
        handles = (ctypes.c_void_p * len(given))(*[value.handle for value in given])
        made = (ctypes.c_void_p * self._counts[1])()
        check(lib.tenon_context_run_values(self._handle, handles, len(given), made, self._counts[1]))
        return [Value(ctypes.c_void_p(handle)).python() for handle in made]

    def watch(self, arrays: list[Any], out: list[Any] | None = None) -> tuple[list[Any], list[dict[str, Any]]]:
        """Runs and returns the results and the time of each step; no steps for values that are not tensors."""
        text = ctypes.c_void_p()

        def watched(*arguments: Any) -> int:
            return lib.tenon_context_watch(*arguments, ctypes.byref(text))

        if not self._takes_values:
            try:
                results = self._run_tensors(arrays, out, watched)
                return results, json.loads(take_text(text))["steps"]
            except UnsupportedError:
                if self._is_bound:
                    raise
        return self.run(arrays, out), []

    def describe(self) -> dict[str, Any]:
        return json_from(lib.tenon_context_describe, self._handle)


class States(MutableMapping):
    """The states of a context by name: reading copies the value, writing sets the value of the next run."""

    def __init__(self, program: "Program", context: _Context) -> None:
        self._program, self._handle = program, context._handle
        self._bound: dict[str, Any] = {}
        self._context = context  # keeps the handle alive

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names():
            raise KeyError(f"there is no state '{name}'; there are {', '.join(self._names())}")
        tensor = CTensor()
        check(lib.tenon_context_read_state(self._handle, name.encode(), ctypes.byref(tensor)))
        array = np.empty(shape_of(tensor), DTYPES[tensor.dtype][1])
        if array.nbytes > 0:
            ctypes.memmove(array.ctypes.data, tensor.data, array.nbytes)
        return array

    def __setitem__(self, name: str, elements: Any) -> None:
        array, number = np.ascontiguousarray(as_array(elements)), self._number(name)
        tensor, _alive = describe(array if number is None else fitting(array, number, name), number)
        check(lib.tenon_context_write_state(self._handle, name.encode(), ctypes.byref(tensor)))

    def bind(self, name: str, array: np.ndarray) -> None:
        """Keeps a state in this array from now on: every run leaves the next value there."""
        number = self._number(name)
        if not array.flags.carray or number is not None and array.dtype != DTYPES[number][1]:
            raise UsageError(f"state '{name}' takes an array of its type, row by row, that can be written")
        tensor, alive = describe(array, number)
        check(lib.tenon_context_bind_state(self._handle, name.encode(), ctypes.byref(tensor)))
        self._bound[name] = (array, alive)

    def __delitem__(self, name: str) -> None:
        raise UsageError("states are of the program; `Context.reset` gives them their initial values")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _names(self) -> list[str]:
        return [port.name for port in self._program.states]

    def _number(self, name: str) -> int | None:
        return next((port.number for port in self._program.states if port.name == name), None)


class Context:
    """Runs a program and passes its states from run to run, for one thread at a time. `states["h"]` reads and writes
    the state `h`; `fork` makes a context that continues from the same states."""

    def __init__(self, program: "Program", context: _Context) -> None:
        self._program, self._context = program, context
        self.states = States(program, context)

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Returns the array of a single output, otherwise all outputs, by position or name."""
        results = self.run(arrays, out, **named)
        return results[0] if len(results) == 1 else results

    def run(self, inputs: Mapping[str, Any] | Sequence[Any] = (), out: Any = None, **named: Any) -> Outputs:
        """Runs and returns all outputs, for inputs by name or in order."""
        program = self._program
        arrays = () if isinstance(inputs, Mapping) else tuple(inputs)
        named = {**inputs, **named} if isinstance(inputs, Mapping) else named
        results = self._context.run(program._ordered(arrays, named), program._targets(out))
        return Outputs(results, program._output_names)

    def reset(self) -> None:
        """Gives all states their initial values."""
        check(lib.tenon_context_reset_states(self._context._handle))

    def fork(self) -> "Context":
        """Returns a context with the present states. The memory of a state is shared until one of both changes it."""
        made = _Context(self._program, 0, handle_from(lib.tenon_context_fork, self._context._handle))
        return Context(self._program, made)

    def describe(self) -> dict[str, Any]:
        return self._context.describe()


class Pending:
    """A run in flight: `result` waits for it. Keeps its inputs and outputs alive."""

    def __init__(self, program: "Program", arrays: list[Any]) -> None:
        self._program = program
        self._arrays, self._error, self._is_finished = arrays, None, False
        self._generation, self._context = program._idle_context()
        self._results = self._context.start(arrays)

    def result(self) -> Any:
        """Returns the array of a single output, otherwise all outputs, by position or name."""
        if not self._is_finished:
            self._is_finished = True
            try:
                self._context.finish()
            except BaseException as error:
                self._error = error
            self._program._give_back(self._generation, self._context)
        if self._error is not None:
            raise self._error
        return self._results[0] if len(self._results) == 1 else Outputs(self._results, self._program._output_names)

    def __del__(self) -> None:
        if lib is not None and hasattr(self, "_results") and not self._is_finished:
            try:
                self.result()  # the run writes to its memory until then
            except Exception:  # the result is discarded
                pass


class Program:
    """A compiled model. Call it with arrays in the order of its inputs, or by their names.

    Any number of threads may call it: each has its own context. Arrays are read in place; results are new arrays, or
    those given as `out`."""

    def __init__(self, handle: ctypes.c_void_p, threads: int = 0) -> None:
        self._handle = handle
        self._threads = threads
        self._local = threading.local()
        self._generation = 0
        self._idle: list[tuple[int, _Context]] = []
        self._idle_lock = threading.Lock()
        self.inputs = self._ports(INPUT)
        self.outputs = self._ports(OUTPUT)
        self._input_names = [port.name for port in self.inputs]
        self._output_names = [port.name for port in self.outputs]

    def __del__(self) -> None:
        if lib is not None and hasattr(self, "_handle"):
            lib.tenon_program_free(self._handle)

    @staticmethod
    def load(path: str | Path, threads: int = 0) -> "Program":
        """Loads FILE.tnn. It is machine code: as trusted as an executable."""
        return Program(handle_from(lib.tenon_program_load, str(path).encode()), threads)

    @staticmethod
    def parse(content: bytes, threads: int = 0) -> "Program":
        return Program(handle_from(lib.tenon_program_parse, content, len(content)), threads)

    def save(self, path: str | Path, constants: str | None = None) -> None:
        """Saves FILE.tnn, or FILE.so, a self-contained shared object. For FILE.so, `constants` may name a separate
        file for the weights."""
        check(lib.tenon_program_save(self._handle, str(path).encode(), options_text({"constants": constants})))

    @property
    def weights(self) -> list[Port]:
        """Swappable weights, of `compile(swappable_weights=True)`."""
        return self._ports(WEIGHT)

    @property
    def states(self) -> list[Port]:
        """Values that a context passes from one run to the next; they are no inputs and outputs."""
        return self._ports(STATE)

    def context(self, threads: int | None = None) -> Context:
        """Returns a context with states of its own; a call of the program uses those of the calling thread."""
        return Context(self, _Context(self, self._threads if threads is None else threads))

    def set_weight(self, name: str, elements: Any) -> None:
        """Replaces a weight for later runs; copies the elements."""
        array = as_array(elements)
        tensor, _alive = describe(np.ascontiguousarray(array))
        check(lib.tenon_program_set_weight(self._handle, name.encode(), ctypes.byref(tensor)))
        self._generation += 1

    def describe(self) -> dict[str, Any]:
        return json_from(lib.tenon_program_describe, self._handle)

    def memory(self) -> dict[str, Any]:
        """Number of threads, and bytes of arena and scratch, of this thread's context."""
        return self._context().describe()

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Returns the array of a single output, otherwise all outputs, by position or name."""
        if not named and out is None and len(arrays) == len(self._input_names):
            results = self._context().run(list(arrays))
        else:
            results = self._context().run(self._ordered(arrays, named), self._targets(out))
        return results[0] if len(results) == 1 else Outputs(results, self._output_names)

    def run(self, inputs: Mapping[str, Any] | Sequence[Any], out: Mapping[str, np.ndarray] | None = None) -> Outputs:
        """Runs and returns all outputs, for inputs by name or in order."""
        named = inputs if isinstance(inputs, Mapping) else {}
        arrays = () if isinstance(inputs, Mapping) else tuple(inputs)
        return Outputs(self._context().run(self._ordered(arrays, dict(named)), self._targets(out)), self._output_names)

    def start(self, *arrays: Any, **named: Any) -> Pending:
        """Starts a run; for a GPU program, without waiting. Several runs in flight overlap copies with computation. Each
        run has its own context."""
        return Pending(self, self._ordered(arrays, named))

    def watch(self, *arrays: Any, **named: Any) -> list[dict[str, Any]]:
        """Runs once and returns the time of each step."""
        return self._context().watch(self._ordered(arrays, named))[1]

    def watched_run(self, inputs: Mapping[str, Any],
                    out: Mapping[str, np.ndarray] | None = None) -> tuple[Outputs, list[dict[str, Any]]]:
        """Runs as `run` does, and returns the outputs and the time of each step."""
        results, steps = self._context().watch(self._ordered((), dict(inputs)), self._targets(out))
        return Outputs(results, self._output_names), steps

    def _context(self) -> _Context:
        local = self._local
        if getattr(local, "generation", None) != self._generation:
            local.context = _Context(self, self._threads)
            local.generation = self._generation
        return local.context

    def _idle_context(self) -> tuple[int, _Context]:
        """Returns a pooled context or a new one, and the version of its weights."""
        with self._idle_lock:
            while self._idle:
                generation, context = self._idle.pop()
                if generation == self._generation:
                    return generation, context
        return self._generation, _Context(self, self._threads)

    def _give_back(self, generation: int, context: _Context) -> None:
        with self._idle_lock:
            self._idle.append((generation, context))

    def _ports(self, kind: int) -> list[Port]:
        count = ctypes.c_size_t()
        check(lib.tenon_program_port_count(self._handle, kind, ctypes.byref(count)))
        ports = []
        for k in range(count.value):
            port = CPort()
            check(lib.tenon_program_port(self._handle, kind, k, ctypes.byref(port)))
            text = port.type.decode()
            extents = extents_of(text)
            dtype = DTYPES[port.dtype][1] if port.dtype in DTYPES else None
            ports.append(Port(port.name.decode(), text, None if extents is None else tuple(extents), dtype, port.dtype))
        return ports

    def _ordered(self, arrays: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        names = self._input_names
        if len(arrays) > len(names):
            raise UsageError(f"the program takes {len(names)} inputs: {', '.join(names)}\n  got       {len(arrays)}")
        unknown = [name for name in named if name not in names[len(arrays):]]
        if unknown:
            raise UsageError(f"the program has no such inputs, or they are given twice: {', '.join(unknown)}\n"
                             f"  expected  {', '.join(names)}")
        missing = [name for name in names[len(arrays):] if name not in named]
        if missing:
            raise UsageError(f"inputs are missing: {', '.join(missing)}")
        return [*arrays, *(named[name] for name in names[len(arrays):])]

    def _targets(self, out: Any) -> list[Any] | None:
        if out is None:
            return None
        if isinstance(out, np.ndarray) or hasattr(out, "__dlpack__"):
            out = [out]
        if isinstance(out, Mapping):
            unknown = [name for name in out if name not in self._output_names]
            if unknown:
                raise UsageError(f"the program has no output {', '.join(unknown)}; it has {', '.join(self._output_names)}")
            return [out.get(name) for name in self._output_names]
        targets = list(out)
        if len(targets) != len(self._output_names):
            raise UsageError(f"the program gives {len(self._output_names)} outputs, not {len(targets)}")
        return targets

    def __repr__(self) -> str:
        ports = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"<tenon.Program ({ports[0]}) -> ({ports[1]})>"


__all__ = ["Context", "Outputs", "Pending", "Port", "Program", "States", "address"]
