import { minilmFolder } from '../../scripts/models/minilm.mjs';

export const title = 'Search by meaning: sentences as vectors of MiniLM, the nearest one answers';
export const triton = true;

const notes = [
  'To reset your password, open the settings and choose "security".',
  'Our office is closed on public holidays.',
  'Refunds are paid back to the card within five working days.',
  'The warehouse ships parcels every weekday before noon.',
  'You can export your data as a spreadsheet from the reports page.',
  'Dogs are welcome in the garden but not in the restaurant.',
];
/** Question and the number of the note that answers it; none of them shares its words. */
const questions = [
  ['I forgot my login credentials, what now?', 0],
  ['When do I get my money back?', 2],
  ['How fast is delivery?', 3],
  ['May I bring my pet?', 5],
  ['How do I get a CSV of everything?', 4],
];

const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);

export async function run(example) {
  const folder = await example.step('build MiniLM from its published weights (once)', () => minilmFolder(1));
  await example.step('upload and publish it', () =>
    example.perch('model', 'upload', 'nlp/minilm-search', folder, '--publish'),
  );
  await example.step('add the endpoint with the built-in text-embedding', () =>
    example.perch('endpoint', 'add', 'text/search', '--model', 'nlp/minilm-search', '--processing', 'text-embedding', '--wait=120s'),
  ); // biome-ignore format: one command

  const { embeddings: index } = await example.step('embed the notes', () =>
    example.serve('text/search', { text: notes }),
  );
  example.check('vectors are of length 1', dot(index[0], index[0]), 1, 1e-4);
  for (const [question, wanted] of questions) {
    const { embedding } = await example.serve('text/search', { text: question });
    const scores = index.map((vector) => dot(vector, embedding));
    const best = scores.indexOf(Math.max(...scores));
    example.say(`${question}  ->  ${notes[best]} (${scores[best].toFixed(2)})`);
    example.check(question, best, wanted);
  }
}
