import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BoundModule } from '@perch/contracts';
import type { ControlStub } from './control-stub.mjs';

/** A module of these hooks, as in the object given to `defineProcessing`; each `number` is a module of its own. */
export function moduleOf(control: ControlStub, name: string, number: number, hooks: string): BoundModule;
/** Hooks that double what they are given. */
export const doubling: string;
/** Hooks that do as `body.do` says, else double. */
export const misbehaving: string;
/** What a model server answers whose models answer their own input, called `y`. */
export function echo(request: IncomingMessage, response: ServerResponse, body: Buffer): void;
