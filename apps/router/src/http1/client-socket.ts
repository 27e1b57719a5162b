import { Socket } from 'node:net';

/** All connections read into one buffer: bytes are handled, and copied where kept, before the next read begins. */
const readBuffer = Buffer.allocUnsafeSlow(262_144);

/**
 * Lets a client's connection be read into a buffer of ours. Node gives that to sockets it connects itself (`onread`) but
 * not to those a server accepts; a server's own way takes 64 KiB of fresh memory for each read, which on big bodies costs
 * more than everything else. So the accepted socket's handle is moved to a socket that has it, as Node does when it passes
 * one on. Where that is not possible (TLS, another Node) the socket is read the usual way. `bytes` are valid during `read` only.
 */
export function readingSocket(accepted: Socket, read: (bytes: Buffer) => void): Socket {
  const giver = accepted as Socket & { _handle?: { useUserBuffer?: unknown } | null };
  const handle = accepted.constructor === Socket ? giver._handle : undefined;
  if (!handle || typeof handle.useUserBuffer !== 'function') {
    accepted.on('data', read);
    accepted.resume();
    return accepted;
  }
  giver._handle = null;
  accepted.destroy();
  const onread = {
    buffer: readBuffer,
    callback: (length: number) => {
      read(readBuffer.subarray(0, length));
      return true;
    },
  };
  return new Socket({ handle, onread } as never);
}
