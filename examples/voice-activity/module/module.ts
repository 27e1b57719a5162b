import { asFloats, bytesOf, defineProcessing, float32, tensor } from '@perch/processing';
import { samplesOf } from './wav.ts';

const rate = 16_000;
/** What Silero VAD v5 takes at 16 kHz: 512 new samples behind the 64 that came before. */
const step = 512;
const before = 64;

interface Request {
  /** A WAV file, base64. */
  audio: string;
  /** From which probability on a step counts as speech. */
  threshold?: number;
}

/** Where somebody speaks. The model has a memory: each step is given the state that the last one left. */
export default defineProcessing({
  task: 'voice-activity-detection',
  defaults: { threshold: 0.5 },

  preprocess(body: Request | Buffer) {
    const isFile = Buffer.isBuffer(body);
    const samples = samplesOf(isFile ? body : bytesOf(body.audio, 'audio'), rate);
    return { inputs: {}, carry: { samples, threshold: isFile ? 0.5 : body.threshold! } };
  },

  async process(_inputs, { carry: { samples } }, ctx) {
    const steps = Math.floor(samples.length / step);
    const probabilities = new Float32Array(steps);
    let state = float32(new Float32Array(2 * 128), [2, 1, 128]);
    const window = new Float32Array(before + step);
    for (let at = 0; at < steps; at += 1) {
      window.copyWithin(0, step);
      window.set(samples.subarray(at * step, (at + 1) * step), before);
      const outputs = await ctx.infer({
        input: float32(window.slice(), [1, before + step]),
        state,
        // a scalar, which model servers take as one element
        sr: tensor('INT64', [rate]),
      });
      probabilities[at] = asFloats(outputs['output']!)[0]!;
      state = outputs['stateN']!;
    }
    return probabilities;
  },

  postprocess(probabilities: Float32Array, { carry: { threshold } }, ctx) {
    const segments: { from: number; to: number }[] = [];
    for (const [at, one] of probabilities.entries()) {
      if (one < threshold) continue;
      const from = (at * step) / rate;
      const last = segments.at(-1);
      // pauses of less than a tenth of a second belong to the speech around them
      if (last && from - last.to < 0.1) last.to = from + step / rate;
      else segments.push({ from, to: from + step / rate });
    }
    const spoken = segments.reduce((sum, { from, to }) => sum + to - from, 0);
    ctx.observe('spoken_seconds', spoken);
    return { segments: segments.map(({ from, to }) => ({ from: round(from), to: round(to) })), spoken: round(spoken) };
  },
});

const round = (seconds: number): number => Math.round(seconds * 1_000) / 1_000;
