"""The Python package: arrays as inputs and outputs without copies, errors, training, compatibility with ONNX Runtime."""

import ctypes
import gc
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import tenon
from tenon import _device, _program

RELU = b"graph (x: f32[N, 4]) {\n  y = relu(x)\n  return y\n}\n"
TWO = b"""graph (a: f32[N, 3], b: f32[3, 2]) {
  c = matmul(a, b)
  d = neg(c)
  return c, d
}
"""


class WithStates(unittest.TestCase):
    SUM = b"""graph sum (x: f32[2], a: f32[2]) {
  state a to a1 = f32[2] [1, 2]
  a1 = add(a, x)
  y = neg(a1)
  return y, a1
}
"""

    def setUp(self):
        self.program = tenon.load(self.SUM).compile(threads=1)
        self.one = np.ones(2, np.float32)

    def test_contexts_pass_states_on(self):
        self.assertEqual([str(port) for port in self.program.states], ["a: f32[2]"])
        self.assertEqual([port.name for port in self.program.inputs], ["x"])
        context, other = self.program.context(), self.program.context()
        np.testing.assert_array_equal(context(self.one), [-2, -3])
        np.testing.assert_array_equal(context(x=self.one), [-3, -4])
        np.testing.assert_array_equal(context.states["a"], [3, 4])
        np.testing.assert_array_equal(other.states["a"], [1, 2])
        context.states["a"] = np.array([7, 8], np.float32)
        np.testing.assert_array_equal(context(self.one), [-8, -9])
        context.reset()
        self.assertEqual({name: list(value) for name, value in context.states.items()}, {"a": [1, 2]})

    def test_forks_continue_apart(self):
        context = self.program.context()
        context(self.one)
        fork = context.fork()
        context(self.one)
        np.testing.assert_array_equal(fork.states["a"], [2, 3])
        fork(10 * self.one)
        np.testing.assert_array_equal(fork.states["a"], [12, 13])
        np.testing.assert_array_equal(context.states["a"], [3, 4])

    def test_states_in_arrays_of_the_caller(self):
        context, array = self.program.context(), np.array([5, 6], np.float32)
        context.states.bind("a", array)
        context(self.one)
        np.testing.assert_array_equal(array, [6, 7])
        with self.assertRaises(tenon.UsageError):
            context.states.bind("a", np.zeros(2))

    def test_unknown_states_and_types(self):
        context = self.program.context()
        with self.assertRaises(KeyError):
            context.states["b"]
        with self.assertRaisesRegex(tenon.UsageError, "no state is called 'b'"):
            context.states["b"] = self.one
        with self.assertRaisesRegex(tenon.UsageError, "does not fit"):
            context.states["a"] = np.zeros(3, np.float32)


class Running(unittest.TestCase):
    def test_positions_and_names(self):
        program = tenon.load(TWO).compile(threads=1)
        a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
        c, d = program(a, b)
        np.testing.assert_allclose(c, a @ b)
        by_name = program(b=b, a=a)
        np.testing.assert_array_equal(by_name["d"], -c)
        np.testing.assert_array_equal(program(a, b=b)["c"], c)
        self.assertEqual(program.run({"a": a, "b": b}).names, ("c", "d"))
        self.assertEqual([str(port) for port in program.inputs], ["a: f32[N, 3]", "b: f32[3, 2]"])
        self.assertEqual(program.inputs[0].shape, ("N", 3))

    def test_every_batch(self):
        program = tenon.load(RELU).compile()
        for n in (1, 7, 0, 3, 3, 1000):
            x = np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32)
            np.testing.assert_array_equal(program(x), np.maximum(x, 0))

    def test_arrays_are_not_copied(self):
        program = tenon.load(RELU).compile(threads=1)
        x, y = np.ones((5, 4), np.float32), np.empty((5, 4), np.float32)
        program(x)
        seen = []
        real = tenon._library.lib.tenon_context_run

        def spy(handle, inputs, input_count, outputs, output_count):
            seen.append((inputs[0].data, outputs[0].data))
            return real(handle, inputs, input_count, outputs, output_count)

        with mock.patch.object(_program, "lib", wraps=_program.lib) as library:
            library.tenon_context_run = spy
            made = program(x)
            program(x, out=y)
        self.assertEqual(seen[0], (x.ctypes.data, made.ctypes.data))
        self.assertEqual(seen[1], (x.ctypes.data, y.ctypes.data))

    def test_large_input_is_not_duplicated(self):
        program = tenon.load(b"graph (x: f32[N]) {\n  y = reduce_sum(x) {axes = [0]}\n  return y\n}\n").compile(threads=1)
        x = np.ones(64 << 20, np.float32)
        program(x[:1024])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.assertEqual(float(program(x).ravel()[0]), float(64 << 20))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        self.assertLess(grown, x.nbytes // 4)

    def test_strided_arrays_are_copied(self):
        program = tenon.load(RELU).compile()
        x = np.arange(-10, 10, dtype=np.float32).reshape(4, 5).T
        np.testing.assert_array_equal(program(x), np.maximum(x, 0))
        buffer = bytearray(1 + 16)
        odd = np.frombuffer(buffer, np.float32, 4, 1).reshape(1, 4)
        np.testing.assert_array_equal(program(odd), odd)

    def test_dlpack(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        program = tenon.load(RELU).compile()
        x = torch.tensor([[-1.0, 2.0, -3.0, 4.0]], requires_grad=True)
        y = torch.from_dlpack(program(x))
        self.assertEqual(y.tolist(), [[0, 2, 0, 4]])

    def test_contexts_per_thread(self):
        program = tenon.load(RELU).compile(threads=1)
        wrong = []

        def work(value):
            x = np.full((3, 4), value, np.float32)
            for _ in range(200):
                if not np.array_equal(program(x), x):
                    wrong.append(value)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_started_runs_match_others(self):
        program = tenon.load(RELU).compile(threads=1)
        inputs = [np.full((k + 1, 4), k - 1, np.float32) for k in range(4)]
        pending = [program.start(x) for x in inputs]
        for x, run in reversed(list(zip(inputs, pending))):
            np.testing.assert_array_equal(run.result(), np.maximum(x, 0))
            self.assertIs(run.result(), run.result())
        self.assertEqual(len(program._idle), 4)
        program.start(inputs[0])  # discarded
        gc.collect()
        self.assertEqual(len(program._idle), 4)
        np.testing.assert_array_equal(program.start(x=inputs[3]).result(), np.maximum(inputs[3], 0))
        with self.assertRaises(tenon.UsageError):
            program.start(np.zeros((2, 5), np.float32))
        where = tenon.load(b"graph (x: f32[N]) {\n  y = nonzero(x)\n  return y\n}\n").compile()
        np.testing.assert_array_equal(where.start(np.arange(3, dtype=np.float32)).result(), [[1, 2]])

    def test_sequences_optionals_and_strings(self):
        length = tenon.load(b"graph (s: seq(f32[2])) {\n  y = sequence_length(s)\n  return y\n}\n").compile()
        self.assertEqual(int(length([np.zeros(2, np.float32)] * 3)), 3)
        self.assertEqual(int(length([])), 0)

    def test_results_of_operators_outlive_the_run(self):
        program = tenon.load(b"graph (x: f32[N]) {\n  y = nonzero(x)\n  return y\n}\n").compile()
        results = [program(np.arange(k, dtype=np.float32)) for k in range(1, 20)]
        del program
        gc.collect()
        for k, result in enumerate(results, 1):
            np.testing.assert_array_equal(result, np.nonzero(np.arange(k))[0][None])

    def test_overhead_per_call_over_c(self):
        """The least of many measurements, to exclude other load."""
        program = tenon.load(RELU).compile(threads=1)
        x = np.ones((2, 4), np.float32)
        program(x)
        context = program._context()
        lib = tenon._library.lib

        def least(call):
            best = 1.0
            for _ in range(300):
                begin = time.perf_counter()
                for _ in range(20):
                    call()
                best = min(best, (time.perf_counter() - begin) / 20)
            return best

        raw = ctypes.CDLL(lib._name).tenon_context_run
        arguments = (context._handle, context._in, ctypes.c_size_t(1), context._out, ctypes.c_size_t(1))
        overhead = least(lambda: program(x)) - least(lambda: raw(*arguments))
        print(f"a call of Python's over one of C's: {overhead * 1e6:.1f} us", file=sys.stderr)
        self.assertLess(overhead, 50e-6)  # 10 us on an idle machine


class Errors(unittest.TestCase):
    def setUp(self):
        self.program = tenon.load(RELU).compile(threads=1)

    def assert_usage(self, part, call):
        with self.assertRaises(tenon.UsageError) as caught:
            call()
        self.assertIn(part, str(caught.exception))

    def test_wrong_arrays(self):
        self.assert_usage("wrong element type", lambda: self.program(np.ones((1, 4))))
        self.assert_usage("input 'x'", lambda: self.program(np.ones((1, 5), np.float32)))
        self.assert_usage("input 'x'", lambda: self.program(np.ones(4, np.float32)))
        self.assert_usage("missing", lambda: self.program())
        self.assert_usage("no such inputs", lambda: self.program(z=np.ones((1, 4), np.float32)))
        x = np.ones((1, 4), np.float32)
        self.assert_usage("output 'y'", lambda: self.program(x, out=np.empty((2, 4), np.float32)))
        np.testing.assert_array_equal(self.program(x), x)

    def test_wrong_models(self):
        self.assert_usage("did you mean", lambda: tenon.load("zoo:resnet49"))
        self.assert_usage("nothing.onnx", lambda: tenon.load("/no/nothing.onnx"))
        with self.assertRaises(tenon.InvalidModelError):
            tenon.load(b"no model at all")
        self.assert_usage("no precision", lambda: tenon.load(RELU).compile(precision="f17"))
        self.assert_usage("fuze", lambda: tenon.load(RELU).opt(passes=["fuze"]))
        self.assertIsInstance(tenon.UsageError("x"), ValueError)
        self.assertEqual(tenon.UsageError.status, 2)

    def test_commands(self):
        self.assertIn("relu", tenon.command("ops", "relu"))
        self.assert_usage("did you mean 'show'", lambda: tenon.command("shwo"))


class Models(unittest.TestCase):
    def test_inspects_and_changes(self):
        model = tenon.zoo.mlp(batch="N")
        self.assertEqual(model.inputs[0].shape, ("N", 784))
        fixed = model.opt(shapes={"x": [2, 784]})
        self.assertEqual(fixed.inputs[0].shape, (2, 784))
        self.assertLess(model.opt().describe()["nodes"], model.describe()["nodes"])
        self.assertIn("matmul", model.text())
        self.assertTrue(model.explain("logits")["kernels"])
        self.assertGreater(model.plan()["arena_bytes"], 0)
        self.assertEqual(model.check()["problems"], [])
        self.assertIn("resnet50", dir(tenon.zoo))

    def test_save_and_load(self):
        model, x = tenon.zoo.mlp(), np.ones((1, 784), np.float32)
        expected = model.compile()(x)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "mlp.onnx"
            model.save(path)
            np.testing.assert_allclose(tenon.load(path).compile()(x), expected, rtol=1e-5)
            np.testing.assert_allclose(tenon.load(path.read_bytes()).compile()(x), expected, rtol=1e-5)
            model.compile().save(Path(folder) / "mlp.tnn")
            np.testing.assert_array_equal(tenon.load(Path(folder) / "mlp.tnn")(x), expected)

    def test_swap_weights(self):
        model, x = tenon.zoo.mlp(), np.ones((1, 784), np.float32)
        program = model.compile(swappable_weights=True)
        names = [port.name for port in program.weights]
        self.assertIn("fc3.bias", names)
        before = program(x)
        np.testing.assert_allclose(before, model.compile()(x), rtol=1e-4, atol=1e-5)
        program.set_weight("fc3.bias", np.full(10, 7, np.float32))
        self.assertFalse(np.allclose(program(x), before))
        with self.assertRaises(tenon.UsageError):
            program.set_weight("fc3.bias", np.zeros(11, np.float32))

    def test_profile(self):
        profile = tenon.zoo.mlp().profile({"x": np.ones((1, 784), np.float32)}, iterations=3)
        self.assertGreater(profile.seconds, 0)
        self.assertTrue(profile.steps)
        self.assertIn("<iframe", profile._repr_html_())
        self.assertTrue(json.dumps(profile.data))

    def test_quantization(self):
        model = tenon.zoo.mlp(batch="N")
        rng = np.random.default_rng(3)
        samples = [{"x": rng.normal(size=(4, 784)).astype(np.float32)} for _ in range(3)]
        narrow = model.quantize(samples, ranges="min-max")
        self.assertEqual(narrow.result["samples"], 3)
        self.assertLess(narrow.result["bytes_after"], narrow.result["bytes_before"] / 2)
        wide, low = model.compile()(samples[0]["x"]), narrow.model.compile()(samples[0]["x"])
        self.assertLess(np.abs(wide - low).max(), 0.1 * np.abs(wide).max())
        self.assertFalse(np.array_equal(wide, low))
        kept = model.quantize([[samples[0]["x"]]], skip=["fc1.matmul"])
        self.assertIn("skipped", next(node for node in kept.result["nodes"] if node["name"] == "fc1.matmul"))

    def test_training(self):
        model = tenon.zoo.mlp(batch="N")
        rng = np.random.default_rng(1)
        x, target = rng.normal(size=(8, 784)).astype(np.float32), rng.integers(0, 10, 8)
        trainer = model.trainer(batch=8, optimizer="sgd,lr=0.01")
        losses = [trainer.step(x, target)["loss"] for _ in range(10)]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(trainer.state("fc3.bias").shape, (10,))
        self.assertFalse(np.allclose(trainer.model().compile()(x), model.compile()(x)))
        with tempfile.TemporaryDirectory() as folder:
            trainer.save(folder)
            following = trainer.step(x, target)["loss"]
            other = model.trainer(batch=8, optimizer="sgd,lr=0.01")
            other.restore(folder)
            self.assertEqual(other.step(x, target)["loss"], following)
        trained = model.train({"x": x, "target": target}, batch=4, epochs=2, validation_share=0)
        self.assertTrue(trained.losses)
        self.assertEqual(trained.model.outputs[0].name, "logits")


class Plugins(unittest.TestCase):
    def test_custom_operator(self):
        root = Path(__file__).resolve().parent.parent.parent
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "clamp.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", f"-I{root / 'include'}",
                            root / "examples/plugin/clamp.c", "-o", library], check=True)
            with self.assertRaises(tenon.UnsupportedError):
                tenon.load(b'graph (x: f32[4]) {\n  y = custom(x) {op = "example.Clamp"}\n  return y\n}\n')
            tenon.load_plugin(library)
            tenon.load_plugin(library)
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        text = (b'graph (x: f32[N, 4]) {\n  a = neg(x)\n  b = custom(a) {op = "example.Clamp", attributes = "{\\"most\\":-2}"}\n'
                b'  y = neg(b)\n  return y\n}\n')
        np.testing.assert_array_equal(tenon.load(text).compile()(x), np.maximum(x, 2))
        onnx = self.onnx()
        node = onnx.helper.make_node("Clamp", ["x"], ["y"], domain="example", most=3.0)
        info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 4]) for name in "xy"]
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", info[:1], info[1:]),
                                       opset_imports=[onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid("example", 1)])
        np.testing.assert_array_equal(tenon.load(model.SerializeToString()).compile()(x), np.minimum(x, 3))
        with self.assertRaises(tenon.UsageError):
            tenon.load_plugin("/no/plugin.so")

    def onnx(self):
        try:
            import onnx
        except ImportError:
            self.skipTest("onnx is not installed")
        return onnx


class RuntimeScript(unittest.TestCase):
    """A script for ONNX Runtime with its import replaced."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = str(Path(cls.folder.name) / "two.onnx")
        tenon.load(TWO).save(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_session(self):
        import tenon as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = ort.InferenceSession(self.path, options, providers=["CPUExecutionProvider"])
        self.assertEqual([node.name for node in session.get_inputs()], ["a", "b"])
        self.assertEqual(session.get_inputs()[0].shape, ["N", 3])
        self.assertEqual(session.get_inputs()[0].type, "tensor(float)")
        a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
        names = [node.name for node in session.get_outputs()]
        c, d = session.run(names, {"a": a, "b": b})
        np.testing.assert_array_equal(c, np.full((2, 2), 3))
        only, = session.run(["d"], {"a": a, "b": b})
        np.testing.assert_array_equal(only, -c)
        self.assertEqual(len(session.run(None, {"a": a, "b": b})), 2)
        with self.assertRaises(ValueError):
            session.run(None, {"a": a})
        self.assertIn("CPUExecutionProvider", session.get_providers())
        self.assertIn("CPUExecutionProvider", ort.get_available_providers())
        self.assertTrue(session.get_modelmeta().graph_name is not None)
        self.assertEqual(len(ort.InferenceSession(Path(self.path).read_bytes()).get_outputs()), 2)

    def test_free_dimension_overrides(self):
        options = tenon.SessionOptions()
        options.add_free_dimension_override_by_name("N", 2)
        options.add_free_dimension_override_by_name("nowhere", 7)
        session = tenon.InferenceSession(self.path, options)
        self.assertEqual(session.get_inputs()[0].shape, [2, 3])
        a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
        self.assertEqual(session.run(None, {"a": a, "b": b})[0].shape, (2, 2))
        with self.assertRaises(tenon.UsageError):
            session.run(None, {"a": np.ones((4, 3), np.float32), "b": b})

    def test_values_change_in_place(self):
        value = tenon.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
        address = value.data_ptr()
        value.update_inplace(np.ones((2, 3), np.float32))
        self.assertEqual((value.data_ptr(), value.numpy().sum()), (address, 6))
        with self.assertRaises(tenon.UsageError):
            value.update_inplace(np.ones((3, 2), np.float32))

    def test_map_outputs_are_dictionaries(self):
        model = Path(__file__).resolve().parent.parent / "conformance/cases/test_ml_zip_map/model.onnx"
        session = tenon.InferenceSession(str(model))
        x = np.array([[0.25, 0.75], [1, 0], [0.5, 0.5]], np.float32)
        self.assertEqual(session.run(None, {"x": x})[0],
                         [{"no": 0.25, "yes": 0.75}, {"no": 1.0, "yes": 0.0}, {"no": 0.5, "yes": 0.5}])

    def test_map_inputs(self):
        model = Path(__file__).resolve().parent.parent / "conformance/cases/test_ml_dict_vectorizer_texts/model.onnx"
        session = tenon.InferenceSession(str(model))
        self.assertEqual([(node.name, node.type) for node in session.get_inputs()], [("x", "map(string,tensor(float))")])
        for given, expected in (({"c": 3.0, "a": 1}, [[1, 0, 3]]), ({"q": 7.0}, [[0, 0, 0]]), ({}, [[0, 0, 0]])):
            np.testing.assert_array_equal(session.run(None, {"x": given})[0], np.array(expected, np.float32))
        with self.assertRaises(ValueError):
            session.run(None, {})

    def test_io_binding(self):
        session = tenon.InferenceSession(self.path)
        a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
        c = np.empty((2, 2), np.float32)
        binding = session.io_binding()
        binding.bind_cpu_input("a", a)
        binding.bind_input("b", "cpu", 0, np.float32, b.shape, b.ctypes.data)
        binding.bind_output("c", "cpu", 0, np.float32, c.shape, c.ctypes.data)
        binding.bind_output("d")
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(c, np.full((2, 2), 3))
        bound = binding.copy_outputs_to_cpu()
        np.testing.assert_array_equal(bound[1], -c)
        value = tenon.OrtValue.ortvalue_from_numpy(a)
        self.assertEqual(value.shape(), [2, 3])
        self.assertEqual(value.data_ptr(), a.ctypes.data)


class ForeignTensor:
    """A DLPack producer that claims GPU memory; a host array, so that tests can inspect it."""

    def __init__(self, array, device_type=2, strides=None, type_name="f32"):
        self.array, self.device_type, self.strides, self.type_name = array, device_type, strides, type_name
        self.streams = []

    def __dlpack_device__(self):
        return self.device_type, 0

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        made = _device.DeviceArray(self.array.ctypes.data, self.array.shape, self.type_name, 0, self.array)
        capsule = _device.capsule_of(made)
        if self.strides is not None:
            managed, _, _ = list(_device._given.values())[-1]
            self._kept = (ctypes.c_int64 * len(self.strides))(*self.strides)
            managed.dl_tensor.strides = ctypes.cast(self._kept, ctypes.POINTER(ctypes.c_int64))
        return capsule


class OnAGpu(unittest.TestCase):
    def setUp(self):
        self.x = np.array([[-1, 2, -3, 4]], np.float32)
        self.program = tenon.load(RELU).compile(threads=1)
        self.assertEqual(_device._given, {})

    def tearDown(self):
        gc.collect()
        self.assertEqual(_device._given, {}, "what was lent has come back")

    def as_if_on_gpu(self):
        """Lets a CPU program accept tensors that claim GPU memory, which is the host's here."""
        self.program._context()._is_on_gpu = True

        def empty(shape, type_name):
            array = np.empty(shape, np.float32)
            return _device.DeviceArray(array.ctypes.data, shape, type_name, 0, array)

        return mock.patch.object(_device.DeviceArray, "empty", empty)

    def test_error_without_a_gpu(self):
        if any(device["kind"] == "cuda" and device["usable"] for device in tenon.devices()):
            self.skipTest("this machine has a GPU: tests/python/gpu_tensors.py is for it")
        with self.assertRaises(tenon.DeviceError):
            tenon.DeviceArray.empty((2, 3), "f32")

    def test_cpu_program_refuses_gpu_tensors(self):
        with self.assertRaisesRegex(tenon.UsageError, "DLPack device type 2") as caught:
            self.program(ForeignTensor(self.x))
        self.assertIn('target="cuda"', str(caught.exception))

    def test_exports_and_releases_memory(self):
        given = ForeignTensor(self.x)
        taken = _device.device_array(given)
        self.assertEqual((taken.pointer, taken.shape, taken.type), (self.x.ctypes.data, (1, 4), "f32"))
        self.assertEqual(given.streams, [1])  # the default stream waits for the producer's
        self.assertEqual(len(_device._given), 1)
        del taken
        gc.collect()
        self.assertEqual(_device._given, {})
        _device.capsule_of(_device.DeviceArray(1, (2,), "f32", 0, None))  # never consumed

    def test_runs_in_place(self):
        with self.as_if_on_gpu():
            x = ForeignTensor(self.x)
            y = self.program(x)
            self.assertIsInstance(y, tenon.DeviceArray)
            self.assertEqual((y.shape, y.type, y.__dlpack_device__()), ((1, 4), "f32", (2, 0)))
            np.testing.assert_array_equal(y._owner, [[0, 2, 0, 4]])
            self.assertEqual(_device.device_array(y), y)
            self.assertEqual(_device.device_array(ForeignTensor(y._owner)).pointer, y.pointer)
            target = np.empty((1, 4), np.float32)
            out = ForeignTensor(target)
            self.assertIs(self.program(x, out=out), out)
            np.testing.assert_array_equal(target, [[0, 2, 0, 4]])

    def test_refuses_inconsistent_tensors(self):
        with self.as_if_on_gpu():
            for part, given in (("row by row", ForeignTensor(np.ones((4, 4), np.float32), strides=(1, 4))),
                                ("wrong element type", ForeignTensor(self.x, type_name="i32")),
                                ("no capsule of a tensor", mock.Mock(spec=["__dlpack__", "__dlpack_device__"], **{
                                    "__dlpack__": lambda stream: 3, "__dlpack_device__": lambda: (2, 0)}))):
                with self.assertRaisesRegex(tenon.UsageError, part):
                    self.program(given)
            with self.assertRaisesRegex(tenon.UsageError, "output 'y' does not fit"):
                self.program(self.x, out=ForeignTensor(np.empty((2, 4), np.float32)))


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=1)
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    sys.exit(1 if failed else 0)
