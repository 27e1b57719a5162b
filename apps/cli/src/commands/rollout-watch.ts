import { setTimeout as pause } from 'node:timers/promises';
import { AppError, isOver, type Rollout, type RolloutEvent } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { parseDuration } from '../duration.ts';
import type { Invocation } from '../invocation.ts';
import type { Shown } from '../output.ts';
import { lineOfChange } from '../rollout/line.plan.ts';
import { findRolloutToCome, readEvents, rolloutPath } from '../rollout/rollout.source.ts';
import { Screen } from '../rollout/screen.ts';
import { renderRollout } from '../rollout/view.plan.ts';
import { viewOn } from '../rollout/view.ts';
import type { Run } from '../verb.ts';
import { waitMs } from '../wait.ts';

/** What was published a moment ago becomes a rollout within a second or two. */
const beginMs = 5_000;

interface Sight {
  rollout: Rollout;
  events: RolloutEvent[];
  /** Why this is not the newest; undefined: it is. */
  note: string | undefined;
}

/** Until it is over: 0 when it was promoted, 1 when it was rolled back or aborted. */
export const run: Run = async (invocation, [name], options): Promise<Shown> => {
  const everyMs = parseDuration(String(options['every'] ?? '1s'), '--every');
  if (everyMs < 100) throw new AppError('invalid', `--every: wants 100ms or more, got "${options['every']}"`);
  const client = await invocation.admin();
  const rollout = await findRolloutToCome(client, name as string, waitMs(options['wait']) ?? beginMs);
  const first: Sight = { rollout, events: await readEvents(client, rollout.id), note: undefined };
  const onScreen = invocation.output === 'table' && process.stdout.isTTY === true;
  const last = await (onScreen ? watchOnScreen : watchInLines)(invocation, client, first, everyMs);
  return shownEnd(invocation, last, onScreen);
};

/** The newest sight; a control plane that does not answer leaves the one before, with a note. */
async function lookAgain(client: AdminClient, { rollout, events }: Sight): Promise<Sight> {
  try {
    const latest = await client.call<Rollout>(rolloutPath(rollout.id), { timeoutMs: 5_000 });
    const more = await readEvents(client, rollout.id, events.at(-1)?.id ?? 0);
    return { rollout: latest, events: [...events, ...more], note: undefined };
  } catch (error) {
    if (!(error instanceof AppError) || !['unavailable', 'timeout'].includes(error.code)) throw error;
    return { rollout, events, note: `not up to date: ${error.message}` };
  }
}

async function watchOnScreen({ settings }: Invocation, client: AdminClient, first: Sight, everyMs: number) {
  let sight = first;
  const draw = () => {
    const look = { ...viewOn(process.stdout, settings), width: screen.width, height: screen.height };
    screen.draw(renderRollout({ ...sight, now: Date.now(), ...look }));
  };
  const screen = new Screen(process.stdout, () => draw());
  try {
    draw();
    while (!isOver(sight.rollout.state)) {
      await pause(everyMs);
      sight = await lookAgain(client, sight);
      draw();
    }
    return sight;
  } finally {
    screen.close();
  }
}

/** Where nobody looks: a line for each event and each change; with `-o json` (or yaml) each as an object on a line. */
async function watchInLines({ output }: Invocation, client: AdminClient, first: Sight, everyMs: number) {
  const tell = (from: Sight | undefined, to: Sight) => {
    const lines = lineOfChange(from, to, output === 'table');
    for (const line of lines) process.stdout.write(`${line}\n`);
  };
  let sight = first;
  for (tell(undefined, sight); !isOver(sight.rollout.state); ) {
    await pause(everyMs);
    const next = await lookAgain(client, sight);
    tell(sight, next);
    sight = next;
  }
  return sight;
}

/** On a screen the last picture stays; lines have said it already. */
function shownEnd({ settings }: Invocation, { rollout, events }: Sight, onScreen: boolean): Shown {
  const picture = () =>
    renderRollout({ rollout, events, now: Date.now(), ...viewOn(process.stdout, settings) }).join('\n');
  return {
    value: rollout,
    text: picture,
    exitCode: rollout.state === 'promoted' ? 0 : 1,
    ...(onScreen ? {} : { said: true }),
  };
}
