import { join } from 'node:path';
import { clipFolder } from './model.mjs';

export const title = 'CLIP: captions ranked for a picture, pictures searched by text, two encoders in two pipelines';
export const triton = true;

const captions = [
  'blue sky over a green meadow',
  'a sandy beach below a blue sky',
  'a red sunset over the sea',
  'a forest beside a lake',
];

/** The header of a PNG of 10,000 x 10,000 pixels. */
const bomb = Buffer.concat([Buffer.from('iVBORw0KGgoAAAANSUhEUgAAJxAAACcQCAIAAAA=', 'base64'), Buffer.alloc(64)]);

/** Pictures that are refused, each with the status that says why. */
async function refusals(example, whole) {
  for (const [what, picture, status] of [
    ['a picture that is cut off', whole.subarray(0, whole.length / 2), 400],
    ['a hundred megapixels', bomb, 413],
    ['a GIF', Buffer.from('GIF89a-and-so-on'), 415],
  ]) {
    const body = { image: picture.toString('base64') };
    const words = await example.serve('clip/image', body).catch(({ message }) => message);
    const [, found, reply] = /answered (\d+): (.*)/.exec(words) ?? [];
    example.check(what, Number(found), status);
    example.say(`${what}: ${JSON.parse(reply).error.message}`);
  }
}

async function install(example) {
  const folder = await example.step('write the two encoders (once)', clipFolder);
  for (const half of ['image', 'text'])
    await example.step(`upload and publish the ${half} encoder`, () =>
      example.perch('model', 'upload', `clip/${half}`, join(folder, half), '--publish'),
    );
  for (const name of ['prompts', 'ranking'])
    await example.step(`register the module clip-${name}`, () =>
      example.perch('processing', 'add', join(example.folder, name), '--name', `clip-${name}`),
    );
  const endpoint = (name, model, processing, ...more) =>
    example.step(`add the endpoint ${name} with the built-in ${processing}`, () =>
      example.perch('endpoint', 'add', name, '--model', model, '--processing', processing, '--wait=120s', ...more),
    );
  await endpoint('clip/image', 'clip/image', 'image-embedding');
  await endpoint('clip/text', 'clip/text', 'clip');
  await endpoint('clip/zero-shot', 'clip/image', 'clip', '--option', 'textEndpoint=clip/text');
  for (const file of ['rank.yaml', 'search.yaml'])
    await example.step(`add the pipeline of ${file}`, () =>
      example.perch('pipeline', 'add', join(example.folder, file), '--wait=60s'),
    );
}

export async function run(example) {
  const { pictures } = await import('./pictures.mjs');
  await install(example);
  const files = await pictures();
  const names = Object.keys(files);
  const images = names.map((name) => files[name].toString('base64'));

  await example.step('rank four captions for each of four pictures', async () => {
    for (const [at, image] of images.entries()) {
      const ranking = await example.settled('vision/rank', { image, captions });
      example.say(`${names[at].padEnd(12)} ->  ${ranking[0].name} (${ranking[0].score.toFixed(2)})`);
      example.check(`caption of ${names[at]}`, ranking[0].name, captions[at]);
      example.checkThat('it is sure of it', ranking[0].score > 0.9, ranking);
    }
  });
  await example.step('search the pictures by text', async () => {
    for (const [text, wanted] of [
      ['where can we bathe in the ocean at dusk?', 'sunset.jpg'],
      ['sand and sky', 'beach.jpg'],
      ['trees', 'forest.jpg'],
    ]) {
      const ranking = await example.settled('vision/search', { text, images, names });
      example.say(`${text.padEnd(42)} ->  ${ranking[0].name} (${ranking[0].similarity.toFixed(2)})`);
      example.check(text, ranking[0].name, wanted);
    }
  });
  await example.step('the same by the built-in clip alone, a file in a form', async () => {
    const form = new FormData();
    form.set('image', new Blob([files['beach.jpg']], { type: 'image/jpeg' }), 'beach.jpg');
    form.set('labels', new Blob([JSON.stringify(captions)], { type: 'application/json' }));
    const { label, scores } = await example.serve('clip/zero-shot', form);
    example.check('label', label, captions[1]);
    example.check('shares add to 1', scores.reduce((sum, { score }) => sum + score, 0), 1, 1e-6); // biome-ignore format: one row
  });
  await example.step('pictures that are refused', () => refusals(example, files['beach.jpg']));
}
