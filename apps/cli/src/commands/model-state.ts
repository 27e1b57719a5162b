import type { Version } from '@perch/contracts';
import { said } from '../output.ts';
import { versionText } from '../reference.ts';
import type { Run } from '../verb.ts';
import { findVersion, namedVersion, versionPath } from '../version.source.ts';
import { waitMs } from '../wait.ts';
import { waitServed } from './served.ts';

export type StateVerb = 'publish' | 'unpublish' | 'archive' | 'restore';

const done: Record<StateVerb, string> = {
  publish: 'is published',
  unpublish: 'is a draft again',
  archive: 'is archived',
  restore: 'is a draft again',
};

/** The four verbs that move a version between its states. */
export const runState =
  (verb: StateVerb): Run =>
  async (invocation, [model, number], options) => {
    const client = await invocation.admin();
    const version = await findVersion(client, namedVersion(model as string, number));
    const after = await client.call<Version>(`${versionPath(version)}/${verb}`, { method: 'POST' });
    const limitMs = waitMs(options['wait']);
    const served = limitMs === undefined ? '' : await waitServed(client, after, limitMs);
    return said(after, `${versionText(after)} ${done[verb]}.${served}`);
  };
