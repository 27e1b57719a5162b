import type { DesiredModel, ResolvedEngine } from '@perch/contracts';
import type { ModelVariant } from '@perch/fleet';
import { heldName } from './resolve/needs.plan.ts';
import type { ConfigTexts } from './resolve/version.source.ts';

/** Where a Triton model came from, for who writes it out again. */
export interface Origin {
  /** Its name as people know it: of its folder, in its text, or of its Perch model. */
  folder: string;
  /** Number of its version folder. */
  version: number;
  /** The text that it brought and that says all; null: it brought none and needs none; undefined: there is more to say. */
  text: string | null | undefined;
}

/** One model folder of the repository that an export writes. */
export interface PlannedFolder {
  name: string;
  served: boolean;
  /** Number of its version folder. */
  version: number;
  /** Text of its config.pbtxt; null: it has none. */
  config: string | null;
  files: DesiredModel['files'];
}

interface Named {
  /** Under which servers hold it. */
  held: string;
  tritonModel: string;
  model: DesiredModel;
  name: string;
}

/**
 * The model folders that serve a variant without Perch. Names are those that people know: literal ones as code calls
 * them, else those of the folders the models came from. A text that a folder brought is given back as it stood, unless
 * there is more to say than it says.
 */
export function planExport(
  variant: ModelVariant,
  origins: ReadonlyMap<string, Origin>,
  texts: Pick<ConfigTexts, 'render' | 'renameSteps'>,
): PlannedFolder[] {
  const named = nameAll(variant, origins);
  const names = new Map(named.map(({ held, name }) => [held, name]));
  return named.map(({ held, tritonModel, model, name }) => {
    const origin = origins.get(tritonModel);
    const version = origin?.version ?? 1;
    return {
      name,
      served: held === variant.tritonModel,
      version,
      config: configOf(name, model, origin, names, texts),
      files: model.files.map((file) => ({ ...file, path: file.path.replace(/^1\//, `${version}/`) })),
    };
  });
}

function nameAll({ tritonModel, model, needs }: ModelVariant, origins: ReadonlyMap<string, Origin>): Named[] {
  const all = [
    { held: tritonModel, as: null, tritonModel, model },
    ...needs.map((need) => ({ ...need, held: heldName(need) })),
  ];
  const taken = new Set(all.flatMap(({ as }) => as ?? []));
  return all.map(({ held, as, ...one }) => {
    const wanted = origins.get(one.tritonModel)?.folder ?? one.tritonModel;
    let name = as ?? wanted;
    for (let count = 2; as === null && taken.has(name); count += 1) name = `${wanted}_${count}`;
    taken.add(name);
    return { ...one, held, name };
  });
}

function configOf(
  name: string,
  { engine }: DesiredModel,
  origin: Origin | undefined,
  names: ReadonlyMap<string, string>,
  texts: Pick<ConfigTexts, 'render' | 'renameSteps'>,
): string | null {
  const told = Object.values(engine.parameters).some((value) => names.has(value));
  const ownName = origin?.folder === name;
  if (!told && ownName && origin?.text !== undefined) return origin.text;
  return texts.render(name, renamed(engine, names, texts));
}

/** Settings that call other models by the names they have in the export. */
function renamed(
  engine: ResolvedEngine,
  names: ReadonlyMap<string, string>,
  texts: Pick<ConfigTexts, 'renameSteps'>,
): ResolvedEngine {
  const parameters = Object.fromEntries(
    Object.entries(engine.parameters).map(([key, value]) => [key, names.get(value) ?? value]),
  );
  if (engine.platform !== 'ensemble' || engine.config === null) return { ...engine, parameters };
  return { ...engine, parameters, config: texts.renameSteps(engine.config, names) };
}
