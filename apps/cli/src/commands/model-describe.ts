import { AppError, type DescribeVersion, type Version } from '@perch/contracts';
import { said } from '../output.ts';
import { parsePairs, versionText } from '../reference.ts';
import type { Options, Run } from '../verb.ts';
import { findVersion, namedVersion, versionPath } from '../version.source.ts';

/** Description, metadata and lineage as flags give them; undefined where nothing was given. */
export function describingOf(options: Options): DescribeVersion {
  const given = {
    sourceUri: options['sourceUri'],
    gitCommit: options['gitCommit'],
    trainingRun: options['trainingRun'],
    dataset: options['dataset'],
    parent: options['parent'],
  };
  const lineage = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return {
    ...(options['description'] === undefined ? {} : { description: options['description'] }),
    ...(options['metadata'] ? { metadata: parsePairs(options['metadata'], '--metadata') } : {}),
    ...(Object.keys(lineage).length > 0 ? { lineage } : {}),
  };
}

export const run: Run = async (invocation, [model, number], options) => {
  const changes = describingOf(options);
  if (Object.keys(changes).length === 0)
    throw new AppError('invalid', 'nothing to change: give --description, --metadata or a lineage flag');
  const client = await invocation.admin();
  const version = await findVersion(client, namedVersion(model as string, number));
  const after = await client.call<Version>(versionPath(version), { method: 'PATCH', body: changes });
  return said(after, `${versionText(after)} is described.`);
};
