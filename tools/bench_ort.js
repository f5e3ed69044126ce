// Times one ONNX model on ONNX Runtime: node bench_ort.js MODULE MODEL INPUT_FOLDER THREADS SECONDS
// Prints one line of JSON: samples_ms, load_ms, output_rms.
const fs = require('fs');
const path = require('path');

const [, , modulePath, model, folder, threads, seconds] = process.argv;
const ort = require(modulePath);

// Reads a .npy file of f32, i64 or bool, the input types of the built-in networks.
function readNpy(file) {
  const bytes = fs.readFileSync(file);
  const headerBytes = bytes[6] === 1 ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const start = (bytes[6] === 1 ? 10 : 12) + headerBytes;
  const header = bytes.toString('latin1', 10, start);
  const kind = /'descr': '([^']+)'/.exec(header)[1];
  const shape = /'shape': \(([^)]*)\)/.exec(header)[1].split(',').filter(s => s.trim()).map(Number);
  const data = bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length);
  if (kind === '<f4') return new ort.Tensor('float32', new Float32Array(data), shape);
  if (kind === '<i8') return new ort.Tensor('int64', new BigInt64Array(data), shape);
  if (kind === '|b1') return new ort.Tensor('bool', new Uint8Array(data), shape);
  throw new Error(`no tensor of ${kind}: ${file}`);
}

async function main() {
  const now = () => Number(process.hrtime.bigint()) / 1e6;
  const begin = now();
  const session = await ort.InferenceSession.create(model, {
    graphOptimizationLevel: 'all', intraOpNumThreads: Number(threads), interOpNumThreads: 1, executionMode: 'sequential',
  });
  const load = now() - begin;
  const feeds = {};
  for (const name of session.inputNames) {
    feeds[name] = readNpy(path.join(folder, name.replace(/[^A-Za-z0-9._\[\]-]/g, '_') + '.npy'));
  }
  let outputs = await session.run(feeds);
  const samples = [];
  const start = now();
  while (samples.length < 3 || now() - start < Number(seconds) * 1000) {
    const before = now();
    outputs = await session.run(feeds);
    samples.push(now() - before);
  }
  console.log(JSON.stringify({samples_ms: samples, load_ms: load}));
}

main().catch(error => { console.error(String(error)); process.exit(1); });
