import { Injectable } from '@nestjs/common';
import { AppError, type RolloutSimulation, type SimulateRollout } from '@perch/contracts';

/** What a policy would do at an endpoint's rates, before anything starts. */
@Injectable()
export class SimulationService {
  /** What the wish leaves out is measured. Throws `not_found`. */
  async simulate(_endpoint: string, _wish: SimulateRollout): Promise<RolloutSimulation> {
    throw new AppError('not_available_yet', 'rollouts cannot be simulated yet');
  }
}
