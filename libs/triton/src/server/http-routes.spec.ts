import { describe, expect, it } from 'vitest';
import { routeOf } from './http-routes.ts';

describe('routeOf', () => {
  it.each([
    ['GET', '/v2/health/live', { kind: 'live' }],
    ['GET', '/v2/health/ready?x=1', { kind: 'ready' }],
    ['GET', '/v2', { kind: 'server' }],
    ['GET', '/v2/models/m', { kind: 'metadata', model: 'm' }],
    ['GET', '/v2/models/m/versions/3', { kind: 'metadata', model: 'm', version: '3' }],
    ['GET', '/v2/models/m/versions/3/ready', { kind: 'model-ready', model: 'm', version: '3' }],
    ['GET', '/v2/models/m/config', { kind: 'config', model: 'm' }],
    ['GET', '/v2/models/m/stats', { kind: 'statistics', model: 'm' }],
    ['GET', '/v2/models/stats', { kind: 'all-statistics' }],
    ['POST', '/v2/models/a%2Fb/infer', { kind: 'infer', model: 'a%2Fb' }],
    ['POST', '/v2/repository/index', { kind: 'index' }],
    ['POST', '/v2/repository/models/m/load', { kind: 'load', model: 'm' }],
    ['POST', '/v2/repository/models/m/unload', { kind: 'unload', model: 'm' }],
  ])('%s %s', (method, url, route) => expect(routeOf(method, url)).toEqual(expect.objectContaining(route)));

  it.each([
    ['GET', '/', 404],
    ['GET', '/v2/', 404],
    ['GET', '/v2/health/live/', 404],
    ['GET', '/v2/models/m/versions/new', 404],
    ['GET', '/v2/models/m/trace', 404],
    ['POST', '/v2/repository/models/m/reload', 404],
    ['GET', '/v2/models/m/infer', 405],
    ['POST', '/v2/models/m', 405],
    ['GET', '/v2/repository/index', 405],
    ['PUT', '/v2/models/m/infer', 405],
  ])('%s %s is refused with %i', (method, url, status) => {
    expect(() => routeOf(method, url)).toThrow(expect.objectContaining({ status }));
  });
});
