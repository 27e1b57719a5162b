/**
 * Loaded into the router by the bench (`node --import`): watches the event loop between two IPC messages, `watch` and
 * `longest-pause`, and costs nothing outside of them. A pause counts only as far as this process was really computing, since a busy machine stops it too.
 */
import { openSync, readSync } from 'node:fs';

const everyMs = 1;
const schedule = openSync('/proc/self/schedstat', 'r');
const text = Buffer.alloc(128);

/** CPU time of the main thread, which runs the event loop. */
function mainThreadMs() {
  const length = readSync(schedule, text, 0, text.length, 0);
  return Number(text.toString('latin1', 0, length).split(' ')[0]) / 1e6;
}

let timer;
let longestMs = 0;
let lastWall = 0;
let lastCpu = 0;

function look() {
  const wall = performance.now();
  const cpu = mainThreadMs();
  longestMs = Math.max(longestMs, Math.min(wall - lastWall - everyMs, cpu - lastCpu));
  lastWall = wall;
  lastCpu = cpu;
}

process.on('message', (message) => {
  clearInterval(timer);
  if (message === 'watch') {
    longestMs = 0;
    lastWall = performance.now();
    lastCpu = mainThreadMs();
    timer = setInterval(look, everyMs);
  }
  process.send({ longestMs });
});
process.channel?.unref();
