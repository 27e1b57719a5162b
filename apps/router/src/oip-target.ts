import { readVersion } from '@perch/routing';

export type OipAction = '/infer' | '/ready' | '/config' | '/stats' | '';

export interface OipTarget {
  endpoint: string;
  version: number | undefined;
  action: OipAction;
}

const actions = new Set(['infer', 'ready', 'config', 'stats']);

function decode(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    const once = decodeURIComponent(text);
    // clients that escape what was escaped already (tritonclient does) send %252F
    return once.includes('%') ? decodeURIComponent(once) : once;
  } catch {
    return undefined;
  }
}

/**
 * What `/v2/models/<path>` means: read from its end, since an endpoint's name may hold slashes, escaped as they should be
 * or not. Undefined: not a path of the protocol.
 */
export function readOipTarget(path: string): OipTarget | undefined {
  const segments = path.split('/');
  let action: OipAction = '';
  if (segments.length > 1 && actions.has(segments.at(-1)!)) action = `/${segments.pop()!}` as OipAction;
  let version: number | undefined;
  if (segments.length > 2 && segments.at(-2) === 'versions') {
    version = readVersion(segments.pop()!);
    segments.pop();
    if (version === undefined) return undefined;
  }
  const endpoint = decode(segments.join('/'));
  return endpoint ? { endpoint, version, action } : undefined;
}
