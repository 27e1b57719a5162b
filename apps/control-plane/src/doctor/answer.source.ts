import { shownMessage } from '@perch/contracts';
import { withTimeout } from '@perch/platform';
import type { Answer } from './findings.ts';

const limitMs = 8_000;

/** The answer, or why there is none within the time. */
export async function answered<T>(thing: string, work: Promise<T>): Promise<Answer<T>> {
  try {
    return { value: await withTimeout(work, limitMs, thing) };
  } catch (error) {
    return { fault: shownMessage(error) === 'internal error' ? `${thing} cannot be read` : shownMessage(error) };
  }
}
