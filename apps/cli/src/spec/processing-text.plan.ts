import type { ProcessingSpec } from '@perch/contracts';

/** `text-embedding`, or `module ner/rules@3, isolation worker`, with its options. */
export function processingText({ builtin, module, isolation = 'worker', options = {} }: ProcessingSpec): string {
  const what = builtin ?? `module ${module}, isolation ${isolation}`;
  return Object.keys(options).length > 0 ? `${what} ${JSON.stringify(options)}` : what;
}
