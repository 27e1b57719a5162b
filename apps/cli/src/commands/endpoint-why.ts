import { AppError, type EndpointWhy, type WhyStep } from '@perch/contracts';
import { colorsFor } from '../color.ts';
import { formatAge } from '../duration.ts';
import { plainText, type Shown } from '../output.ts';
import type { Run } from '../verb.ts';
import { endpointPath } from './ready.ts';

export const run: Run = async (invocation, [name], options) => {
  const { version } = options;
  if (version !== undefined && !/^[1-9]\d{0,9}$/.test(version))
    throw new AppError('invalid', `--version: wants a version number, got "${version}"`);
  const client = await invocation.admin();
  const why = await client.call<EndpointWhy>(`${endpointPath(name as string)}/why`, { query: { version } });
  return shownWhy(why, Date.now(), colorsFor(process.stdout, invocation.settings.color));
};

type Paint = Record<'green' | 'yellow' | 'red', (text: string) => string>;

const marks: Record<WhyStep['state'], [mark: string, color: keyof Paint]> = {
  ok: ['ok     ', 'green'],
  waiting: ['waiting', 'yellow'],
  failed: ['FAILED ', 'red'],
};

/** A checklist from the name to the traffic; exit code 1 when the version is not served. */
export function shownWhy(why: EndpointWhy, now: number, paint: Paint): Shown {
  const line = ({ step, state, message, since, whatToDo }: WhyStep) => {
    const [mark, color] = marks[state];
    const age = since && state !== 'ok' ? ` (${formatAge(since, now)})` : '';
    const todo = whatToDo && state !== 'ok' ? [`${' '.repeat(21)}-> ${plainText(whatToDo)}`] : [];
    return [`${paint[color](mark)}  ${step.padEnd(10)}  ${plainText(message)}${age}`, ...todo].join('\n');
  };
  const head = why.served ? 'Served' : 'Not served';
  const text = () => [...why.chain.map(line), '', `${head}: ${plainText(why.summary)}.`].join('\n');
  return { value: why, text, exitCode: why.served ? 0 : 1 };
}
