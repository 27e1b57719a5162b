export type FoundS3 =
  | { found: true; command: string; version: string; reason?: undefined }
  | { found: false; reason: string; command?: undefined };

export interface RealS3 {
  endpoint: string;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Where the bucket's objects lie, a file each. */
  dataFolder: string;
  signal(signal: NodeJS.Signals): void;
  /** Ends the server, by default with SIGKILL; its data stay. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Brings it back on the same port with the same data. */
  restart(): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

export function missingForS3(): string | undefined;
export function findS3(options?: { tools?: string }): FoundS3;
export function installS3(options?: { tools?: string; say?: (line: string) => void }): FoundS3;
export function startS3(options?: { tools?: string; folder?: string }): Promise<RealS3>;
/** Settings of a control plane that is to use this server. */
export function s3Environment(
  server: Pick<RealS3, 'endpoint' | 'bucket' | 'accessKeyId' | 'secretAccessKey'>,
): Record<string, string>;
