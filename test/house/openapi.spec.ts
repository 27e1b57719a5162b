import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { roles } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { openApiText } from '../../apps/control-plane/src/openapi/document.ts';
import { routesOf } from '../../apps/control-plane/src/openapi/route.source.ts';
import { controllers } from '../../apps/control-plane/src/parts.ts';
import { programVersion } from '../../apps/control-plane/src/program-version.ts';

const committed = readFileSync(join(import.meta.dirname, '../../openapi.json'), 'utf8');
const document = JSON.parse(committed);

describe('openapi.json', () => {
  it('is what the controllers and contracts say (else run `npm run generate` and commit it)', () => {
    expect(openApiText(controllers, programVersion)).toBe(committed);
  });

  it('is OpenAPI 3.1 in which every reference leads somewhere', () => {
    expect(document.openapi).toBe('3.1.0');
    const references = [...committed.matchAll(/"\$ref": "#\/components\/schemas\/([^"]+)"/g)].map((match) => match[1]);
    expect(references.length).toBeGreaterThan(20);
    expect(references.filter((name) => !(name! in document.components.schemas))).toEqual([]);
    expect(committed).not.toContain('#/$defs/');
  });

  it('names each operation once, and the role it wants', () => {
    const operations = Object.values<Record<string, { operationId: string; summary: string; 'x-perch-role': string }>>(
      document.paths,
    ).flatMap((path) => Object.values(path));
    const ids = operations.map((operation) => operation.operationId);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    expect(
      operations.filter((operation) => operation.summary === '').map((operation) => operation.operationId),
    ).toEqual([]);
    expect(operations.filter((operation) => !roles.includes(operation['x-perch-role'] as 'admin'))).toEqual([]);
  });

  it('every admin route says who may call it and what it answers', () => {
    const routes = controllers.flatMap(routesOf).filter((route) => route.path.startsWith('/api/v1/'));
    expect(routes.length).toBeGreaterThan(15);
    expect(
      routes.filter((route) => !route.role || !route.answer).map((route) => `${route.controller}.${route.handler}`),
    ).toEqual([]);
  });

  it('every changing route wants more than reading, and parses its body by a schema', () => {
    // whoever may call an endpoint may say what became of its replies: it changes no wish
    const byCallers = ['/api/v1/feedback'];
    const changing = controllers
      .flatMap(routesOf)
      .filter(({ path, method }) => path.startsWith('/api/v1/') && method !== 'get' && !byCallers.includes(path));
    expect(changing.filter((route) => roles.indexOf(route.role!) < roles.indexOf('publisher'))).toEqual([]);
  });
});
