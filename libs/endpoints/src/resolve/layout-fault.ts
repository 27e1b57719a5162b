/** A sentence that says why a version cannot be served as its endpoint says; shown to people as the deployment's reason. */
export class LayoutFault extends Error {
  override readonly name: string = 'LayoutFault';
}

/** The graph itself contradicts what was said about it: known at once, so an endpoint that says so is refused. */
export class GraphFault extends LayoutFault {
  override readonly name = 'GraphFault';
}
