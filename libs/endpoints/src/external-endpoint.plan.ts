import {
  type BoundProcessing,
  type DesiredModel,
  digestOf,
  type EndpointSpec,
  type RouteTarget,
} from '@perch/contracts';
import { type Holding, heldVersionKey, type NewPlacement, type Pair, type Placement } from '@perch/fleet';
import type { WantedVersion } from './endpoint.plan.ts';
import type { DeploymentBody } from './resolve/engine.plan.ts';
import { processingIdentity, processingSource } from './resolve/processing.plan.ts';
import { selectVersions } from './resolve/version.plan.ts';

/** `gpu-box/resnet50`: the server of that name, else every server without an agent of the pool of that name. */
export function splitSource(source: string): { scope: string; model: string } {
  const at = source.indexOf('/');
  return { scope: source.slice(0, at), model: source.slice(at + 1) };
}

/** Whether a deployment is what a Triton holds by its owner's word: never placed, loaded or unloaded by us. */
export const isHeld = (tritonModel: string): boolean => tritonModel.includes('/');

/** What routers ask for: under its own name and version. */
export function routedModel(tritonModel: string): Pick<RouteTarget, 'tritonModel' | 'tritonVersion'> {
  if (!isHeld(tritonModel)) return { tritonModel };
  const { scope: name, model: version } = splitSource(tritonModel);
  return { tritonModel: name, tritonVersion: version };
}

const versionText = /^[1-9]\d{0,9}$/;
const maxVersion = 2_147_483_647;

/** Nothing of it is ours to say: the model server knows its configuration. */
const heldModel = (digest: string): DesiredModel => ({
  files: [],
  engine: {
    platform: '',
    backend: '',
    maxBatchSize: 0,
    dynamicBatching: null,
    instances: [],
    inputs: [],
    outputs: [],
    parameters: {},
    defaultModelFilename: null,
    config: null,
  },
  digest,
});

/**
 * Versions that an endpoint wants of what external Tritons hold, newest first: those ready on any of them, and those
 * that are being loaded again where they are deployed already. `known`: Triton models of its deployments.
 */
export function selectHeld(spec: EndpointSpec, holdings: readonly Holding[], known: ReadonlySet<string>): number[] {
  const { model } = splitSource(spec.model.source!);
  const versions = new Set<number>();
  for (const { version, state } of holdings) {
    if (!versionText.test(version) || Number(version) > maxVersion) continue;
    if (state === 'ready' || (state === 'loading' && known.has(heldVersionKey(model, version))))
      versions.add(Number(version));
  }
  const facts = [...versions].map((number) => ({ number, state: 'published' as const, tags: [] }));
  return selectVersions(spec.model, facts);
}

/** Equal as long as nothing that such a deployment is made from has changed. */
export const heldSourceDigest = ({ model: { source }, processing }: EndpointSpec, version: number): string =>
  digestOf({ source, version, processing: processingSource(processing ?? { builtin: 'passthrough' }) });

/** `processing`: what the spec says, bound. */
export function heldDeployment(spec: EndpointSpec, version: number, processing: BoundProcessing): WantedVersion {
  const { source } = spec.model;
  const tritonModel = heldVersionKey(splitSource(source!).model, String(version));
  const digest = digestOf({ source, version, processing: processingIdentity(processing) });
  const body: DeploymentBody = {
    variants: [
      {
        tritonModel,
        model: heldModel(digestOf({ held: tritonModel })),
        needs: [],
        requires: { backend: null, gpu: false, tensorrt: null, onnx: null, memoryBytes: null },
      },
    ],
    processing,
    processingFiles: [],
  };
  return { version, digest, sourceDigest: heldSourceDigest(spec, version), tritonModel, body, fault: null };
}

export interface HeldPlaces {
  place: NewPlacement[];
  leave: Pair[];
  short: Map<string, string>;
}

export interface HeldWorld {
  name: string;
  holdings: readonly Holding[];
  placements: readonly Placement[];
}

/**
 * Where deployments of held models are: wherever a server in service holds them. A server that does so no more, or is
 * drained, is left once another one serves (a forced drain does not wait); one that is silent may still answer.
 */
export function planHeldPlaces(
  { name, holdings, placements }: HeldWorld,
  deployments: readonly { id: string; tritonModel: string }[],
): HeldPlaces {
  const plan: HeldPlaces = { place: [], leave: [], short: new Map() };
  for (const { id: deployment, tritonModel } of deployments) {
    const { model: version } = splitSource(tritonModel);
    const holding = holdings.filter((one) => one.version === version);
    const serving = holding.filter(
      ({ state, drain, presence }) => state === 'ready' && drain === null && presence === 'live',
    );
    const placed = placements.filter((one) => one.deployment === deployment && one.state === 'active');
    for (const { server } of serving)
      if (!placed.some((one) => one.server === server))
        plan.place.push({ deployment, server, endpoint: name, tritonModel, needs: [] });
    const isServing = (server: string) => serving.some((one) => one.server === server);
    const others = placed.some((one) => isServing(one.server) && one.proved);
    for (const { server, presence } of placed) {
      if (isServing(server)) continue;
      const drain = holdings.find((one) => one.server === server)?.drain ?? null;
      const gone = presence === 'live' && !holding.some((one) => one.server === server);
      const strange = !holdings.some((one) => one.server === server);
      if (drain === 'forced' || (others && (drain !== null || gone || strange)))
        plan.leave.push({ deployment, server });
    }
    if (placed.length + serving.length === 0) plan.short.set(deployment, `no server in service holds ${tritonModel}`);
  }
  return plan;
}
