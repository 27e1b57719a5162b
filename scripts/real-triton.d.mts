export type FoundTriton =
  | {
      found: true;
      version: string;
      command: string;
      /** Of the environment that Python models run in. */
      python: string;
      args: string[];
      env: { PATH: string; LD_LIBRARY_PATH: string };
      backends: string;
      caches: string;
      reason?: undefined;
    }
  | { found: false; reason: string; command?: undefined; python?: undefined };

export interface TritonCommandOptions {
  repository: string;
  httpPort: number;
  grpcPort: number;
  metricsPort: number;
  id?: string;
  tools?: string;
  /** Further flags, e.g. `--disable-auto-complete-config`: complete configurations then load a second faster. */
  extra?: string[];
}

export function toolsFolder(env?: Record<string, string | undefined>): string;
export function missingForTriton(): string | undefined;
export function findTriton(options?: { tools?: string }): FoundTriton;
export function tritonCommand(options: TritonCommandOptions): {
  command: string;
  args: string[];
  env: Record<string, string | undefined>;
};
export function installTriton(options?: { tools?: string; say?: (line: string) => void }): Promise<FoundTriton>;
