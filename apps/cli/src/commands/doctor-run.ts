import { type Actor, AppError, type Diagnosis, type Finding } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { colorsFor } from '../color.ts';
import { diagnose, type Facts, type Health } from '../doctor.decide.ts';
import { plainText, type Shown, tableText } from '../output.ts';
import type { Run } from '../verb.ts';

/** A question and its answer, or why there is none. */
const tried = <T>(work: Promise<T>): Promise<T | AppError> =>
  work.catch((error: unknown) => (error instanceof AppError ? error : new AppError('internal', String(error))));

async function health(client: AdminClient, base: string | undefined): Promise<Health | AppError | undefined> {
  if (!base) return undefined;
  const begun = Date.now();
  const answer = await tried(client.probe(`${base}/health/ready`));
  if (answer instanceof AppError) return answer;
  const ended = Date.now();
  const date = Date.parse(String(answer.headers['date'] ?? ''));
  const skewMs = Number.isNaN(date) ? undefined : Math.round((begun + ended) / 2 - date);
  try {
    const { ready, checks } = JSON.parse(answer.body.toString('utf8')) as Health;
    return { ready, checks, skewMs };
  } catch {
    return new AppError('unavailable', `${base} is not a program of Perch (it answers ${answer.status})`);
  }
}

export const run: Run = async (invocation) => {
  const { name, context } = await invocation.target();
  const client = await invocation.admin();
  const facts: Facts = {
    context: name,
    url: context.url,
    routerUrl: context.routerUrl,
    controlPlane: (await health(client, context.url)) as Health | AppError,
    router: await health(client, context.routerUrl),
    whoami: await tried(client.call<Actor>('/whoami')),
    diagnosis: await tried(client.call<Diagnosis>('/doctor')),
  };
  return shownFindings(diagnose(facts), colorsFor(process.stdout, invocation.settings.color));
};

function shownFindings(findings: readonly Finding[], paint: ReturnType<typeof colorsFor>): Shown {
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const marks = { ok: 'ok', warning: 'warning', error: 'ERROR' } as const;
  const paints: Record<string, (text: string) => string> = { ok: paint.green, warning: paint.yellow, ERROR: paint.red };
  const table = () =>
    tableText(findings, [
      ['', ({ severity }) => marks[severity]],
      ['what', ({ what }) => what],
      ['finding', ({ message }) => message],
    ]).replace(/^(ok|warning|ERROR)(?= )/gm, (mark) => paints[mark]?.(mark) ?? mark);
  const advice = findings
    .filter(({ whatToDo }) => whatToDo !== null)
    .map(({ what, whatToDo }) => `* ${plainText(what)}: ${plainText(whatToDo!)}`);
  const end = errors > 0 ? `${errors} ${errors === 1 ? 'thing is' : 'things are'} wrong.` : 'All is well.';
  return {
    value: { healthy: errors === 0, findings },
    text: () => [table(), ...(advice.length > 0 ? ['', 'What to do:', ...advice] : []), '', end].join('\n'),
    exitCode: errors > 0 ? 1 : 0,
  };
}
