import { EvidenceSum } from '../../libs/promotion/src/statistics/rollback-evidence.decide.ts';
import { drawBinomial, type Random, seededRandom } from '../../libs/promotion/src/statistics/simulate-chance.ts';
import { median } from '../../libs/promotion/src/statistics/simulate-trial.ts';
import { count, table } from './words.ts';

const seed = 20_257;
/** Every request of either arm takes so long, whatever becomes of it. */
const takesSeconds = 10;
const stableRate = 0.005;
const worldSeconds = 3_600;
const logThreshold = Math.log(20);

interface World {
  requestsPerSecond: number;
  share: number;
  candidateRate: number;
}
interface Second {
  stable: number;
  stableEvents: number;
  candidateEvents: number;
}
type Counting = 'whole intervals' | 'stable under way counts';

function drawSecond({ requestsPerSecond, share, candidateRate }: World, random: Random): Second {
  const candidate = drawBinomial(random, requestsPerSecond, share);
  const stable = requestsPerSecond - candidate;
  const events = (n: number, rate: number) => drawBinomial(random, n, rate);
  return { stable, stableEvents: events(stable, stableRate), candidateEvents: events(candidate, candidateRate) };
}

/** Seconds until `error` alone rolls back; infinite within the hour that is watched. */
function stoppedAfter(world: World, counting: Counting, run: number): number {
  const random = seededRandom(seed, run);
  const evidence = new EvidenceSum(1.25);
  const seconds: Second[] = [];
  let bad = 0;
  for (let now = 0; now < worldSeconds; now += 1) {
    const young = drawSecond(world, random);
    seconds.push(young);
    const ended = seconds[now - takesSeconds];
    if (counting === 'stable under way counts') evidence.add(world.share, young.stable - (ended?.stable ?? 0), 0);
    if (ended) evidence.add(world.share, ended.stableEvents, ended.candidateEvents);
    bad += ended?.candidateEvents ?? 0;
    if (bad >= 2 && evidence.log() >= logThreshold) return now + 1;
  }
  return Number.POSITIVE_INFINITY;
}

/** What it costs that stable's requests under way count as events, where all of them are long under way. */
export function slowTable(runs: number, say: (line: string) => void): string {
  const worlds = [
    { requestsPerSecond: 5, share: 0.05 },
    { requestsPerSecond: 50, share: 0.05 },
    { requestsPerSecond: 500, share: 0.01 },
  ];
  const rows = worlds.flatMap((world) =>
    [1, 0.3, 0.05].map((candidateRate) => {
      const seconds = (['whole intervals', 'stable under way counts'] as const).map((counting) => {
        const each = Array.from({ length: runs }, (_, run) => stoppedAfter({ ...world, candidateRate }, counting, run));
        return `${count(median(each))} s`;
      });
      const name = `${world.requestsPerSecond} a second, weight ${world.share * 100} %, fails in ${candidateRate * 100} %`;
      say(`${name}: ${seconds.join(', ')}`);
      return [name, ...seconds];
    }),
  );
  return table(['every request takes 10 s, stable fails in 0.5 %', 'whole intervals', 'stable under way counts'], rows);
}
