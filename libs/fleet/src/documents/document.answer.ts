import type { DesiredAnswer, RoutingTableAnswer } from '@perch/contracts';
import type { Head } from './document.plan.ts';

/** What a long poll answers: the document, or what changed since `base`, as the JSON text that goes over the wire. */
export interface AnswerText {
  head: Head & { schema: number };
  /** Null: a whole document. */
  base: number | null;
  text: string;
}

/**
 * The text of an answer from the texts of its sections. `wanted`: sections that a whole document always names; `more`:
 * further fields of its head.
 */
export function composeAnswer(
  head: Head & { schema: number },
  base: number | null,
  sections: Readonly<Record<string, string>>,
  wanted: readonly string[],
  more: Readonly<Record<string, unknown>> = {},
): AnswerText {
  const members = (names: readonly string[]) =>
    names.map((name) => `${JSON.stringify(name)}:${sections[name] ?? '{}'}`);
  if (base !== null) {
    const patch = `{${members(Object.keys(sections)).join(',')}}`;
    const start = JSON.stringify({ kind: 'patch', base, ...head });
    return { head, base, text: `${start.slice(0, -1)},"patch":${patch}}` };
  }
  const start = JSON.stringify({ ...head, ...more });
  return { head, base, text: `{"kind":"whole","document":${start.slice(0, -1)},${members(wanted).join(',')}}}` };
}

/** The answer as a value, for callers in this process. */
export const readDesired = (answer: AnswerText | null): DesiredAnswer | null => answer && JSON.parse(answer.text);
export const readTable = (answer: AnswerText | null): RoutingTableAnswer | null => answer && JSON.parse(answer.text);
