import { namedPolicies, type PolicyReference } from '@perch/contracts';
import { readSpecs } from '../spec/spec-file.source.ts';

/**
 * `--policy`: a name, or a YAML or JSON file with what differs from `default`; what it holds is checked by the control
 * plane. Undefined: the endpoint's own.
 */
export async function policyOption(text: string | undefined): Promise<PolicyReference | undefined> {
  if (text === undefined || Object.hasOwn(namedPolicies, text)) return text as PolicyReference | undefined;
  const [document] = await readSpecs(text);
  return document?.spec as PolicyReference | undefined;
}
