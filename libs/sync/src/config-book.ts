import { type DesiredModel, shownMessage } from '@perch/contracts';
import { renderModelConfig } from '@perch/triton/control';

/** The configuration of a model as text, or why there is none. */
export type RenderedConfig = { text: string } | { fault: string };

/** Configurations of desired models, rendered once for each digest and number of GPUs. */
export class ConfigBook {
  private readonly known = new Map<string, { key: string; config: RenderedConfig }>();

  render(name: string, model: DesiredModel, gpus: number): RenderedConfig {
    const key = `${model.digest} ${gpus}`;
    const known = this.known.get(name);
    if (known?.key === key) return known.config;
    const config = renderOnce(name, model, gpus);
    this.known.set(name, { key, config });
    return config;
  }

  keepOnly(models: ReadonlyMap<string, unknown>): void {
    for (const name of this.known.keys()) if (!models.has(name)) this.known.delete(name);
  }
}

function renderOnce(name: string, model: DesiredModel, gpus: number): RenderedConfig {
  try {
    return { text: renderModelConfig(name, model.engine, { gpus }) };
  } catch (error) {
    return { fault: shownMessage(error) };
  }
}
