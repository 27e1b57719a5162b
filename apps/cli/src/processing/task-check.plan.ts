import { fieldFaults, tasks } from '@perch/contracts';

/** What of a request or reply is not as its task has it, in words; [] for tasks that are not written down. */
export function taskFaults(
  task: string | undefined,
  { request, reply }: { request?: unknown; reply?: unknown },
): string[] {
  const known = task === undefined ? undefined : tasks[task];
  if (!known) return [];
  const words: string[] = [];
  for (const [what, schema, value] of [
    ['request', known.request, request],
    ['reply', known.reply, reply],
  ] as const) {
    if (value === undefined) continue;
    const { error } = schema.safeParse(value);
    if (!error) continue;
    const [first] = fieldFaults(error);
    words.push(
      `note: the ${what} is not that of the task ${task}: ${first?.path ? `${first.path}: ` : ''}${first?.message}`,
    );
  }
  return words;
}
