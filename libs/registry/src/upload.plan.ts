/** Bytes up to which a file is one PUT whose SHA-256 the store itself checks. */
export const singlePutBytes = 32 * 1024 ** 2;
const smallestPartBytes = 16 * 1024 ** 2;
const mostParts = 1_000;
const mebibyte = 1024 ** 2;

export interface PartPlan {
  partSize: number;
  partCount: number;
}

/** Null: a single PUT. Parts grow with the file, so that one answer can hold the URLs of all of them. */
export function planParts(sizeBytes: number): PartPlan | null {
  if (sizeBytes <= singlePutBytes) return null;
  const partSize = Math.max(smallestPartBytes, Math.ceil(sizeBytes / mostParts / mebibyte) * mebibyte);
  return { partSize, partCount: Math.ceil(sizeBytes / partSize) };
}

export const partBytes = (sizeBytes: number, plan: PartPlan, partNumber: number): number =>
  partNumber < plan.partCount ? plan.partSize : sizeBytes - plan.partSize * (plan.partCount - 1);

/** Numbers of the parts that arrived whole; one of another size counts as not there and is sent again. */
export function donePartNumbers(
  sizeBytes: number,
  plan: PartPlan,
  stored: readonly { partNumber: number; sizeBytes: number }[],
): number[] {
  return stored
    .filter(({ partNumber }) => partNumber >= 1 && partNumber <= plan.partCount)
    .filter((part) => part.sizeBytes === partBytes(sizeBytes, plan, part.partNumber))
    .map(({ partNumber }) => partNumber)
    .sort((a, b) => a - b);
}
