import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Act = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

/** A model server that does as it is told, and remembers what it was asked. */
export class ScriptedServer {
  act: Act = good;
  /** What it does for one model alone. */
  readonly actFor = new Map<string, Act>();
  readonly asked: string[] = [];
  private readonly server: Server;

  constructor() {
    this.server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const url = request.url!;
        this.asked.push(url);
        const act = this.actFor.get(url.split('/')[3] ?? '') ?? this.act;
        act(request, response, Buffer.concat(pieces));
      });
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((done) => this.server.listen(0, '127.0.0.1', done));
    return this;
  }
  get at() {
    const address = `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return { http: address, grpc: address };
  }
  countOf(model: string): number {
    return this.asked.filter((url) => url.includes(`/models/${model}/`)).length;
  }
  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }
}

export const reply = (status: number, body: object): Act => {
  const text = JSON.stringify(body);
  return (_request, response) => void response.writeHead(status, { 'content-type': 'application/json' }).end(text);
};
export const good = reply(200, { model_name: 'm', model_version: '1', outputs: [] });
export const fails = (status: number, error: string): Act => reply(status, { error });
export const cut: Act = (request) => void request.socket.destroy();
export const cutWithin: Act = (request, response) => {
  response.writeHead(200, { 'content-length': '1000' });
  response.write('{"model_name"', () => request.socket.destroy());
};
