/**
 * Something like speech, made by a formant synthesizer: a glottal pulse train, or noise for the consonant in front, through
 * three resonators at the formants of five vowels (Peterson and Barney, 1952). Deterministic.
 */
export const rate = 16_000;
const vowels = [[730, 1_090, 2_440], [270, 2_290, 3_010], [300, 870, 2_240], [530, 1_840, 2_480], [570, 840, 2_410]]; // biome-ignore format: one row
const widths = [80, 100, 140];

function seeded(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state / 2 ** 32) * 2 - 1;
  };
}

function resonator(frequency, width) {
  const r = Math.exp((-Math.PI * width) / rate);
  const a = 2 * r * Math.cos((2 * Math.PI * frequency) / rate);
  const b = -r * r;
  let last = 0;
  let before = 0;
  return (x) => {
    const y = (1 - a - b) * x + a * last + b * before;
    before = last;
    last = y;
    return y;
  };
}

export function speech(seconds, seed = 1) {
  const random = seeded(seed);
  const out = new Float32Array(seconds * rate);
  let phase = 0;
  for (let at = 0, syllable = 0; at < out.length; syllable += 1) {
    const length = Math.floor(rate * (0.12 + 0.08 * Math.abs(random())));
    const filters = vowels[syllable % vowels.length].map((frequency, k) => resonator(frequency, widths[k]));
    for (let i = 0; i < length && at < out.length; i += 1, at += 1) {
      phase = (phase + (120 + 25 * Math.sin((at / rate) * 5) + 10 * Math.sin((at / rate) * 33)) / rate) % 1;
      const pulse = (phase < 0.6 ? 3 * phase ** 2 - 3.2 * phase ** 3 : 0) - 0.3;
      const source = i < length / 4 ? 0.25 * random() : pulse + 0.02 * random();
      const swell = Math.min(1, Math.min(i, length - i) * (8 / length));
      out[at] = swell * filters.reduce((x, filter) => filter(x), source);
    }
  }
  const loudest = out.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  return out.map((x) => (x / loudest) * 0.5);
}

export const silence = (seconds) => new Float32Array(seconds * rate);
export function noise(seconds) {
  const random = seeded(3);
  return Float32Array.from({ length: seconds * rate }, () => 0.05 * random());
}

/** A WAV file of 16-bit PCM, one channel, of these parts behind one another. */
export function wav(...parts) {
  const samples = parts.flatMap((part) => [...part]);
  const file = Buffer.alloc(44 + 2 * samples.length);
  file.write('RIFF', 0, 'latin1');
  file.writeUInt32LE(36 + 2 * samples.length, 4);
  file.write('WAVEfmt ', 8, 'latin1');
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(rate, 24);
  file.writeUInt32LE(2 * rate, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write('data', 36, 'latin1');
  file.writeUInt32LE(2 * samples.length, 40);
  for (const [at, x] of samples.entries()) file.writeInt16LE(Math.round(x * 32_767), 44 + 2 * at);
  return file;
}
