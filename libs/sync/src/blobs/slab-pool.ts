export const slabBytes = 1024 ** 2;
const mostKept = 32;

/**
 * Buffers that are used again. A pull that kept each chunk as it came from the socket would spend more time in the
 * garbage collector than on the hash.
 */
export class SlabPool {
  private readonly free: Buffer[] = [];

  take(): Buffer {
    return this.free.pop() ?? Buffer.allocUnsafeSlow(slabBytes);
  }

  give(slab: Buffer): void {
    if (this.free.length < mostKept) this.free.push(slab);
  }

  /** Nothing is pulled for now. */
  clear(): void {
    this.free.length = 0;
  }
}
