/**
 * Loaded into the router by the bench (`node --import`): answers an IPC message with the longest pause of the event loop
 * since the last one. A pause counts only as far as this process was really computing, since a busy machine stops it too.
 */
const everyMs = 1;
let longestMs = 0;
let lastWall = performance.now();
let lastCpu = process.cpuUsage();

setInterval(() => {
  const wall = performance.now();
  const cpu = process.cpuUsage(lastCpu);
  longestMs = Math.max(longestMs, Math.min(wall - lastWall - everyMs, (cpu.user + cpu.system) / 1_000));
  lastWall = wall;
  lastCpu = process.cpuUsage();
}, everyMs).unref();

process.on('message', (message) => {
  if (message !== 'longest-pause') return;
  process.send({ longestMs });
  longestMs = 0;
});
process.channel?.unref();
