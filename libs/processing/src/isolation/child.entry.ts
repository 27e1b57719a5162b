import net from 'node:net';
import { FrameReader, frameOf, markFrame } from './frames.ts';
import { Inside } from './inside.ts';
import { leaveBy } from './last-words.ts';
import { refuseEnvironment, refuseNetwork } from './refusals.ts';
import type { ToCell } from './wire.ts';

/** The first code of a process that runs a module; the router is at the other end of file descriptor 3. */
const pipe = new net.Socket({ fd: 3, readable: true, writable: true });
const inside = new Inside({
  post(batch) {
    pipe.cork();
    for (const piece of frameOf(batch)) pipe.write(piece);
    pipe.uncork();
  },
  mark(call) {
    pipe.write(markFrame(call));
  },
});
const reader = new FrameReader<ToCell>((batch) => inside.receive(batch));

const leave = leaveBy(inside, (exit) => pipe.end(exit));
// the router is gone
pipe.on('error', () => leave(0));
pipe.on('end', () => leave(0));
pipe.on('data', (piece: Buffer) => reader.push(piece));
refuseNetwork();
refuseEnvironment();
await import('../index.ts');
