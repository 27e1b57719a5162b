import { formatBytes } from './duration.ts';

/** Progress is for a person at a terminal; elsewhere it is silent. */
export interface Progress {
  /** So many more bytes of the whole are done; less than nothing when a part is sent again. */
  add(bytes: number): void;
  end(): void;
}

const silent: Progress = { add: () => undefined, end: () => undefined };

export async function startProgress(label: string, totalBytes: number, show: boolean): Promise<Progress> {
  if (!show || !process.stderr.isTTY || totalBytes === 0) return silent;
  const { default: ora } = await import('ora');
  const spinner = ora({ stream: process.stderr, text: label }).start();
  const begun = Date.now();
  let done = 0;
  return {
    add: (bytes) => {
      done += bytes;
      const perSecond = (done * 1_000) / Math.max(1, Date.now() - begun);
      spinner.text = `${label}  ${bar(done / totalBytes)} ${formatBytes(done)} of ${formatBytes(totalBytes)}, ${formatBytes(Math.round(perSecond))}/s`;
    },
    end: () => void spinner.stop(),
  };
}

function bar(share: number): string {
  const full = Math.round(Math.max(0, Math.min(1, share)) * 20);
  return `[${'#'.repeat(full)}${'.'.repeat(20 - full)}] ${Math.floor(Math.min(1, share) * 100)} %`;
}
