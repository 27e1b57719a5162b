import type { WhyStep } from '@perch/contracts';
import type { PlacementSight } from '@perch/fleet';
import { isHeld } from '../external-endpoint.plan.ts';

export type StepState = WhyStep['state'];

/** How far one server is with one model: what it says, since when, and what has to come about next. */
export interface ServerWait {
  state: StepState;
  message: string;
  since: string | null;
  whatToDo: string | null;
  /** What is waited for, shorter; null: nothing. */
  waitsFor: string | null;
}

const gibibytes = (bytes: number) => `${(bytes / 1_073_741_824).toFixed(1)} GiB`;
const lowDiskBytes = 1_073_741_824;

const ok = (message: string, since: string | null): ServerWait => ({
  state: 'ok',
  message,
  since,
  whatToDo: null,
  waitsFor: null,
});
const waiting = (message: string, since: string | null, waitsFor: string, whatToDo: string | null = null) =>
  ({ state: 'waiting', message, since, whatToDo, waitsFor }) satisfies ServerWait;
const failed = (message: string, since: string | null, whatToDo: string): ServerWait => ({
  state: 'failed',
  message,
  since,
  whatToDo,
  waitsFor: null,
});

/** What holds the whole server back, before anything is said of the model. */
function serverFault({ server, tritonModel }: PlacementSight): ServerWait | undefined {
  const { name, presence, lastSeenAt, observed } = server;
  if (presence !== 'live') {
    const what = presence === 'lost' ? 'is lost: nothing more is placed on it' : 'is silent';
    if (isHeld(tritonModel))
      return waiting(
        `server ${name} ${what}`,
        lastSeenAt,
        `an answer of ${name}`,
        'the control plane must reach its gRPC address',
      );
    const todo = 'look after its agent: is it running, does it reach the control plane?';
    return waiting(`server ${name} ${what}`, lastSeenAt, `a word from the agent of ${name}`, todo);
  }
  if (observed === null)
    return waiting(`server ${name} has not reported yet`, lastSeenAt, `the first report of ${name}`);
  const { supervision, triton } = observed;
  if (triton.live) return undefined;
  const state = supervision ? ` (${supervision.state.replace('_', ' ')}, ${supervision.restarts} restarts)` : '';
  const ended = supervision?.lastExit ? `, ended last: ${supervision.lastExit}` : '';
  const todo = supervision
    ? `read its console with "perch endpoint logs" or "perch fleet server show ${name}"`
    : `start the Triton beside the agent of ${name}, and read its log`;
  const words = `the Triton of server ${name} does not answer${state}${ended}`;
  return waiting(words, null, `the Triton of ${name}`, todo);
}

const diskWords = ({ server }: PlacementSight) => {
  const free = server.observed?.disk.freeBytes;
  return free !== undefined && free < lowDiskBytes ? `; ${gibibytes(free)} of disk free` : '';
};

/** How far the server is with the model itself. */
function modelWait(sight: PlacementSight): ServerWait {
  const { server, observed, told, placedAt } = sight;
  const { name } = server;
  if (observed === null) return untold(sight);
  const { state, reason, since } = observed;
  const words = reason ? `: ${reason}` : '';
  switch (state) {
    case 'ready':
      return ready(sight, since);
    case 'failed':
      return failed(
        `server ${name}: ${reason ?? 'the model failed to load, without a reason'}`,
        since,
        /crashes its server/.test(reason ?? '')
          ? 'it is held back until its files or settings change: upload a version that does not crash the model server'
          : "these are the model server's own words: change the settings or upload another version; the same one is not tried again",
      );
    case 'stuck':
      return failed(
        `server ${name}: loading does not come to an end${words}`,
        since,
        'a supervised Triton is restarted by itself; restart any other by hand',
      );
    case 'pulling':
      return waiting(`server ${name} fetches its files${words}${diskWords(sight)}`, since, `files on ${name}`);
    case 'staging':
      return waiting(`server ${name} writes its files into the repository${words}`, since, `files on ${name}`);
    case 'loading':
      return waiting(`server ${name} is loading it${words}`, since, `Triton on ${name}`);
    case 'warming':
      return waiting(`server ${name} warms it up${words}`, since, `the warm-up on ${name}`);
    case 'unloading':
      return waiting(`server ${name} is unloading it${words}`, since, `Triton on ${name}`);
    default:
      return waiting(`server ${name}: ${state}${words}`, told ? since : placedAt, `server ${name}`);
  }
}

/** Served, also where it is to go: a drained server serves until another one does. Names what was tried there before. */
function ready({ server: { name, drainedBy }, waits, earlier = [] }: PlacementSight, since: string): ServerWait {
  const failed = earlier.map(({ tritonModel, reason }) => `${tritonModel} failed there: ${reason}`).join('; ');
  const served = ok(`server ${name} serves it${failed ? ` (${failed})` : ''}`, since);
  if (drainedBy === null && waits === null) return served;
  const why = drainedBy === null ? 'and it moves away' : `and is drained by ${drainedBy}`;
  return { ...served, message: `${served.message}, ${why}${waits ? ` (waits ${waits})` : ''}`, waitsFor: waits };
}

/** The server says nothing of the model: was it told, and has it heard? */
function untold({ server, told, placedAt, tritonModel }: PlacementSight): ServerWait {
  const { name, toldRevision, observed } = server;
  if (isHeld(tritonModel))
    return waiting(
      `server ${name} does not hold it`,
      placedAt,
      `${name} to hold it`,
      'load it there: we load nothing into a Triton that others look after',
    );
  if (!told)
    return waiting(
      `server ${name} is not told of it yet`,
      placedAt,
      `the control plane's document for ${name}`,
      'this takes a second; if it stays, look at the log of the control plane',
    );
  const followed = observed?.revision ?? 0;
  if (toldRevision !== null && followed < toldRevision)
    return waiting(
      `server ${name} was told (revision ${toldRevision}) and follows revision ${followed} still`,
      placedAt,
      `the agent of ${name}`,
      'this takes a second; if it stays, look at the log of the agent',
    );
  return waiting(`server ${name} has taken the order and says nothing of the model yet`, placedAt, `server ${name}`);
}

/** How far one server is with one model that it is to hold. */
export function serverWait(sight: PlacementSight): ServerWait {
  const fault = serverFault(sight);
  if (!fault) return modelWait(sight);
  // a silent server that proved it may serve on, and routers go on sending
  if (sight.proved && sight.observed?.state === 'ready')
    return { ...fault, message: `${fault.message}; it served the model before, and requests still go there` };
  return fault;
}
