// Runs models on ONNX Runtime for ort.py: node ort.js MODULE, then requests as lines of JSON, each with one reply.
// {model: base64} opens a model; {inputs: {name: {type, dims, bytes | strings}}, outputs: [name]} runs it.
const readline = require('readline');
const ort = require(process.argv[2]);

const arrays = {float32: Float32Array, float64: Float64Array, int64: BigInt64Array, uint64: BigUint64Array, int32: Int32Array,
  uint32: Uint32Array, int16: Int16Array, uint16: Uint16Array, int8: Int8Array, uint8: Uint8Array, bool: Uint8Array,
  float16: typeof Float16Array === 'undefined' ? Uint16Array : Float16Array};
let session;

function tensor(t) {
  if (t.strings) return new ort.Tensor('string', t.strings, t.dims);
  const raw = Buffer.from(t.bytes, 'base64');
  const data = new arrays[t.type](raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length));
  return new ort.Tensor(t.type, data, t.dims);
}

async function answer(question) {
  if (question.model) {
    // Without graph optimizations: each operator by its definition.
    const options = {graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, logSeverityLevel: 4};
    session = undefined;
    session = await ort.InferenceSession.create(Buffer.from(question.model, 'base64'), options);
    return {};
  }
  const feeds = {};
  for (const [name, t] of Object.entries(question.inputs)) feeds[name] = tensor(t);
  const results = await session.run(feeds, question.outputs);
  const out = {};
  for (const name of question.outputs) {
    const t = results[name];
    out[name] = t.type === 'string' ? {type: t.type, dims: t.dims, strings: Array.from(t.data)}
      : {type: t.type, dims: t.dims, bytes: Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength).toString('base64')};
  }
  return out;
}

(async () => {
  for await (const line of readline.createInterface({input: process.stdin})) {
    let text;
    try {
      text = JSON.stringify(await answer(JSON.parse(line)));
    } catch (error) {
      text = JSON.stringify({error: String(error)});
    }
    process.stdout.write(text + '\n');
  }
})();
