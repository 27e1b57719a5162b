import { join } from 'node:path';
import { clipFolder } from '../clip/model.mjs';
import { detectorFolder } from './model.mjs';

export const title = 'Find, cut out, embed: every thing in a picture by the nearest one of a catalogue';
export const triton = true;

async function install(example) {
  const models = await example.step('make detector and encoder (once)', async () => ({
    find: await detectorFolder(),
    embed: join(await clipFolder(), 'image'),
  }));
  await example.step('upload and publish both', () =>
    Promise.all(
      Object.entries(models).map(([name, folder]) =>
        example.perch('model', 'upload', `things/${name}`, folder, '--publish'),
      ),
    ),
  );
  const modules = { 'things-find': 'find', crop: '../modules/crop.ts', 'things-nearest': '../clip/ranking' };
  await example.step('register the three modules', () =>
    Promise.all(
      Object.entries(modules).map(([name, path]) =>
        example.perch('processing', 'add', join(example.folder, path), '--name', name),
      ),
    ),
  );
  const processing = { find: 'things-find', embed: 'image-embedding' };
  await example.step('add both endpoints', () =>
    Promise.all(
      Object.entries(processing).map(([name, by]) =>
        example.perch('endpoint', 'add', `things/${name}`, '--model', `things/${name}`, '--processing', by, '--wait=120s'),
      ),
    ),
  ); // biome-ignore format: one command
  await example.step('add the pipeline of pipeline.ts', () =>
    example.perch('pipeline', 'add', join(example.folder, 'pipeline.ts'), '--wait=60s'),
  );
}

export async function run(example) {
  const { alone, desk, placed, things } = await import('./pictures.mjs');
  await install(example);
  const names = Object.keys(things);
  const catalogue = (await Promise.all(names.map(alone))).map((file) => file.toString('base64'));
  const body = { image: (await desk()).toString('base64'), catalogue, names };

  const reply = await example.step('ask about a desk with five things on it', () => example.serve('things/name', body));
  example.check('as many boxes as there are things', reply.boxes.length, placed.length);
  for (const [at, { score, ...box }] of reply.boxes.entries()) {
    const { name, similarity } = reply.nearest[at];
    const { name: wanted, ...place } = placed[at];
    example.say(`${name.padEnd(8)} ${similarity.toFixed(3)}  ${box.width} x ${box.height} at ${box.left}, ${box.top}`);
    example.check(`place of the ${wanted}`, box, place);
    example.check(`name of thing ${at + 1}`, name, wanted);
    example.checkThat('it was sure of it', score > 0.3 && similarity > 0.95, [score, similarity]);
  }
  const [vector] = reply.embeddings;
  example.check('vectors are of length 1', Math.hypot(...vector), 1, 1e-4);
}
