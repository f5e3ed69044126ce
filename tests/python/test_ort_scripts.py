"""Idioms of published ONNX Runtime scripts, with the import replaced: each test is one script."""

import concurrent.futures
import json
import os
import sys
import tempfile
import threading
import unittest
import warnings
from pathlib import Path

import numpy as np

import tenon
import tenon as onnxruntime
import tenon as ort

CLASSIFIER = """graph classifier (input: f32[batch, 3, 8, 8]) {
  weight = constant f32[4, 3, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.5)
  features = conv(input, weight) {pads = [1, 1, 1, 1]}
  active = relu(features)
  mean = reduce_mean(active) {axes = [2, 3], keep_axes = false}
  dense = constant f32[4, 10] normal(seed = 2, mean = 0.0, deviation = 0.5)
  output = matmul(mean, dense)
  return output
}
"""
QUESTIONS = """graph bert (input_ids: i64[batch, seq], attention_mask: i64[batch, seq], token_type_ids: i64[batch, seq]) {
  table = constant f32[50, 2] normal(seed = 3, mean = 0.0, deviation = 1.0)
  words = gather(table, input_ids) {axis = 0}
  kinds = cast(token_type_ids) {to = f32}
  kind = unsqueeze(kinds) {axes = [2]}
  seen = cast(attention_mask) {to = f32}
  mask = unsqueeze(seen) {axes = [2]}
  typed = add(words, kind)
  masked = mul(typed, mask)
  first, second = split(masked) {axis = 2}
  start_logits = squeeze(first) {axes = [2]}
  end_logits = squeeze(second) {axes = [2]}
  return start_logits, end_logits
}
"""
DETECTOR = """graph yolo (images: f32[1, 3, 16, 16]) {
  weight = constant f32[6, 3, 4, 4] normal(seed = 4, mean = 0.0, deviation = 0.2)
  maps = conv(images, weight) {strides = [4, 4]}
  output0 = reshape(maps) {shape = [1, 6, 16]}
  return output0
}
"""
DECODER = """graph decoder (tokens: i64[1, 1], past: f32[1, past_length, 4]) {
  table = constant f32[9, 4] normal(seed = 5, mean = 0.0, deviation = 1.0)
  state = gather(table, tokens) {axis = 0}
  present = concat(past, state) {axis = 1}
  mean = reduce_mean(present) {axes = [1], keep_axes = false}
  head = constant f32[4, 9] normal(seed = 6, mean = 0.0, deviation = 1.0)
  logits = matmul(mean, head)
  return logits, present
}
"""
LINEAR = """graph linear (x: f32[N, 2]) {
  weight = constant f32[2, 2] splat 1
  y = matmul(x, weight)
  return y
}
"""


def has_gpu():
    return any(device["kind"] == "cuda" and device["usable"] for device in tenon.devices())


class Scripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.paths = {}
        for text in (CLASSIFIER, QUESTIONS, DETECTOR, DECODER, LINEAR):
            name = text.split()[1]
            cls.paths[name] = str(Path(cls.folder.name) / f"{name}.onnx")
            tenon.load(text.encode()).save(cls.paths[name])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_image_classification(self):
        session = onnxruntime.InferenceSession(self.paths["classifier"], None)
        input_name = session.get_inputs()[0].name
        output_name = session.get_outputs()[0].name
        image = np.random.default_rng(0).integers(0, 256, (8, 8, 3)).astype("float32")
        mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
        data = np.transpose((image / 255 - mean) / deviation, (2, 0, 1))[np.newaxis].astype("float32")
        raw_result = session.run([output_name], {input_name: data})
        scores = np.array(raw_result[0]).reshape(-1)
        scores = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        ranked = np.squeeze(np.argsort(scores))[::-1]
        self.assertEqual((len(ranked), session.get_inputs()[0].shape), (10, ["batch", 3, 8, 8]))
        self.assertAlmostEqual(float(scores.sum()), 1, places=5)

    def test_falls_back_without_a_gpu(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = ort.InferenceSession(self.paths["classifier"],
                                           providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
        if has_gpu():
            self.assertEqual(session.get_providers(), ["CUDAExecutionProvider", "CPUExecutionProvider"])
        else:
            self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
            self.assertIn("Specified provider 'CUDAExecutionProvider' is not in available provider names",
                          str(caught[0].message))
            self.assertEqual(caught[0].filename, __file__)
        with self.assertWarns(UserWarning):
            other = ort.InferenceSession(self.paths["linear"], providers=["NoSuchExecutionProvider"])
        self.assertEqual(other.get_providers(), ["CPUExecutionProvider"])
        with self.assertRaises(ValueError):
            ort.InferenceSession(self.paths["linear"], providers=["CPUExecutionProvider"], provider_options=[{}, {}])

    def test_provider_options_as_tuples(self):
        providers = [("CUDAExecutionProvider", {"device_id": 0, "arena_extend_strategy": "kNextPowerOfTwo",
                                                "cudnn_conv_algo_search": "EXHAUSTIVE"}),
                     ("CPUExecutionProvider", {"use_arena": 1})]
        providers = [p for p in providers if p[0] in ort.get_available_providers()]
        session = ort.InferenceSession(self.paths["linear"], sess_options=ort.SessionOptions(), providers=providers)
        self.assertEqual(session.get_provider_options()["CPUExecutionProvider"], {"use_arena": "1"})
        session.set_providers(["CPUExecutionProvider"], [{"use_arena": "0"}])
        self.assertEqual(session.get_provider_options(), {"CPUExecutionProvider": {"use_arena": "0"}})
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        self.assertEqual(ort.get_device(), "GPU" if has_gpu() else "CPU")
        self.assertLessEqual(set(ort.get_available_providers()), set(ort.get_all_providers()))

    def test_question_answering(self):
        session = ort.InferenceSession(self.paths["bert"], providers=["CPUExecutionProvider"])
        ids = np.array([[3, 14, 15, 9, 2, 6]], dtype=np.int64)
        names = [node.name for node in session.get_inputs()]
        self.assertEqual(names, ["input_ids", "attention_mask", "token_type_ids"])
        self.assertEqual({node.type for node in session.get_inputs()}, {"tensor(int64)"})
        ort_inputs = dict(zip(names, (ids, np.ones_like(ids), np.zeros_like(ids))))
        start_logits, end_logits = session.run(None, ort_inputs)
        start, end = int(np.argmax(start_logits)), int(np.argmax(end_logits))
        self.assertEqual((start_logits.shape, end_logits.shape), ((1, 6), (1, 6)))
        self.assertTrue(0 <= start < 6 and 0 <= end < 6)
        as_lists = session.run(["start_logits"], {name: value.tolist() for name, value in ort_inputs.items()})
        np.testing.assert_array_equal(as_lists[0], start_logits)

    def test_detection(self):
        session = ort.InferenceSession(self.paths["yolo"], providers=ort.get_available_providers())
        model_inputs = session.get_inputs()
        input_names = [model_inputs[i].name for i in range(len(model_inputs))]
        _, _, height, width = model_inputs[0].shape
        output_names = [output.name for output in session.get_outputs()]
        frame = np.full((height, width, 3), 114, np.uint8)
        frame[4:12] = 200
        tensor = np.ascontiguousarray(frame[:, :, ::-1].transpose(2, 0, 1))[None].astype(np.float32) / 255.0
        outputs = session.run(output_names, {input_names[0]: tensor})
        predictions = np.squeeze(outputs[0]).T
        scores = np.max(predictions[:, 4:], axis=1)
        kept = predictions[np.argsort(scores)[-3:]]
        self.assertEqual((predictions.shape, len(kept)), ((16, 6), 3))

    def test_decoding_with_bindings(self):
        session = ort.InferenceSession(self.paths["decoder"])
        binding = session.io_binding()
        token, past, tokens = 1, ort.OrtValue.ortvalue_from_shape_and_type([1, 0, 4], np.float32, "cpu", 0), []
        for length in range(1, 6):
            binding.bind_cpu_input("tokens", np.array([[token]], np.int64))
            binding.bind_ortvalue_input("past", past)
            binding.bind_output("logits")
            binding.bind_output("present", "cpu")
            binding.synchronize_inputs()
            session.run_with_iobinding(binding)
            binding.synchronize_outputs()
            logits, past = binding.get_outputs()
            self.assertEqual((past.shape(), past.data_type(), past.device_name()), ([1, length, 4], "tensor(float)", "cpu"))
            token = int(logits.numpy().argmax())
            tokens.append(token)
            binding.clear_binding_inputs()
            binding.clear_binding_outputs()
        state, plain, token = np.empty((1, 0, 4), np.float32), [], 1
        for _ in range(5):
            logits, state = session.run(None, {"tokens": np.array([[token]]), "past": state})
            token = int(logits.argmax())
            plain.append(token)
        self.assertEqual(tokens, plain)
        with self.assertRaises(RuntimeError):
            binding.bind_output("nowhere")

    def test_fixed_buffers(self):
        session = ort.InferenceSession(self.paths["linear"])
        x = np.array([[1, 2]], np.float32)
        x_value = ort.OrtValue.ortvalue_from_numpy(x)
        y_value = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 2), np.float32))
        binding = session.io_binding()
        binding.bind_input(name="x", device_type=x_value.device_name(), device_id=0, element_type=np.float32,
                           shape=x_value.shape(), buffer_ptr=x_value.data_ptr())
        binding.bind_output(name="y", device_type="cpu", device_id=0, element_type=1, shape=y_value.shape(),
                            buffer_ptr=y_value.data_ptr())
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(y_value.numpy(), [[3, 3]])
        x_value.update_inplace(np.array([[4, 5]], np.float32))
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], [[9, 9]])
        values = session.run_with_ort_values(["y"], {"x": x_value})
        self.assertEqual((values[0].element_type(), values[0].numpy().tolist()), (1, [[9.0, 9.0]]))
        self.assertEqual(session.run(None, {"x": x_value})[0].tolist(), [[9.0, 9.0]])

    def test_profiling(self):
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(self.folder.name) / "trace")
        session = ort.InferenceSession(self.paths["classifier"], options)
        for _ in range(3):
            session.run(None, {"input": np.zeros((2, 3, 8, 8), np.float32)})
        path = session.end_profiling()
        self.assertTrue(os.path.basename(path).startswith("trace_"))
        with open(path, encoding="utf-8") as file:
            events = json.load(file)
        runs = [event for event in events if event["cat"] == "Session" and event["name"] == "model_run"]
        nodes = [event for event in events if event["cat"] == "Node"]
        self.assertEqual(len(runs), 3)
        self.assertTrue(nodes and all(event["ph"] == "X" and "op_name" in event["args"] for event in nodes))
        self.assertGreater(session.get_profiling_start_time_ns(), 0)
        self.assertEqual(ort.InferenceSession(self.paths["linear"]).end_profiling(), "")

    def test_thread_counts(self):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 2
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_mem_pattern = options.enable_cpu_mem_arena = False
        session = ort.InferenceSession(self.paths["linear"], sess_options=options, providers=["CPUExecutionProvider"])
        self.assertEqual(session.get_session_options().get_session_config_entry("session.intra_op.allow_spinning"), "0")
        with self.assertRaises(RuntimeError):
            options.get_session_config_entry("nowhere")
        self.assertEqual(session._program.memory()["threads"], 2)
        run_options = ort.RunOptions()
        run_options.log_severity_level = 4
        run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        x = np.ones((3, 2), np.float32)
        self.assertEqual(session.run(None, {"x": x}, run_options=run_options)[0].shape, (3, 2))
        run_options.terminate = True
        with self.assertRaises(RuntimeError):
            session.run(None, {"x": x}, run_options)

    def test_metadata(self):
        meta = ort.InferenceSession(self.paths["linear"]).get_modelmeta()
        self.assertEqual((meta.graph_name, meta.producer_name, meta.version), ("linear", "tenon", 0))
        self.assertEqual((meta.domain, meta.description, meta.graph_description), ("", "", ""))
        names = eval(meta.custom_metadata_map.get("names", "{}"))  # as the scripts of detectors do
        self.assertEqual((names, meta.custom_metadata_map), ({}, {}))

    def test_asynchronous_runs(self):
        session = ort.InferenceSession(self.paths["linear"])
        done, seen = threading.Event(), []

        class UserData:
            def __init__(self):
                self.number = 7

        def callback(outputs, user_data, error):
            seen.append((outputs, user_data.number, error))
            done.set()

        session.run_async(["y"], {"x": np.ones((1, 2), np.float32)}, callback, UserData())
        self.assertTrue(done.wait(10))
        (outputs, number, error), = seen
        self.assertEqual((outputs[0].tolist(), number, error), ([[2.0, 2.0]], 7, ""))
        done.clear()
        session.run_async(None, {"x": np.ones((1, 3), np.float32)}, callback, UserData())
        self.assertTrue(done.wait(10))
        self.assertEqual(seen[1][0], [])
        self.assertIn("wrong shape", seen[1][2])

    def test_external_initializers(self):
        options = ort.SessionOptions()
        weight = ort.OrtValue.ortvalue_from_numpy(np.array([[1, 0], [0, 2]], np.float32))
        options.add_external_initializers(["weight"], [weight])
        session = ort.InferenceSession(self.paths["linear"], options)
        x = np.array([[3, 4]], np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], [[3, 8]])
        self.assertEqual([node.name for node in session.get_inputs()], ["x"])
        self.assertEqual(session.get_overridable_initializers(), [])

    def test_exceptions(self):
        from tenon.capi.onnxruntime_pybind11_state import (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile,
                                                           NotImplemented, RuntimeException)
        with self.assertRaises(NoSuchFile):
            ort.InferenceSession("nowhere.onnx")
        with self.assertRaises(InvalidProtobuf):
            ort.InferenceSession(b"\x08\x07")
        with self.assertRaises(InvalidGraph):
            ort.InferenceSession(b"graph (x: f32[2, 3]) {\n  y = matmul(x, x)\n  return y\n}\n")
        with self.assertRaises(NotImplemented):
            ort.SessionOptions().register_custom_ops_library("libcustom.so")
        session = ort.InferenceSession(self.paths["linear"])
        x = np.ones((1, 2), np.float32)
        for outputs, feed in ((None, {"x": np.ones((1, 3), np.float32)}), (None, {"x": x.astype(np.float64)}),
                              (None, {"x": x[0]}), (["nowhere"], {"x": x}), (None, {"x": x, "z": x})):
            with self.assertRaises(InvalidArgument):
                session.run(outputs, feed)
        with self.assertRaises(ValueError) as caught:
            session.run(None, {})
        self.assertIn("Required inputs (['x']) are missing", str(caught.exception))
        self.assertTrue(issubclass(InvalidArgument, tenon.UsageError) and issubclass(Fail, tenon.Error))
        with self.assertRaises(RuntimeException):
            ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)

    def test_threads_share_a_session(self):
        session = ort.InferenceSession(self.paths["classifier"])
        batches = [np.random.default_rng(k).normal(size=(k + 1, 3, 8, 8)).astype(np.float32) for k in range(8)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda batch: session.run(None, {"input": batch})[0], batches))
        for batch, result in zip(batches, results):
            np.testing.assert_array_equal(session.run(None, {"input": batch})[0], result)

    def test_saves_the_model_that_runs(self):
        options = ort.SessionOptions()
        options.optimized_model_filepath = str(Path(self.folder.name) / "optimized.onnx")
        session = ort.InferenceSession(self.paths["linear"], options)
        again = ort.InferenceSession(options.optimized_model_filepath)
        x = np.array([[1, 2]], np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], again.run(None, {"x": x})[0])

    def test_package_information(self):
        self.assertTrue(ort.__version__ == ort.get_version_string() and ort.get_build_info())
        ort.set_default_logger_severity(3)
        ort.set_seed(1)
        ort.disable_telemetry_events()
        self.assertEqual(ort.OrtDevice.make("cpu", 0).device_type(), "cpu")


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=1)
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    sys.exit(1 if failed else 0)
