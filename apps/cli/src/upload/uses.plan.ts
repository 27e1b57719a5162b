import { AppError, parseWith, plainUses, type UsedModel, type VersionUses, versionUses } from '@perch/contracts';

const wanted = 'wants name=project/model, name=project/model:3 or name=project/model,as=parameter';

/** `--uses`: the models that a version's code calls, by the names it calls them. Throws `invalid` that shows the form. */
export function usesOf(texts: readonly string[] | undefined): VersionUses | undefined {
  if (!texts || texts.length === 0) return undefined;
  const uses: Record<string, unknown> = {};
  for (const text of texts) {
    const match = /^([^=,]+)=([^,:=@]+)(?:[:@](\d+))?(?:,as=([a-z]+))?$/.exec(text.trim());
    if (!match) throw new AppError('invalid', `--uses "${text}": ${wanted}`);
    const [, name, model, version, as] = match;
    if (uses[name!] !== undefined) throw new AppError('invalid', `--uses: ${name} is given twice`);
    uses[name!] = { model, ...(version ? { version: Number(version) } : {}), ...(as ? { as } : {}) };
  }
  return plainUses(parseWith(versionUses, uses, '--uses'));
}

/** One use in words, as `perch model show` has it. */
export const useText = (name: string, { model, version, as }: UsedModel): string =>
  `${name} = ${model}${version === undefined ? '' : `@${version}`}${as === 'parameter' ? ` (parameter PERCH_MODEL_${name})` : ''}`;
