import { defineProcessing, invalid } from '@perch/processing';

const templates = ['a photo of {}.', 'a painting of {}.', '{} in the morning'];

/** Captions in, the prompts of each out: `{texts}`, those of one caption behind one another, and how many there are of each. */
export default defineProcessing({
  preprocess(body: { captions: string[] }) {
    const { captions } = body;
    if (!Array.isArray(captions) || captions.length === 0 || captions.some((caption) => typeof caption !== 'string'))
      throw invalid('captions is missing, wanted a list of texts');
    return { inputs: {}, carry: captions };
  },
  process: (_inputs, { carry: captions }) => ({
    texts: captions.flatMap((caption) => templates.map((template) => template.replace('{}', () => caption))),
    each: templates.length,
  }),
});
