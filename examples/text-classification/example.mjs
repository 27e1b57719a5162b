import { reviewsFolder } from './model.mjs';

export const title = 'Reviews by mood: a text classifier with its labels in the version';
export const triton = true;

const reviews = [
  ['We had a marvellous time and will come back.', 'positive'],
  ['The screen cracked within a week and nobody answered my mails.', 'negative'],
  ['Superb acting, a gripping story.', 'positive'],
  ['The soup was watery and the waiter ignored us.', 'negative'],
  ['It does exactly what I hoped for.', 'positive'],
  ['A complete waste of time and money.', 'negative'],
];

export async function run(example) {
  const folder = await example.step('train the classifier on 30 sentences (once)', reviewsFolder);
  await example.step('upload and publish it', () =>
    example.perch('model', 'upload', 'nlp/reviews', folder, '--publish'),
  );
  await example.step('add the endpoint with the built-in text-classification', () =>
    example.perch('endpoint', 'add', 'text/reviews', '--model', 'nlp/reviews', '--processing', 'text-classification', '--wait=120s'),
  ); // biome-ignore format: one command
  const reply = await example.step('classify six reviews', () =>
    example.serve('text/reviews', { text: reviews.map(([text]) => text) }),
  );
  for (const [at, [text, wanted]] of reviews.entries()) {
    const { label, score } = reply.results[at];
    example.say(`${label} ${score.toFixed(2)}  ${text}`);
    example.check(text, label, wanted);
  }
}
