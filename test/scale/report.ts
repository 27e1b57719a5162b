import { readFile, writeFile } from 'node:fs/promises';
import type { Figures } from './measure.ts';
import { commandOf } from './options.ts';

const whole = (value: number) => Math.round(value).toLocaleString('en-US');
const one = (value: number) => (Math.round(value * 10) / 10).toLocaleString('en-US');

/** The figures of one run, in the order in which they are told. */
export function rowsOf({ publish, idle, reconcile, ...run }: Figures): [what: string, value: string][] {
  return [
    ['deployments ready and routed, from nothing', `${one(run.reconcileSeconds)} s`],
    ['of it, adding the endpoints through the API', `${one(run.addedSeconds)} s`],
    ['statements an endpoint', one(reconcile.queriesPerEndpoint)],
    ['CPU of the control plane / of Postgres', `${one(reconcile.controlPlaneCpuSeconds)} s / ${one(reconcile.postgresCpuSeconds)} s`], // biome-ignore format: one row reads better
    ['one publish: until every router has it', `${whole(publish.routedMs)} ms`],
    ['one publish: until the replaced version is unloaded', `${whole(publish.settledMs)} ms`],
    ['one publish: statements', whole(publish.queries)],
    ['one publish: CPU of the control plane / of Postgres', `${whole(publish.controlPlaneCpuMs)} ms / ${whole(publish.postgresCpuMs)} ms`], // biome-ignore format: one row reads better
    ['one publish: bytes to all agents / from them', `${whole(publish.bytesToAgents)} / ${whole(publish.bytesFromAgents)}`], // biome-ignore format: one row reads better
    ['one publish: bytes to all routers', whole(publish.bytesToRouters)],
    ['idle: statements a second', one(idle.queriesPerSecond)],
    ['idle: requests / bytes a second', `${one(idle.requestsPerSecond)} / ${whole(idle.bytesPerSecond)}`],
    ['idle: CPU of the control plane / of Postgres', `${one(idle.controlPlaneCpuPercent)} % / ${one(idle.postgresCpuPercent)} % of a core`], // biome-ignore format: one row reads better
    ['memory of the control plane at the end', `${whole(run.rssMegabytes)} MB`],
  ];
}

export function tableOf(figures: Figures): string {
  const rows = rowsOf(figures).map(([what, value]) => `| ${what} | ${value} |`);
  return ['| what | measured |', '|---|---|', ...rows].join('\n');
}

/** Puts the run between its two marks in a document, or at its end. */
export async function writeSection(file: string, figures: Figures): Promise<void> {
  const { endpoints, versions, servers, replicas } = figures.options;
  const mark = `run ${endpoints}x${versions}x${servers}x${replicas}`;
  const [begin, end] = [`<!-- ${mark} -->`, `<!-- end ${mark} -->`];
  const title = `${whole(endpoints)} endpoints × ${versions} versions on ${servers} servers`;
  const section = `${begin}\n### ${title}\n\n\`${commandOf(figures.options)}\`\n\n${tableOf(figures)}\n${end}`;
  const text = await readFile(file, 'utf8').catch(() => '');
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  const next =
    from >= 0 && to >= 0
      ? `${text.slice(0, from)}${section}${text.slice(to + end.length)}`
      : `${text.trimEnd()}\n\n${section}\n`;
  await writeFile(file, next);
}
