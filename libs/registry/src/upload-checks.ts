import type { FileFacts, ManifestFile, Signature } from '@perch/contracts';

/** A version whose bytes are all there, about to become a draft. */
export interface UploadSight {
  files: readonly ManifestFile[];
  /** Inputs and outputs of its ONNX graphs, by path. */
  graphs: ReadonlyMap<string, Signature>;
  /** A text file of it. Throws `too_large` beyond `mostBytes`, 256 KiB when left out. */
  text(path: string, mostBytes?: number): Promise<string>;
}

export interface UploadFault {
  path: string;
  message: string;
}

/** What a version is judged by when its upload is completed; any fault leaves it uploading. */
export interface UploadChecks {
  faults(upload: UploadSight): Promise<UploadFault[]>;
}
export const UPLOAD_CHECKS = Symbol('upload checks');

/** Takes everything. */
export const noChecks: UploadChecks = { faults: () => Promise.resolve([]) };

/** What the files of a version told. */
export interface Inspection {
  signature: Signature | null;
  /** Null: nothing worth keeping. */
  facts: FileFacts | null;
  faults: UploadFault[];
}
