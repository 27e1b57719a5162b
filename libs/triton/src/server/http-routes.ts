import { StatusFault } from './http-exchange.ts';

/** What a request's method and path ask for; `model` is taken as it stands, nobody decodes it. */
export type Route =
  | { kind: 'live' | 'ready' | 'server' | 'index' | 'all-statistics' }
  | { kind: 'load' | 'unload'; model: string }
  | { kind: 'metadata' | 'model-ready' | 'config' | 'statistics'; model: string; version: string | undefined }
  | InferRoute;
export interface InferRoute {
  kind: 'infer';
  model: string;
  version: string | undefined;
}

const model = /^\/v2\/models\/([^/]+)(?:\/versions\/([0-9]+))?(?:\/(infer|ready|config|stats))?$/;
const repository = /^\/v2\/repository(?:\/[^/]+)?\/(?:index|models\/([^/]+)\/(load|unload))$/;
const verbs = { infer: 'infer', ready: 'model-ready', config: 'config', stats: 'statistics' } as const;

const plain: Record<string, Route> = {
  '/v2/health/live': { kind: 'live' },
  '/v2/health/ready': { kind: 'ready' },
  '/v2': { kind: 'server' },
  '/v2/models/stats': { kind: 'all-statistics' },
};

function expect(method: string | undefined, wanted: 'GET' | 'POST'): void {
  if (method !== wanted) throw new StatusFault(405, 'Method Not Allowed');
}

/** Throws 404 for an unknown path and 405 for a known one with another method. */
export function routeOf(method: string | undefined, url: string): Route {
  const query = url.indexOf('?');
  const path = query === -1 ? url : url.slice(0, query);
  const found = model.exec(path);
  if (found && path !== '/v2/models/stats') {
    const verb = found[3] as keyof typeof verbs | undefined;
    expect(method, verb === 'infer' ? 'POST' : 'GET');
    return { kind: verb ? verbs[verb] : 'metadata', model: found[1]!, version: found[2] } as Route;
  }
  const known = plain[path];
  if (known) {
    expect(method, 'GET');
    return known;
  }
  const act = repository.exec(path);
  if (!act) throw new StatusFault(404, 'Not Found');
  expect(method, 'POST');
  return act[2] ? { kind: act[2] as 'load' | 'unload', model: act[1]! } : { kind: 'index' };
}
