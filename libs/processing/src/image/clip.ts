import { AppError, type ClipOptions } from '@perch/contracts';
import { type CallContext, defineProcessing, type LoadSetup } from '../contract.ts';
import { normalizeRows, poolMean } from '../text-embedding/pool.ts';
import { writeVectors } from '../text-embedding/reply.ts';
import { type ClipRequest, readClipRequest } from './clip-body.ts';
import { encodeImages, encodeTexts, type Vectors } from './clip-encode.ts';
import { type ClipPlan, planClip } from './clip-plan.ts';
import { rank, softmax } from './scores.ts';

interface Loaded {
  plan: ClipPlan;
  /** Vectors of labels that were asked for before, by label and templates; the oldest go first. */
  known: Map<string, Float32Array>;
}

const mostKnown = 4096;

/** One vector for each label: the mean of its prompts' vectors, scaled to length 1 again, as in CLIP's own notebook. */
async function labelVectors(plan: ClipPlan, labels: readonly string[], templates: string[], ctx: CallContext) {
  const prompts = labels.flatMap((label) => templates.map((template) => template.replace('{}', () => label)));
  const { rows, size } = await encodeTexts(plan, prompts, ctx);
  const mask = new Int32Array(prompts.length).fill(1);
  const means = poolMean({ values: rows, mask, texts: labels.length, tokens: templates.length, size });
  return { rows: normalizeRows(means, size), size };
}

/** Asks for labels that are not known yet. Those of another endpoint are asked for each time: its version may change. */
async function labelVectorsOf({ plan, known }: Loaded, request: ClipRequest, ctx: CallContext): Promise<Vectors> {
  const { texts, templates } = request;
  if (!plan.text) return labelVectors(plan, texts, templates, ctx);
  const key = (label: string) => JSON.stringify([label, templates]);
  const missing = [...new Set(texts)].filter((label) => !known.has(key(label)));
  const found = new Map(texts.map((label) => [label, known.get(key(label))]));
  if (missing.length > 0) {
    const { rows, size } = await labelVectors(plan, missing, templates, ctx);
    for (const [i, label] of missing.entries()) {
      found.set(label, rows.slice(i * size, (i + 1) * size));
      known.set(key(label), found.get(label)!);
    }
    for (const oldest of known.keys()) {
      if (known.size <= mostKnown) break;
      known.delete(oldest);
    }
  }
  const size = found.get(texts[0]!)!.length;
  const rows = new Float32Array(texts.length * size);
  for (const [i, label] of texts.entries()) rows.set(found.get(label)!, i * size);
  return { rows, size };
}

/** Shares of each picture over the labels: softmax of scaled cosines. */
function rankings(images: Vectors, labels: Vectors, texts: string[], logitScale: number) {
  if (images.size !== labels.size)
    throw new AppError('upstream', `vectors of pictures have ${images.size} numbers, those of texts ${labels.size}: the encoders are not of one model`); // biome-ignore format: one sentence
  const { size } = images;
  return Array.from({ length: images.rows.length / size }, (_, image) => {
    const logits = texts.map((_text, label) => {
      let sum = 0;
      for (let i = 0; i < size; i++) sum += images.rows[image * size + i]! * labels.rows[label * size + i]!;
      return sum * logitScale;
    });
    return rank(softmax(logits), texts, texts.length);
  });
}

/**
 * Pictures and texts in one space: ranks labels or captions for pictures, or answers vectors of either. The version's
 * model holds both encoders, or one of them; the other one is then asked at its own endpoint.
 */
export const clip = defineProcessing({
  task: 'zero-shot-image-classification',
  async load(setup: LoadSetup<ClipOptions>): Promise<Loaded> {
    return { plan: await planClip(setup), known: new Map() };
  },
  preprocess: (body: unknown, { plan }: Loaded) => ({ inputs: {}, carry: readClipRequest(body, plan.options) }),
  async process(_inputs, { loaded, carry: request }: { loaded: Loaded; carry: ClipRequest }, ctx) {
    const { plan } = loaded;
    const [images, texts] = await Promise.all([
      request.images && encodeImages(plan, request.images, ctx),
      request.wish === 'texts'
        ? encodeTexts(plan, request.texts, ctx)
        : request.wish === 'rank'
          ? labelVectorsOf(loaded, request, ctx)
          : undefined,
    ]);
    return { images, texts };
  },
  postprocess({ images, texts }: { images?: Vectors; texts?: Vectors }, { loaded, carry: request }) {
    const { logitScale, encoding } = loaded.plan.options;
    const single = request.images ? request.images.single : request.singleText;
    if (images && texts) {
      const results = rankings(images, texts, request.texts, logitScale);
      return single ? results[0] : { results };
    }
    const { rows, size } = (images ?? texts)!;
    return writeVectors(rows, { field: single ? 'embedding' : 'embeddings', single, size, encoding });
  },
});
