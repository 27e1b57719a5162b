import { invalid } from '@perch/processing';

/** Samples from -1 to 1 of a WAV file (RIFF, PCM of 16 bits, one channel). Throws `invalid` for any other. */
export function samplesOf(bytes: Buffer, wantedRate: number): Float32Array {
  if (bytes.length < 12 || bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WAVE')
    throw invalid('audio is no WAV file');
  let format: { channels: number; rate: number; bits: number } | undefined;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const name = bytes.toString('latin1', at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    const from = at + 8;
    if (name === 'fmt ' && from + 16 <= bytes.length)
      format = {
        channels: bytes.readUInt16LE(from + 2),
        rate: bytes.readUInt32LE(from + 4),
        bits: bytes.readUInt16LE(from + 14),
      };
    if (name === 'data') return decoded(bytes.subarray(from, from + size), format, wantedRate);
    at = from + size + (size % 2);
  }
  throw invalid('audio is a WAV file without data');
}

function decoded(
  data: Buffer,
  format: { channels: number; rate: number; bits: number } | undefined,
  wantedRate: number,
): Float32Array {
  if (format?.channels !== 1 || format.bits !== 16 || format.rate !== wantedRate)
    throw invalid(`audio is not what is wanted: 16-bit PCM, one channel, ${wantedRate} samples a second`);
  const samples = new Float32Array(data.length >> 1);
  for (let at = 0; at < samples.length; at += 1) samples[at] = data.readInt16LE(2 * at) / 32_768;
  return samples;
}
