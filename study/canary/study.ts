/**
 * `npm run study:canary`: writes docs/canary-study.md and its plots from simulations alone. `--quick` makes a tenth of the
 * runs and writes into the folder given by `--out`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { compareIn, compareRules, stickyWorlds, unreliable } from './compare.ts';
import { delayTable, nullTable, powerTable, promotionTable } from './promises.ts';
import { falseRollbacks, plots, promoteTimes, regressions, whereWorse, worldTable } from './report.ts';
import { slowTable } from './slow-requests.ts';
import { studyText } from './text.ts';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: resolve(import.meta.dirname, '../../docs') },
  },
});

const say = (line: string) => process.stderr.write(`${line}\n`);
const part = options.quick ? 10 : 1;
const runs = { nullRuns: 400 / part, worseRuns: 200 / part, stickyRuns: 200 / part, promised: 2_000 / part };

const figures = compareRules(runs, say);
const unreliableFigures = compareIn(unreliable, runs.worseRuns, say);
const stickyFigures = compareIn(stickyWorlds, runs.stickyRuns, say);
const text = studyText({
  runs,
  falseRollbacks: falseRollbacks(figures),
  promoteTimes: promoteTimes(figures),
  regressions: regressions(figures),
  unreliable: worldTable(unreliableFigures),
  sticky: worldTable(stickyFigures),
  whereWorse: whereWorse([...figures, ...unreliableFigures, ...stickyFigures]),
  nulls: nullTable(runs.promised, say),
  delays: delayTable(runs.nullRuns, say),
  slow: slowTable(runs.worseRuns, say),
  power: powerTable(runs.promised / 2, say),
  promotion: promotionTable(runs.worseRuns, say),
});

const folder = join(options.out, 'canary-study');
await mkdir(folder, { recursive: true });
await writeFile(join(options.out, 'canary-study.md'), text);
for (const [name, svg] of Object.entries(plots(figures))) await writeFile(join(folder, name), svg);
