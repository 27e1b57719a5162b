import { readFile } from 'node:fs/promises';
import { WebSocket } from 'undici';

/** Environment of a Node program that is to be looked into. */
export const inspectable = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** Bytes of `process.memoryUsage()`. */
export interface Memory {
  rss: number;
  heapUsed: number;
  external: number;
}

/** Looks into a running Node program by its debugger: makes it collect its garbage, and asks what memory it holds. */
export class Inspected {
  private readonly socket: WebSocket;
  private readonly waiting = new Map<number, (result: unknown) => void>();
  private next = 1;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(String(data));
      this.waiting.get(id)?.(result);
      this.waiting.delete(id);
    });
  }

  /** `logFile`: where its standard error goes, which tells the address. */
  static async of(logFile: string): Promise<Inspected> {
    const address = /Debugger listening on (ws:\S+)/.exec(await readFile(logFile, 'utf8'))?.[1];
    if (!address) throw new Error(`${logFile} names no debugger: start the program with \`inspectable\``);
    const socket = new WebSocket(address);
    await new Promise<void>((done, fail) => {
      socket.addEventListener('open', () => done());
      socket.addEventListener('error', () => fail(new Error(`${address} does not answer`)));
    });
    return new Inspected(socket);
  }

  /** After a forced collection. */
  async memory(): Promise<Memory> {
    await this.ask('HeapProfiler.collectGarbage');
    await this.ask('HeapProfiler.collectGarbage');
    const { result } = (await this.ask('Runtime.evaluate', {
      expression: 'process.memoryUsage()',
      returnByValue: true,
    })) as { result: { value: Memory } };
    return result.value;
  }

  close(): void {
    this.socket.close();
  }

  private ask(method: string, params: object = {}): Promise<unknown> {
    const id = this.next++;
    return new Promise((done, fail) => {
      const limit = setTimeout(() => fail(new Error(`the debugger gave no answer to ${method}`)), 30_000);
      this.waiting.set(id, (result) => {
        clearTimeout(limit);
        done(result);
      });
      this.socket.send(JSON.stringify({ id, method, params }));
    });
  }
}
