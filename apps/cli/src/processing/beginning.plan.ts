/** What a new module does until its author writes something better: small, and right for its task. */
export interface Beginning {
  /** Taken in from the SDK besides `defineProcessing`. */
  imports: string[];
  /** Fields of a request that it reads. */
  fields: string[];
  /** What `preprocess` carries: an expression of `body`. */
  given: string;
  /** What `process` answers: an expression of `carry`. */
  work: string;
  /** The reply: an expression of `outputs`. */
  reply: string;
  fixture: { body: unknown; wanted: unknown };
}

const texts = {
  imports: [],
  fields: ['text: string | string[];'],
  given: '[body.text].flat()',
  body: { text: ['a', 'bc'] },
};
const picture = {
  imports: ['bytesOf'],
  fields: ['/** Base64, a `data:` URL, or a file of a multipart request. */', 'image: string | Buffer;'],
  given: "bytesOf(body.image, 'image')",
  body: { image: 'AAEC' },
};
const begun = ({ body, ...from }: typeof texts | typeof picture, work: string, reply: string, wanted: unknown) => ({
  ...from,
  work,
  reply,
  fixture: { body, wanted },
});

const ranked = (label: string) => ({ label, score: 1, scores: [{ label, score: 1 }] });
const rankText = (label: string) => `{ label: ${label}, score: 1, scores: [{ label: ${label}, score: 1 }] }`;
const rankPicture = begun(picture, "carry.length > 2 ? 'large' : 'small'", rankText('outputs'), ranked('large'));

const ofTask: Readonly<Record<string, Beginning>> = {
  'text-embedding': begun(texts, 'carry.map((text) => [text.length, 1])', '{ embeddings: outputs }', {
    embeddings: [[1, 1], [2, 1]],
  }), // biome-ignore format: two rows
  'text-classification': begun(
    texts,
    "carry.map((text) => (text.length > 1 ? 'long' : 'short'))",
    `{ results: outputs.map((label) => (${rankText('label')})) }`,
    { results: [ranked('short'), ranked('long')] },
  ),
  'text-generation': {
    imports: [],
    fields: ['prompt?: string;', 'messages?: { role: string; content: string }[];'],
    given: "body.prompt ?? body.messages?.at(-1)?.content ?? ''",
    work: "carry.split(' ').reverse()",
    reply:
      "{ text: outputs.join(' '), finishReason: 'stop', usage: { promptTokens: outputs.length, completionTokens: outputs.length } }",
    fixture: {
      body: { prompt: 'one two' },
      wanted: { text: 'two one', finishReason: 'stop', usage: { promptTokens: 2, completionTokens: 2 } },
    },
  },
  'image-classification': rankPicture,
  'image-embedding': begun(picture, '[carry.length, 1]', '{ embedding: outputs }', { embedding: [3, 1] }),
  'zero-shot-image-classification': rankPicture,
};

const ofOwn = begun(texts, 'carry.map((text) => text.length)', '{ lengths: outputs }', { lengths: [1, 2] });

export const beginningOf = (task: string | undefined): Beginning =>
  (task !== undefined && Object.hasOwn(ofTask, task) ? ofTask[task] : undefined) ?? ofOwn;
