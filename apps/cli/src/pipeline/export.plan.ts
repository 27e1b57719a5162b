import { AppError, type EndpointExport, type EndpointSpec, type PipelineSpec } from '@perch/contracts';
import type { EnsemblePlan } from './ensemble.plan.ts';

type Model = EndpointExport['models'][number];

/** An endpoint that nodes ask, as it is written out. */
export interface ExportedEndpoint {
  spec: EndpointSpec;
  exported: EndpointExport;
}

const sameModel = (a: Model, b: Model) =>
  a.config === b.config &&
  JSON.stringify(a.files.map(({ path, sha256 }) => [path, sha256])) ===
    JSON.stringify(b.files.map(({ path, sha256 }) => [path, sha256]));

/** The folders of one repository. Throws `conflict` for two models of one name that are not the same. */
export function mergeModels(endpoints: readonly ExportedEndpoint[]): Model[] {
  const found = new Map<string, { model: Model; of: string }>();
  for (const { exported } of endpoints)
    for (const model of exported.models) {
      const other = found.get(model.name);
      if (other && !sameModel(other.model, model))
        throw new AppError(
          'conflict',
          `endpoints ${other.of} and ${exported.endpoint} bring different models of the name ${model.name}, which one repository cannot hold; export them one by one (perch endpoint export)`,
        );
      found.set(model.name, { model, of: exported.endpoint });
    }
  return [...found.values()].map(({ model }) => model);
}

/** Endpoints that a Perch makes over the exported repository once it is registered as the server `exported`. */
export const endpointDocuments = (endpoints: readonly ExportedEndpoint[]): object[] =>
  endpoints.map(({ spec, exported }) => ({
    kind: 'Endpoint',
    name: spec.name,
    model: { source: `exported/${exported.models.find(({ served }) => served)!.name}` },
    ...(spec.processing ? { processing: spec.processing } : {}),
    limits: spec.limits,
    access: spec.access,
    idempotent: spec.idempotent,
  }));

const code = (name: string) => `\`${name}\``;

/** How to serve the export, and what it does not do without Perch. */
export function exportReadme(
  spec: PipelineSpec,
  endpoints: readonly ExportedEndpoint[],
  modules: readonly string[],
  ensemble: EnsemblePlan & { name: string },
): string {
  const models = endpoints.map(({ exported }) => `${code(exported.endpoint)} (version ${exported.version})`);
  const backends = [...new Set(endpoints.flatMap(({ exported }) => exported.backends))].sort();
  const whole =
    'text' in ensemble
      ? [
          `The whole pipeline is the ensemble ${code(ensemble.name)}: a Triton alone serves it, tensors in and tensors out,`,
          `at \`/v2/models/${ensemble.name}/infer\`.`,
        ]
      : [
          `A Triton alone serves the models, not the pipeline: ${ensemble.why}.`,
          'For the pipeline itself put a Perch in front of that Triton, as below.',
        ];
  return [
    `# ${spec.name}`,
    '',
    `The models of ${models.join(', ') || 'no endpoint'} as one Triton repository, and the pipeline over them.`,
    '',
    ...whole,
    '',
    '```',
    'podman build --build-arg TRITON_IMAGE=<a Triton server image> -t models . && podman run -p 8000:8000 -p 8001:8001 models',
    '```',
    '',
    ...(backends.length > 0
      ? [`The server needs the back-end${backends.length === 1 ? '' : 's'} ${backends.map(code).join(', ')}.`, '']
      : []),
    '## With Perch',
    '',
    '```',
    'perch fleet register exported --url http://<the container>:8000 --grpc <the container>:8001 --wait',
    ...modules.map((module) => `perch processing add modules/${module} --name ${module.replace(/@\d+$/, '')}`),
    'perch apply -f endpoints.yaml -f pipeline.yaml --wait',
    '```',
    '',
    'Left out: files that built-in processing opens (`processing/`) belong to versions of a registry; an endpoint of an external',
    'Triton has none. Endpoints with such processing want their models imported instead:',
    '`perch model import --from triton . --project NAME`.',
    '',
  ].join('\n');
}
