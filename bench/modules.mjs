/** Modules written by hand, one that doubles and one that does whatever a module may do wrong; and a model that echoes. */
import { createHash } from 'node:crypto';

const hookNames = ['load', 'preprocess', 'process', 'postprocess', 'unload'];

/** A module of these hooks, as in the object given to `defineProcessing`; each `number` is a module of its own, with workers of its own. */
export function moduleOf(control, name, number, hooks) {
  const text = `import { defineProcessing, float32, asFloat32, invalid } from '@perch/processing';\nexport default defineProcessing({${hooks}});\n`;
  const bytes = Buffer.from(`${text}// ${number}\n`);
  return {
    name,
    number,
    digest: createHash('sha256').update(bytes).digest('hex'),
    facts: { hooks: hookNames.filter((hook) => new RegExp(`\\b${hook}\\s*\\(`).test(hooks)), body: 'json' },
    files: [control.addBlob('module.mjs', bytes)],
  };
}

export const doubling = `
  preprocess(body) { return { inputs: { x: float32(body.x, [1, body.x.length]) }, carry: body.tag }; },
  postprocess(outputs, { carry }) { return { y: Array.from(asFloat32(outputs.y), (v) => v * 2), tag: carry }; },`;

/** Does as `body.do` says, else doubles. */
export const misbehaving = `
  preprocess(body, _loaded, ctx) {
    const inputs = { x: float32([1], [1, 1]) };
    switch (body.do) {
      case 'loop': for (;;);
      case 'loop later': return Promise.resolve().then(() => { for (;;); });
      case 'never': return new Promise(() => {});
      case 'heap': { const all = []; for (;;) all.push(new Array(1e5).fill(all.length + 0.5)); }
      case 'throw': throw new TypeError('no such thing');
      case 'refuse': throw invalid('field "n" is missing');
      case 'exit': process.exit(7);
      case 'crash': setTimeout(() => { throw new Error('out of nowhere'); }, 1); return new Promise(() => {});
      case 'rejection': Promise.reject(new Error('nobody waits')); return { inputs };
      case 'pollution': Object.prototype.toJSON = () => 'spoilt'; Array.prototype.map = null; Promise.prototype.then = null; return { inputs };
      case 'buffers': { const all = []; for (;;) all.push(Buffer.alloc(32 << 20, 1)); }
      case 'file': return import('node:fs').then((fs) => ({ inputs, carry: fs.readFileSync('/etc/hostname', 'utf8') }));
      case 'write': return import('node:fs').then((fs) => fs.writeFileSync('/tmp/perch-module', 'x'));
      case 'network': return fetch('http://192.0.2.1/').then(() => ({ inputs }));
      case 'connection': return import('node:net').then((net) => net.connect(80, '192.0.2.1'));
      case 'command': return import('node:child_process').then((all) => all.execFileSync('true'));
      case 'environment': return { inputs, carry: process.env.HOME };
      default: return { inputs, carry: ctx.headers['user-agent'] };
    }
  },
  postprocess(outputs, { carry }) { return { y: Array.from(asFloat32(outputs.y), (v) => v * 2), carry }; },`;

/** What a model server answers whose models answer their own input, called `y`. */
export function echo(request, response, body) {
  const headLength = Number(request.headers['inference-header-content-length'] ?? body.length);
  const { inputs } = JSON.parse(body.subarray(0, headLength).toString());
  const outputs = inputs.map((one) => ({ ...one, name: 'y' }));
  const head = Buffer.from(JSON.stringify({ model_name: 'm', model_version: '1', outputs }));
  const headers = { 'inference-header-content-length': String(head.length), 'content-type': 'application/octet-stream' };
  response.writeHead(200, headers).end(Buffer.concat([head, body.subarray(headLength)]));
}
