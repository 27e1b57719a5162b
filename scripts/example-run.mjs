/** What an example does its work with: the CLI, the router over HTTP, and checks of answers. */

const near = (a, b, tolerance) =>
  typeof a === 'number' && typeof b === 'number'
    ? Math.abs(a - b) <= tolerance
    : Array.isArray(a) && Array.isArray(b)
      ? a.length === b.length && a.every((one, at) => near(one, b[at], tolerance))
      : JSON.stringify(a) === JSON.stringify(b);

export class ExampleRun {
  checks = 0;

  /** `folder`: of the example. `triton`: on the real one. */
  constructor(stack, { name, folder, triton }) {
    this.stack = stack;
    this.name = name;
    this.folder = folder;
    this.triton = triton;
  }

  /** Address of the router, and a key for it. */
  get url() {
    return this.stack.running.router;
  }
  get key() {
    return this.stack.key;
  }

  say(line) {
    console.log(`      ${line}`);
  }

  /** Runs one step and tells how long it took. */
  async step(words, work) {
    const begun = performance.now();
    try {
      const result = await work();
      console.log(`  ok  ${words.padEnd(60)} ${((performance.now() - begun) / 1_000).toFixed(2).padStart(7)} s`);
      return result;
    } catch (error) {
      console.log(`FAIL  ${words}`);
      throw error;
    }
  }

  /** One command of the CLI; its result as an object. */
  perch(...args) {
    return this.stack.perch(...args);
  }

  /** POST to the router, a body of JSON or a FormData; the reply's JSON. Throws on any status but 200. */
  async post(path, body, headers = {}) {
    const isForm = body instanceof FormData;
    const response = await fetch(this.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(isForm ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: isForm ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`POST ${path} answered ${response.status}: ${text.slice(0, 500)}`);
    return JSON.parse(text);
  }

  /** As `serve`, of what was added just now: waits while routers say that they load it. */
  async settled(endpoint, body, limitMs = 90_000) {
    for (const end = Date.now() + limitMs; ; ) {
      try {
        return await this.serve(endpoint, body);
      } catch (error) {
        if (!/answered 503/.test(error.message) || Date.now() > end) throw error;
      }
      await new Promise((again) => setTimeout(again, 250));
    }
  }

  serve(endpoint, body, headers) {
    return this.post(`/serve/${endpoint}`, body, headers);
  }

  /** Holds an answer against the known one; numbers within `tolerance`. */
  check(words, got, wanted, tolerance = 0) {
    if (!near(got, wanted, tolerance))
      throw new Error(`${words}: wanted ${JSON.stringify(wanted)}, got ${JSON.stringify(got)?.slice(0, 500)}`);
    this.checks += 1;
  }

  checkThat(words, holds, shown) {
    if (!holds) throw new Error(`${words} does not hold: ${JSON.stringify(shown)?.slice(0, 500)}`);
    this.checks += 1;
  }
}
