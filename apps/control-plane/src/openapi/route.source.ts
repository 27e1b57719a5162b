import 'reflect-metadata';
import { RequestMethod, type Type } from '@nestjs/common';
import { HTTP_CODE_METADATA, METHOD_METADATA, PATH_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import type { Role } from '@perch/contracts';
import type { z } from 'zod';
import { ALLOW, ANSWERS, type Answer, IDEMPOTENT } from '../admin-api/http.ts';

/** One route as its controller declares it: the decorators are the only description there is. */
export interface Route {
  controller: string;
  handler: string;
  method: string;
  /** `/api/v1/models/:project` */
  path: string;
  status: number;
  role: Role | undefined;
  answer: Answer | undefined;
  idempotent: boolean;
  body: z.ZodType | undefined;
  query: z.ZodObject | undefined;
  params: Record<string, z.ZodType | undefined>;
}

interface RouteArgument {
  data?: string;
  schema?: z.ZodType;
}

const joined = (...parts: string[]) =>
  `/${parts
    .map((part) => part.replace(/^\/+|\/+$/g, ''))
    .filter((part) => part !== '')
    .join('/')}`;

/** All routes of one controller, in the order they are written. */
export function routesOf(controller: Type): Route[] {
  const prototype = controller.prototype as Record<string, () => unknown>;
  return Object.getOwnPropertyNames(prototype)
    .filter((name) => name !== 'constructor' && Reflect.hasMetadata(METHOD_METADATA, prototype[name]!))
    .map((handler) => routeOf(controller, handler, prototype[handler]!));
}

function routeOf(controller: Type, handler: string, target: () => unknown): Route {
  const method = RequestMethod[Reflect.getMetadata(METHOD_METADATA, target) as number]!;
  const args: Record<string, RouteArgument> = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, handler) ?? {};
  const given = (type: RouteParamtypes) =>
    Object.entries(args)
      .filter(([key]) => key.startsWith(`${type}:`))
      .map(([, argument]) => argument);
  const path = joined(Reflect.getMetadata(PATH_METADATA, controller), Reflect.getMetadata(PATH_METADATA, target));
  const paramSchemas = new Map(given(RouteParamtypes.PARAM).map(({ data, schema }) => [data, schema]));
  return {
    controller: controller.name,
    handler,
    method: method.toLowerCase(),
    path,
    status: Reflect.getMetadata(HTTP_CODE_METADATA, target) ?? (method === 'POST' ? 201 : 200),
    role: Reflect.getMetadata(ALLOW, target) ?? Reflect.getMetadata(ALLOW, controller),
    answer: Reflect.getMetadata(ANSWERS, target),
    idempotent: Reflect.hasMetadata(IDEMPOTENT, target),
    body: given(RouteParamtypes.BODY).find(({ data }) => data === undefined)?.schema,
    query: given(RouteParamtypes.QUERY).find(({ data }) => data === undefined)?.schema as z.ZodObject | undefined,
    params: Object.fromEntries([...path.matchAll(/:(\w+)/g)].map(([, name]) => [name!, paramSchemas.get(name!)])),
  };
}
