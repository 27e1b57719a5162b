/** An endpoint as far as names go: which versions of its model it may serve (null: any). */
export interface NamedEndpoint {
  name: string;
  onlyVersion: number | null;
  /** What people call it; `endpoint` when left out. */
  kind?: string;
}

const versionLabel = /^[1-9][0-9]{0,9}$/;

/** `E/7` → `E` and 7; undefined when the last segment is no version number. */
export function splitVersionLabel(name: string): { parent: string; version: number } | undefined {
  const at = name.lastIndexOf('/');
  const label = name.slice(at + 1);
  return at > 0 && versionLabel.test(label) ? { parent: name.slice(0, at), version: Number(label) } : undefined;
}

/** Names whose creation must not run side by side with this one's: its own, and that of the endpoint it could hide. */
export const namesToLock = (name: string): string[] => [name, splitVersionLabel(name)?.parent ?? name].sort();

const canServe = (endpoint: NamedEndpoint, version: number) =>
  endpoint.onlyVersion === null || endpoint.onlyVersion === version;

/**
 * `/serve/E/7` finds the longest endpoint name first. So an endpoint `E/7` would hide version 7 of `E`: the two may not
 * stand side by side when `E` may ever serve its version 7. Answers the sentence that says so, or undefined.
 */
export function nameConflict(wanted: NamedEndpoint, others: readonly NamedEndpoint[]): string | undefined {
  const own = splitVersionLabel(wanted.name);
  const called = ({ kind = 'endpoint', name }: NamedEndpoint) => `${kind} ${name}`;
  for (const other of others) {
    if (own && other.name === own.parent && canServe(other, own.version))
      return `${called(wanted)} would hide version ${own.version} of ${called(other)}; choose another name`;
    const label = splitVersionLabel(other.name);
    if (label && label.parent === wanted.name && canServe(wanted, label.version))
      return `${called(other)} hides version ${label.version} of ${called(wanted)}; choose another name`;
  }
  return undefined;
}
