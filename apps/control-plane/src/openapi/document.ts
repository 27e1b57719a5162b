import type { Type } from '@nestjs/common';
import { problem } from '@perch/contracts';
import { z } from 'zod';
import { Components } from './components.ts';
import { type Route, routesOf } from './route.source.ts';

type Json = Record<string, unknown>;

const inPath = (path: string) => path.replace(/:(\w+)/g, '{$1}');
const noun = (controller: string) => controller.replace(/Controller$/, '').toLowerCase();

/** The whole OpenAPI 3.1 document of the routes below /api/v1. */
export function openApiDocument(controllers: Type[], version: string): Json {
  const components = new Components();
  const fault = components.add(problem, 'output');
  const drafts = controllers
    .flatMap(routesOf)
    .filter((route) => route.path.startsWith('/api/v1/'))
    .sort((a, b) => (a.path === b.path ? (a.method < b.method ? -1 : 1) : a.path < b.path ? -1 : 1))
    .map((route) => ({ route, operation: operationOf(route, components) }));
  const paths: Record<string, Json> = {};
  for (const { route, operation } of drafts) {
    const at = inPath(route.path);
    paths[at] = { ...paths[at], [route.method]: operation(fault) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Perch admin API', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key: pk_…' } },
      schemas: components.all(),
    },
  };
}

const parameter = (place: 'path' | 'query' | 'header', name: string, schema: () => Json, required: boolean) => () => ({
  name,
  in: place,
  required,
  schema: schema(),
});

/** What the schema of a path parameter is when the route gives none. */
const anyText = () => ({ type: 'string' });

function parametersOf(route: Route, components: Components) {
  const inPathParameters = Object.entries(route.params).map(([name, schema]) =>
    parameter('path', name, schema ? components.add(schema, 'input') : anyText, true),
  );
  const inQuery = Object.entries(route.query?.shape ?? {}).map(([name, schema]) =>
    parameter(
      'query',
      name,
      components.add(schema as z.ZodType, 'input'),
      !(schema as z.ZodType).safeParse(undefined).success,
    ),
  );
  const key = route.idempotent ? [parameter('header', 'Idempotency-Key', anyText, false)] : [];
  return [...inPathParameters, ...inQuery, ...key];
}

/** In two steps, because names of components are settled only when all routes have been seen. */
function operationOf(route: Route, components: Components): (fault: () => Json) => Json {
  const parameters = parametersOf(route, components);
  const body = route.body && components.add(route.body, 'input');
  const answer = route.answer?.schema && components.add(route.answer.schema, 'output');
  const streamed = route.path === '/api/v1/events';
  return (fault) => ({
    operationId: `${noun(route.controller)}.${route.handler}`,
    summary: route.answer?.summary ?? '',
    tags: [noun(route.controller)],
    'x-perch-role': route.role ?? 'admin',
    ...(parameters.length > 0 ? { parameters: parameters.map((one) => one()) } : {}),
    ...(body ? { requestBody: { required: true, content: { 'application/json': { schema: body() } } } } : {}),
    responses: {
      [route.status]: {
        description: route.answer?.summary ?? 'Done',
        ...(answer ? { content: { [streamed ? 'text/event-stream' : 'application/json']: { schema: answer() } } } : {}),
      },
      default: {
        description: 'What went wrong (RFC 9457)',
        content: { 'application/problem+json': { schema: fault() } },
      },
    },
  });
}

/** The text of openapi.json. */
export const openApiText = (controllers: Type[], version: string): string =>
  `${JSON.stringify(openApiDocument(controllers, version), null, 2)}\n`;
