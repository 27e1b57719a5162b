import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { AuthenticationService } from '@perch/access';
import { AppError, type Role } from '@perch/contracts';
import { ALLOW, atLeast, type KnownRequest, requireEndpoint, requireProject } from './http.ts';

/** The key of `Authorization: Bearer <key>`; undefined: none was sent. */
export function bearerOf(header: string | undefined): string | undefined {
  return /^Bearer +(\S{1,512}) *$/i.exec(header ?? '')?.[1];
}

/** Routes below /api/v1: who calls, whether the role allows it, whether the path lies in the scopes of the key. */
@Injectable()
export class KeyGuard implements CanActivate {
  constructor(
    private readonly authentication: AuthenticationService,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<KnownRequest>();
    if (!request.routeOptions.url?.startsWith('/api/v1/')) return true;
    const secret = bearerOf(request.headers.authorization);
    if (!secret)
      throw new AppError('unauthenticated', 'this route wants a key: send the header "Authorization: Bearer <key>"');
    const actor = await this.authentication.authenticate(secret);
    const wanted = this.reflector.getAllAndOverride<Role | undefined>(ALLOW, [
      context.getHandler(),
      context.getClass(),
    ]);
    if (!atLeast(actor.role, wanted ?? 'admin'))
      throw new AppError(
        'forbidden',
        `key ${actor.name} has the role ${actor.role}; this wants ${wanted ?? 'admin'} or more`,
      );
    const { project, endpoint, split } = (request.params ?? {}) as Partial<Record<string, string>>;
    if (project !== undefined) requireProject(actor, project);
    for (const name of [endpoint, split]) if (name !== undefined) requireEndpoint(actor, name);
    request.actor = actor;
    return true;
  }
}
