import { createServer, type Server } from 'node:http';
import type { Metrics } from '@perch/platform';

/** The metrics port: /metrics as Triton has it, and the health paths every program of Perch has. */
export function createMetricsServer(metrics: Metrics): Server {
  return createServer((request, response) => {
    const send = (status: number, contentType: string, body: string) => {
      response.writeHead(status, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) });
      response.end(body);
    };
    if (request.url === '/metrics')
      metrics.render().then(
        ({ contentType, body }) => send(200, contentType, body),
        () => send(500, 'text/plain', 'internal error'),
      );
    else if (request.url === '/health/live') send(200, 'application/json', '{"live":true}');
    else if (request.url === '/health/ready') send(200, 'application/json', '{"ready":true,"checks":{}}');
    else send(404, 'application/json', '{"error":"Not Found"}');
  });
}
