import { asFloats, defineProcessing, float32, invalid } from '@perch/processing';

/** The same two hooks. What they share is the call's own state, as there. */
export default defineProcessing({
  preprocess(body: { x0: number; x1: number }, _loaded, ctx) {
    if (typeof body?.x0 !== 'number' || typeof body.x1 !== 'number')
      throw invalid('x0 and x1 are wanted, both numbers');
    ctx.state['asked'] = body.x0 + body.x1;
    return { inputs: { x: float32([body.x0, body.x1], [1, 2]) } };
  },
  postprocess(outputs, _state, ctx) {
    const [y] = asFloats(outputs['y']!);
    ctx.observe('y', y!);
    return { y: [Number(y! > 0.5)], asked: ctx.state['asked'] };
  },
});
