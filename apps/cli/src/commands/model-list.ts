import type { Endpoint, Model, Split } from '@perch/contracts';
import { clearmlBlocks } from '../clearml/blocks.ts';
import { shownList, tableText } from '../output.ts';
import type { Run } from '../verb.ts';

/** The registry, then ClearML's three blocks: endpoints, auto-updating models, canaries. */
export const run: Run = async (invocation, [name], options) => {
  const client = await invocation.admin();
  const query = { project: options['project'], name, tag: options['tag'], metadata: options['metadata'] };
  const models = await client.list<Model>('/models', query);
  const searched = Object.values(query).some((value) => value !== undefined);
  const shown = shownList(
    models,
    [
      ['model', (model) => `${model.project}/${model.name}`],
      ['versions', (model) => model.versions],
      ['latest', (model) => model.latestVersion],
      ['published', (model) => model.latestPublished],
      ['tags', (model) => model.tags],
    ],
    searched ? 'No model fits.' : 'No models yet. Next: perch model upload project/name ./folder',
  );
  if (searched) return shown;
  const blocks = clearmlBlocks(await client.list<Endpoint>('/endpoints'), await client.list<Split>('/splits'));
  const text = () =>
    [
      shown.text(),
      ...blocks.map(({ title, rows, columns, none }) => `${title}\n${rows.length ? tableText(rows, columns) : none}`),
    ].join('\n\n');
  const value = { models, ...Object.fromEntries(blocks.map(({ key, rows }) => [key, rows])) };
  return { value, text };
};
