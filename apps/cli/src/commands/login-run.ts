import { readFile } from 'node:fs/promises';
import { type Actor, AppError } from '@perch/contracts';
import { AdminClient } from '../admin.client.ts';
import type { Invocation } from '../invocation.ts';
import { said } from '../output.ts';
import type { Options, Run } from '../verb.ts';

export const run: Run = async (invocation, [given], options) => {
  const url = (given ?? invocation.settings.url ?? (await ask(invocation, 'Address of the control plane', false)))
    .trim()
    .replace(/\/+$/, '');
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new AppError('invalid', `"${url}" is not an address such as https://perch.example.org`);
  const apiKey = await keyOf(invocation, options);
  const name = options['name'] ?? new URL(url).hostname;
  const routerUrl = options['router']?.replace(/\/+$/, '') ?? invocation.settings.routerUrl;
  const context = { url, ...(routerUrl ? { routerUrl } : {}), ...(apiKey ? { apiKey } : {}) };
  let who: Actor | undefined;
  if (options['check'] !== false) {
    const client = new AdminClient(context);
    who = await client.call<Actor>('/whoami').finally(() => client.close());
  }
  await invocation.contexts.save(name, context);
  const { apiKey: _apiKey, ...shown } = context;
  return said(
    { name, ...shown, ...who },
    `Context ${name} is saved and current${who ? `: you are ${who.name} (${who.role})` : ''}.`,
  );
};

async function keyOf(invocation: Invocation, options: Options): Promise<string> {
  const file = options['keyFile'] as string | undefined;
  if (options['key']) return options['key'];
  if (file === '-') {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString('utf8').trim();
  }
  if (file)
    return (
      await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
        throw new AppError('not_found', `--key-file ${file}: ${error.code}`);
      })
    ).trim();
  return invocation.settings.apiKey ?? (await ask(invocation, 'API key', true));
}

async function ask(invocation: Invocation, message: string, secret: boolean): Promise<string> {
  if (!invocation.interactive)
    throw new AppError('invalid', `${message}: not given, and nobody to ask; see perch login --help`);
  const { isCancel, password, text } = await import('@clack/prompts');
  const answer = await (secret ? password({ message }) : text({ message, placeholder: 'http://127.0.0.1:8080' }));
  if (isCancel(answer)) throw new AppError('cancelled', 'nothing was saved');
  return answer;
}
