import { AppError, type CreateVersion } from '@perch/contracts';

/** Loading one of these runs whatever its author put in. */
const pickle = /\.(pkl|pickle|joblib|cloudpickle|sav)$/i;
/** Metadata `engine` of versions that the Python template serves. */
const engines = ['sklearn', 'xgboost', 'lightgbm'];

/** Names of pickled models that the Python template would load; throws `invalid` where that was not allowed in words. */
export function pickledModels({ files, metadata, allowPickle }: CreateVersion): string[] {
  if (!engines.includes(metadata?.['engine'] ?? '')) return [];
  const found = files.map(({ path }) => path).filter((path) => pickle.test(path));
  if (found.length > 0 && allowPickle !== true)
    throw new AppError(
      'invalid',
      `${found[0]} is a pickle: loading it runs any code that its author put in, on the model servers; wanted allowPickle (--allow-pickle) from somebody who trusts it`,
    );
  return found;
}
