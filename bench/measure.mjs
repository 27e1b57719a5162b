/** Reading what processes cost, from /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** A process and everything below it. */
function treeOf(pid) {
  const pids = [pid];
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const children = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim();
    for (const child of children ? children.split(' ') : []) pids.push(...treeOf(Number(child)));
  }
  return pids;
}

/** CPU time of a process tree so far, in microseconds: by the scheduler's own clock, since that of /proc/…/stat ticks at 10 ms. */
export function cpuMicros(pid) {
  let nanos = 0;
  for (const one of treeOf(pid))
    for (const task of readdirSync(`/proc/${one}/task`)) {
      try {
        nanos += Number(readFileSync(`/proc/${one}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
      } catch {
        // the thread ended between the listing and the reading
      }
    }
  return nanos / 1_000;
}

export function residentMiB(pid) {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1];
  return Number(kib) / 1_024;
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
