import { type Model, plainUses, type Version } from '@perch/contracts';
import { formatAge, formatBytes } from '../duration.ts';
import { factsText, type Shown, shownFacts, tableText } from '../output.ts';
import { parseReference, versionText } from '../reference.ts';
import { processingText } from '../spec/processing-text.plan.ts';
import { useText } from '../upload/uses.plan.ts';
import type { Run } from '../verb.ts';
import { findVersion } from '../version.source.ts';

export const run: Run = async (invocation, [model, number]) => {
  const client = await invocation.admin();
  const reference = parseReference(model as string, number);
  if (reference.number !== undefined) return shownVersion(await findVersion(client, reference));
  const path = `/models/${reference.project}/${reference.name}`;
  const found = await client.call<Model>(path);
  const versions = (await client.list<Version>(`${path}/versions`)).sort((a, b) => b.number - a.number);
  return shownModel(found, versions);
};

function shownModel(model: Model, versions: readonly Version[]): Shown {
  const now = Date.now();
  const facts = factsText([
    ['model', `${model.project}/${model.name}`],
    ['latest', model.latestVersion],
    ['latest published', model.latestPublished],
  ]);
  const table = tableText(versions, [
    ['version', (version) => version.number],
    ['state', (version) => version.state],
    ['size', (version) => formatBytes(version.sizeBytes)],
    ['tags', (version) => version.tags],
    ['by', (version) => version.author],
    ['made', (version) => formatAge(version.createdAt, now)],
    ['description', (version) => version.description.split('\n')[0]?.slice(0, 60)],
  ]);
  return { value: { ...model, items: versions }, text: () => `${facts}\n\n${table}` };
}

const signatureText = (tensors: { name: string; datatype: string; shape: number[] }[] | undefined) =>
  tensors?.map(({ name, datatype, shape }) => `${name} ${datatype}[${shape.join(',')}]`);

function shownVersion(version: Version): Shown {
  const facts = shownFacts(version, [
    ['version', versionText(version)],
    ['id', version.id],
    ['state', version.state],
    ['size', formatBytes(version.sizeBytes)],
    ['framework', version.framework],
    ['tags', version.tags],
    ['description', version.description],
    ...Object.entries(version.metadata).map(([key, value]) => [`metadata ${key}`, value] as const),
    ...Object.entries(version.lineage).map(([key, value]) => [`lineage ${key}`, value] as const),
    ...Object.entries(plainUses(version.uses)).map(([name, use]) => ['uses', useText(name, use)] as const),
    ['processing', version.processing && processingText(version.processing)],
    ['inputs', signatureText(version.signature?.inputs)],
    ['outputs', signatureText(version.signature?.outputs)],
    ['manifest', version.manifestDigest],
    ['made', `${version.createdAt} by ${version.author}`],
    ['published', version.publishedAt],
  ]);
  const files = version.files ?? [];
  const table = tableText(files, [
    ['file', (file) => file.path],
    ['size', (file) => formatBytes(file.size)],
    ['sha256', (file) => file.sha256],
  ]);
  return { value: version, text: () => `${facts.text()}\n\n${table}` };
}
