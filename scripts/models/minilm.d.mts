export type MinilmVariant = 1 | 2;
/** Writes `model.onnx` and `tokenizer.json` into `outDir` (made when missing; the model must not exist there). */
export function buildMinilm(options: { outDir: string; variant?: MinilmVariant }): Promise<string>;
/** Folder with the built model, from the cache when it is there; treat it as read-only. */
export function minilmFolder(variant?: MinilmVariant): Promise<string>;
