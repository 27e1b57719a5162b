import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageFolder } from '../../scripts/models/npm-package.mjs';
import { noise, silence, speech, wav } from './speech.mjs';

export const title = 'Where somebody speaks: Silero VAD, a model with a memory, asked step by step by a module';
// its rate is a scalar, which a configuration of Triton cannot declare
export const triton = false;

/** The package carries the model as it is published (MIT licence, Silero Team). */
const vad = [
  '@ricky0123/vad-web',
  '0.0.31',
  'sha512-ePVq8TvB21sdHSxVMZOEIf9JVa7MAYpaIaNXeGgsPOiMCN8xbPCdF2LS5aYj7VRR3ZxzutedgV9ZplV65IA1Fg==',
];

export async function run(example) {
  const packed = await example.step('fetch Silero VAD (once)', () => packageFolder(...vad));
  const folder = await mkdtemp(join(tmpdir(), 'perch-vad-'));
  try {
    await cp(join(packed, 'dist/silero_vad_v5.onnx'), join(folder, 'model.onnx'));
    await example.step('upload and publish it', () =>
      example.perch('model', 'upload', 'audio/silero-vad', folder, '--publish'),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
  const module = await example.step('register the module', () =>
    example.perch('processing', 'add', join(example.folder, 'module'), '--name', 'voice-activity'),
  );
  await example.step('add the endpoint', () =>
    example.perch('endpoint', 'add', 'audio/vad', '--model', 'audio/silero-vad', '--processing', `voice-activity@${module.number}`, '--wait=120s'),
  ); // biome-ignore format: one command

  const audio = wav(silence(1), speech(2, 1), noise(1), speech(1.5, 5), silence(0.5));
  const { segments } = await example.step('ask about six seconds: silence, speech, noise, speech, silence', () =>
    example.serve('audio/vad', { audio: audio.toString('base64') }),
  );
  for (const { from, to } of segments) example.say(`speech from ${from} to ${to} s`);
  example.check('two stretches of speech', segments.length, 2);
  example.check('the first', [segments[0].from, segments[0].to], [1, 3], 0.35);
  example.check('the second', [segments[1].from, segments[1].to], [4, 5.5], 0.35);

  const quiet = await example.serve('audio/vad', { audio: wav(silence(1), noise(1)).toString('base64') });
  example.check('no speech in silence and noise', quiet, { segments: [], spoken: 0 });
}
