export type { HttpApplication, HttpExchange } from './http-exchange.ts';
export { HttpServer, type HttpServerOptions } from './http-server.ts';
export type { ReplyStream } from './reply-stream.ts';
export type { HttpReply, StreamHead } from './reply-text.ts';
export type { RequestHead } from './request-head.ts';
