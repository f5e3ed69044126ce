"""Concurrent contexts of one program, each on its own CUDA stream, on a machine with a GPU:
tools/python tests/python/gpu_streams.py [TARGET [MODEL[:PRECISION]…]]

Several threads run each program repeatedly and concurrently, each with its own order of inputs. Results are
compared bit for bit with sequential runs on one stream.
"""

import sys
import threading

import numpy as np

import tenon

MODELS = ["zoo:mlp", "zoo:resnet18?batch=2:f16", "zoo:resnet50?batch=1:f16", "zoo:bert_base?batch=2:f16", "zoo:mobilenet_v2", "zoo:lstm"]
THREADS, INPUTS, ROUNDS = 4, 3, 8
passed = failed = 0


def expect(what, is_so, detail=""):
    global passed, failed
    passed, failed = passed + bool(is_so), failed + (not is_so)
    print("  " if is_so else "failed: ", what, "" if is_so else f": {detail}", sep="", flush=True)


def random_inputs(program, rng):
    made = []
    for port in program.inputs:
        shape = tuple(extent if isinstance(extent, int) else 2 for extent in port.shape)
        if np.issubdtype(port.dtype, np.integer):
            made.append(rng.integers(0, 2, shape).astype(port.dtype))
        else:
            made.append(rng.normal(size=shape).astype(port.dtype))
    return made


def bits(program, inputs):
    return [np.asarray(output).tobytes() for output in program.run(inputs)]


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    rng = np.random.default_rng(1)
    programs = []
    for word in sys.argv[2:] or MODELS:
        name, _, precision = word[4:].partition(":") if word.startswith("zoo:") else word.partition(":")
        options = {"precision": precision} if precision else {}
        program = tenon.load("zoo:" + name if word.startswith("zoo:") else name).compile(target=target, **options)
        inputs = [random_inputs(program, rng) for _ in range(INPUTS)]
        wanted = [bits(program, each) for each in inputs]
        programs.append((word, program, inputs, wanted))
        again = all(bits(program, each) == expected for _ in range(ROUNDS) for each, expected in zip(inputs, wanted))
        expect(f"{word}: {ROUNDS} runs again give the same bits", again)
        expect(f"{word}: its outputs follow its inputs", wanted[0] != wanted[1])

    start = threading.Barrier(THREADS * len(programs))
    different, errors = [], []

    def work(number, word, program, inputs, wanted):
        try:
            start.wait()
            for turn in range(ROUNDS * INPUTS):
                k = (turn * (number + 1) + number) % INPUTS
                if bits(program, inputs[k]) != wanted[k]:
                    different.append(f"{word}, thread {number}, run {turn}")
        except Exception as error:  # reported below
            errors.append(f"{word}, thread {number}: {error}")

    threads = [threading.Thread(target=work, args=(number, *program)) for program in programs for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(f"{len(programs)} programs in {THREADS} contexts each, all at once, run", not errors, "; ".join(errors[:3]))
    expect(f"{len(threads) * ROUNDS * INPUTS} runs at once give the bits of runs one after another", not different,
           f"{len(different)} differ: " + "; ".join(different[:5]))
    # by one thread, finished in another order than begun
    for word, program, inputs, wanted in programs:
        same = True
        for _ in range(ROUNDS):
            pending = [program.start(*each) for each in inputs]
            for k in reversed(range(INPUTS)):
                made = pending[k].result()
                made = made if isinstance(made, tuple) else (made,)
                same = same and [np.asarray(output).tobytes() for output in made] == wanted[k]
        expect(f"{word}: {INPUTS} runs that one thread has in flight give the same bits", same)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
