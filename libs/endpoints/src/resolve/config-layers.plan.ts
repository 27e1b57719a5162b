import type { EndpointSpec, EngineSpec } from '@perch/contracts';
import { backendOf } from './artifact.plan.ts';
import { LayoutFault } from './layout-fault.ts';
import type { ConfigSight } from './version.source.ts';

/** A configuration text and what it decides. */
export interface ConfigLayer {
  text: string;
  sight: ConfigSight;
}

/** Texts around our settings: what is `over` wins over them, they win over what is `under`. */
export interface ConfigLayers {
  over: ConfigLayer | null;
  under: ConfigLayer | null;
}

/** Settings that say nothing which a text could say as well. */
const besideTexts = new Set(['platform', 'formatPriority', 'config', 'folder', 'tensorrt', 'memoryBytes']);

/** Whether the endpoint gives settings that a text could say as well. */
export const hasSettings = (engine: EngineSpec): boolean =>
  Object.entries(engine).some(([key, value]) => value !== undefined && !besideTexts.has(key));

/**
 * The user's text wins over the settings, and these over the version's own text. A version's text alone, without settings
 * of the endpoint, is taken as it stands. Throws `LayoutFault` for a `version_policy` that nobody translated.
 */
export function configLayers(
  { model, engine }: Pick<EndpointSpec, 'model' | 'engine'>,
  user: ConfigLayer | null,
  own: ConfigLayer | null,
): ConfigLayers {
  if (!own) return { over: user, under: null };
  const bare = withoutPolicy(model, own);
  return user || hasSettings(engine) || saysOther(engine, own)
    ? { over: user, under: bare }
    : { over: bare, under: null };
}

/** A platform that the text contradicts is a setting that is to win over it. */
const saysOther = ({ platform }: EngineSpec, { sight }: ConfigLayer): boolean =>
  platform !== undefined && sight.platform !== undefined && backendOf(platform) !== backendOf(sight.platform);

/** A server holds each version as a model of its own, so which versions serve is the endpoint's to say; it must have said it. */
function withoutPolicy(model: EndpointSpec['model'], own: ConfigLayer): ConfigLayer {
  const { versionPolicy: policy, withoutPolicy: text } = own.sight;
  if (!policy || text === undefined) return own;
  const translated = policy.kind === 'latest' && policy.count <= 1;
  if (!translated && model.maxVersions === undefined && model.version === undefined)
    throw new LayoutFault(
      `config.pbtxt of the version has version_policy ${policyWords(policy)}: say how many versions are served with model.maxVersions (or one with model.version)`,
    );
  return { ...own, text };
}

const policyWords = ({ kind, count, versions }: NonNullable<ConfigSight['versionPolicy']>): string =>
  kind === 'latest' ? `latest ${count}` : kind === 'all' ? 'all' : `specific ${versions.join(', ')}`;
