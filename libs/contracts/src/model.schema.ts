import { z } from 'zod';
import { manifestFile, manifestFiles } from './manifest.schema.ts';
import { modelName, projectName, sha256, tag } from './names.schema.ts';
import { processingSpec } from './processing-spec.schema.ts';
import { signature } from './tensor.schema.ts';

export const versionStates = ['uploading', 'draft', 'published', 'archived'] as const;
export const versionState = z.enum(versionStates);
export type VersionState = z.infer<typeof versionState>;

const text = z.string().max(4_000);
/** Where a version came from; free text except the keys, so that it can be searched. */
export const lineageFields = z
  .strictObject({
    sourceUri: text.optional(),
    gitCommit: text.optional(),
    trainingRun: text.optional(),
    dataset: text.optional(),
    parent: text.optional(),
  })
  .meta({ id: 'LineageFields' });
export const metadata = z.record(z.string().regex(/^[A-Za-z0-9._-]{1,64}$/), z.string().max(1_000));

/**
 * Other models that a version's own code calls on the same server, by the name the code calls. A plain `project/model`
 * is held under that literal name; `as: parameter` hands the Perch name to the code as parameter `PERCH_MODEL_<name>`.
 */
export const usesName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/, 'a used name is 1 to 128 of A-Z a-z 0-9 _ . -')
  .refine((name) => !/-v\d{1,10}-[0-9a-f]{12}$/.test(name), 'a used name must not look like one that Perch gives');
const modelPath = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\/[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'a used model is project/model');
const usedModel = z.union(
  [
    modelPath,
    z.strictObject({
      model: modelPath,
      version: z.number().int().min(1).optional(),
      as: z.enum(['literal', 'parameter']).default('literal'),
    }),
  ],
  { error: 'a used model is project/model, or {model, version, as} with as literal or parameter' },
);
export const versionUses = z
  .record(z.string(), usedModel)
  .superRefine((uses, ctx) => {
    for (const name of Object.keys(uses))
      for (const { message } of usesName.safeParse(name).error?.issues ?? [])
        ctx.addIssue({ code: 'custom', path: [name], message });
  })
  .meta({ id: 'VersionUses' });
export type VersionUses = z.infer<typeof versionUses>;

/** One used model with nothing left out: the newest published version of it, or a fixed one. */
export interface UsedModel {
  model: string;
  version?: number;
  as: 'literal' | 'parameter';
}
/** Uses in the one form they are stored and shown in, in order of their names. */
export const plainUses = (uses: VersionUses | undefined): Record<string, UsedModel> =>
  Object.fromEntries(
    Object.entries(uses ?? {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, use]) => {
        const { model, version, as } = typeof use === 'string' ? { model: use, as: 'literal' as const } : use;
        return [name, { model, ...(version === undefined ? {} : { version }), as }];
      }),
  );

const describing = {
  description: text.optional(),
  metadata: metadata.optional(),
  lineage: lineageFields.optional(),
};

export const frameworks = [
  'onnx',
  'tensorrt',
  'pytorch',
  'tensorflow',
  'openvino',
  'python',
  'ensemble',
  'custom',
] as const;
export const framework = z.enum(frameworks);
export type Framework = z.infer<typeof framework>;

export const createVersion = z
  .strictObject({
    files: manifestFiles,
    framework: framework.optional(),
    tags: z.array(tag).max(64).optional(),
    uses: versionUses.optional(),
    /** Of endpoints that do not say their own. */
    processing: processingSpec.optional(),
    /** Somebody trusts the pickled model that the Python template is to load; kept in the audit log. */
    allowPickle: z.literal(true).optional(),
    ...describing,
  })
  .meta({ id: 'CreateVersion' });
export type CreateVersion = z.infer<typeof createVersion>;

/** Registers an object that already exists elsewhere: fetched, hashed and stored by the control plane. */
export const createVersionFromUrl = z
  .strictObject({
    url: z.url({ protocol: /^(https?|s3)$/ }),
    path: z.string().optional(),
    sha256: sha256.optional(),
    framework: framework.optional(),
    tags: z.array(tag).max(64).optional(),
    uses: versionUses.optional(),
    /** Of endpoints that do not say their own. */
    processing: processingSpec.optional(),
    ...describing,
  })
  .meta({ id: 'CreateVersionFromUrl' });
export type CreateVersionFromUrl = z.infer<typeof createVersionFromUrl>;

/** How one missing blob is to be sent. A `put` carries the signed checksum header; `multipart` lists parts not yet there. */
export const blobUpload = z
  .object({
    sha256,
    size: z.number().int(),
    method: z.enum(['put', 'multipart']),
    url: z.string().optional(),
    headers: z.record(z.string(), z.string()).optional(),
    uploadId: z.string(),
    partSize: z.number().int().optional(),
    partCount: z.number().int().optional(),
    parts: z.array(z.object({ partNumber: z.number().int(), url: z.string() })).optional(),
    partsDone: z.array(z.number().int()).optional(),
    expiresAt: z.string(),
  })
  .meta({ id: 'BlobUpload' });
export type BlobUpload = z.infer<typeof blobUpload>;

/** What the files of a version told by themselves when its upload was completed, by path. */
export const fileFacts = z
  .object({
    /** `signature` of graphs that are not the version's main one (composing models of an ensemble). */
    onnx: z
      .record(z.string(), z.object({ opset: z.number().int(), ir: z.number().int(), signature: signature.optional() }))
      .optional(),
    /** Of each TensorRT plan the version that built it; null: the file does not tell. */
    tensorrt: z.record(z.string(), z.object({ version: z.string().nullable() })).optional(),
  })
  .meta({ id: 'FileFacts' });
export type FileFacts = z.infer<typeof fileFacts>;

export const version = z
  .object({
    id: z.string(),
    project: projectName,
    name: modelName,
    number: z.number().int(),
    state: versionState,
    manifestDigest: sha256,
    files: z.array(manifestFile).optional(),
    sizeBytes: z.number(),
    framework: framework.nullable(),
    signature: signature.nullable(),
    /** Absent: nothing was found, or an earlier release took the upload. */
    facts: fileFacts.optional(),
    tags: z.array(z.string()),
    description: z.string(),
    metadata: z.record(z.string(), z.string()),
    lineage: lineageFields,
    uses: versionUses.optional(),
    /** Given at upload, its module by number; absent: none. */
    processing: processingSpec.optional(),
    author: z.string(),
    createdAt: z.string(),
    publishedAt: z.string().nullable(),
  })
  .meta({ id: 'Version' });
export type Version = z.infer<typeof version>;

/** Answer to creating a version, and to asking again how to go on with it (resume). */
export const versionUpload = z.object({ version, missing: z.array(blobUpload) }).meta({ id: 'VersionUpload' });
export type VersionUpload = z.infer<typeof versionUpload>;

export const changeTags = z
  .strictObject({ add: z.array(tag).max(64).default([]), remove: z.array(tag).max(64).default([]) })
  .meta({ id: 'ChangeTags' });
export type ChangeTags = z.infer<typeof changeTags>;
export const describeVersion = z.strictObject(describing).meta({ id: 'DescribeVersion' });
export type DescribeVersion = z.infer<typeof describeVersion>;

export const model = z
  .object({
    id: z.string(),
    project: projectName,
    name: modelName,
    latestVersion: z.number().int().nullable(),
    latestPublished: z.number().int().nullable(),
    versions: z.number().int(),
    tags: z.array(z.string()),
    createdAt: z.string(),
  })
  .meta({ id: 'Model' });
export type Model = z.infer<typeof model>;

/** `metadata` is `key=value`, all given ones must hold; tags: all must be on one version. */
export const listModels = z.object({
  project: projectName.optional(),
  name: z.string().max(64).optional(),
  tag: z.union([tag, z.array(tag)]).optional(),
  metadata: z.union([z.string(), z.array(z.string())]).optional(),
  cursor: z.string().max(200).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
});
export type ListModels = z.infer<typeof listModels>;

export const downloadUrl = z
  .object({ path: z.string(), sha256, size: z.number(), url: z.string() })
  .meta({ id: 'DownloadUrl' });
export type DownloadUrl = z.infer<typeof downloadUrl>;
