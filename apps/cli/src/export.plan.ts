import type { EndpointExport } from '@perch/contracts';

/** Serves the repository beside it; which image is the user's to say. */
export const containerText = `# Build: podman build --build-arg TRITON_IMAGE=<a Triton server image> -t models .
ARG TRITON_IMAGE
FROM \${TRITON_IMAGE}
COPY models /models
EXPOSE 8000 8001 8002
CMD ["tritonserver", "--model-repository=/models"]
`;

const quoted = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');

/** How to serve the export, and what it does not do without Perch. */
export function exportReadme(exported: EndpointExport): string {
  const { endpoint, project, model, version, models, backends, gpu, processing } = exported;
  const served = models.find((one) => one.served)!.name;
  const needed = models.filter((one) => !one.served).map(({ name }) => name);
  return [
    `# ${endpoint}`,
    '',
    `Version ${version} of ${project}/${model} as a Triton model repository. It serves without Perch.`,
    '',
    '```',
    'tritonserver --model-repository=models',
    'podman build --build-arg TRITON_IMAGE=<a Triton server image> -t models . && podman run -p 8000:8000 models',
    '```',
    '',
    `- Requests go to \`/v2/models/${served}/infer\` (Open Inference Protocol).`,
    ...(needed.length > 0 ? [`- ${quoted([served])} needs ${quoted(needed)}: keep them in one repository.`] : []),
    ...(backends.length > 0
      ? [`- The server needs the back-end${backends.length === 1 ? '' : 's'} ${quoted(backends)}.`]
      : []),
    ...(gpu ? ['- It needs a GPU.'] : []),
    '- Version folders of ensembles are empty and must stay: tools that leave out empty folders (git) lose them.',
    ...processingLines(processing),
    '',
    `Back into Perch: \`perch model import --from triton . --project ${project}\`.`,
    '',
  ].join('\n');
}

function processingLines({ builtin, module, files }: EndpointExport['processing']): string[] {
  if (builtin === 'passthrough' && files.length === 0) return [];
  const kept = files.length > 0 ? `; the files that it may open are in \`processing/\`` : '';
  return builtin === 'passthrough'
    ? [`- Files that processing may open are in \`processing/\`.`]
    : [
        `- With Perch the processing \`${builtin ?? module}\` turned requests into tensors; Triton takes the tensors themselves${kept}.`,
      ];
}
