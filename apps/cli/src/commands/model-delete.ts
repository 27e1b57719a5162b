import { AppError, type DeletedModel } from '@perch/contracts';
import { formatBytes } from '../duration.ts';
import { said } from '../output.ts';
import { parseReference } from '../reference.ts';
import type { Run } from '../verb.ts';

/** `nlp/minilm@3` deletes that version, `nlp/minilm` with `--all-versions` the model. */
export const run: Run = async (invocation, [text, version], options) => {
  const { project, name, number } = parseReference(text as string, version);
  if (number === 'latest')
    throw new AppError(
      'invalid',
      `model "${text}": name the version by its number; @latest may be another one by then`,
    );
  if (number === undefined && options['allVersions'] !== true)
    throw new AppError(
      'invalid',
      `model ${project}/${name}: name a version (${project}/${name}@3), or delete all of it with --all-versions`,
    );
  if (number !== undefined && options['allVersions'] === true)
    throw new AppError('invalid', `model "${text}": names a version, and --all-versions was given besides`);
  const client = await invocation.admin();
  const path = `/models/${encodeURIComponent(project)}/${encodeURIComponent(name)}`;
  const gone = await client.call<DeletedModel>(number === undefined ? path : `${path}/versions/${number}`, {
    method: 'DELETE',
  });
  const thing =
    number === undefined ? `${project}/${name} (${gone.versions.length} versions)` : `${project}/${name}@${number}`;
  const later = `its bytes (${formatBytes(gone.sizeBytes)}) go with perch gc once they lie a day`;
  return said(gone, `${thing} is deleted; ${later}. A number is never given again.`);
};
