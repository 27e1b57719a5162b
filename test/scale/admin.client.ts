/** The admin API, as a person's programs call it. */
export class AdminClient {
  constructor(
    private readonly addresses: readonly string[],
    private readonly key: string,
  ) {}

  private turn = 0;

  /** Sends JSON to one control plane after the other; throws with the problem's words unless the status is 2xx. */
  async must<T>(method: string, path: string, body?: unknown): Promise<T> {
    const address = this.addresses[this.turn++ % this.addresses.length];
    const response = await fetch(`${address}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }
}

/** Does `work` for 0 … count − 1, so many at a time. */
export async function inParallel(count: number, atOnce: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
}
