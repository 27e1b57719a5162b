import { AppError, modelName, projectName } from '@perch/contracts';

export interface ModelReference {
  project: string;
  name: string;
}
export interface VersionReference extends ModelReference {
  /** undefined: none was named. */
  number: number | 'latest' | undefined;
}

const wanted = 'wants project/name, project/name@3 or project/name@latest';

/** `nlp/minilm`, `nlp/minilm@3` (also `:3` and `/3`), `nlp/minilm@latest`; `version` is a second argument. */
export function parseReference(text: string, version?: string): VersionReference {
  const match = /^([^/@:]+)\/([^/@:]+)(?:[@:/](.+))?$/.exec(text.trim());
  const [, project, name, label] = match ?? [];
  if (!project || !name || !projectName.safeParse(project).success || !modelName.safeParse(name).success)
    throw new AppError('invalid', `model "${text}": ${wanted}; names are of A-Z a-z 0-9 . _ -`);
  if (label !== undefined && version !== undefined && label !== version)
    throw new AppError('invalid', `model "${text}" names version ${label}, and ${version} was given besides`);
  return { project, name, number: parseNumber(label ?? version, text) };
}

function parseNumber(label: string | undefined, text: string): VersionReference['number'] {
  if (label === undefined || label === 'latest') return label;
  const digits = /^v?([1-9]\d{0,9})$/.exec(label)?.[1];
  if (!digits) throw new AppError('invalid', `model "${text}", version "${label}": ${wanted}`);
  return Number(digits);
}

export const parseModel = (text: string): ModelReference => {
  const { project, name, number } = parseReference(text);
  if (number !== undefined) throw new AppError('invalid', `model "${text}": wants project/name without a version here`);
  return { project, name };
};

/** `key=value` pairs, as `--metadata` and `--option` take them. */
export function parsePairs(pairs: readonly string[] | undefined, thing: string): Record<string, string> {
  const result: Record<string, string> = {};
  for (const pair of pairs ?? []) {
    const at = pair.indexOf('=');
    if (at < 1) throw new AppError('invalid', `${thing}: wants key=value, got "${pair}"`);
    result[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return result;
}

export const versionText = (version: { project: string; name: string; number: number }): string =>
  `${version.project}/${version.name}@${version.number}`;
