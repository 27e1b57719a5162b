import { AddWork1790000000000 } from './1790000000000-add-work.ts';
import { AddRegistry1790000000100 } from './1790000000100-add-registry.ts';
import { AddFleet1790000000200 } from './1790000000200-add-fleet.ts';
import { AddEndpoints1790000000300 } from './1790000000300-add-endpoints.ts';
import { AddAccess1790000000400 } from './1790000000400-add-access.ts';
import { AddVariants1790000000500 } from './1790000000500-add-variants.ts';
import { AddCapacity1790000000510 } from './1790000000510-add-capacity.ts';
import { AddUses1790000000520 } from './1790000000520-add-uses.ts';
import { AddTruth1790000000530 } from './1790000000530-add-truth.ts';
import { AddExternal1790000000540 } from './1790000000540-add-external.ts';
import { AddFileFacts1790000000550 } from './1790000000550-add-file-facts.ts';
import { AddScaleIndexes1790000000560 } from './1790000000560-add-scale-indexes.ts';
import { FillSpecDefaults1790000000600 } from './1790000000600-fill-spec-defaults.ts';
import { AddTraffic1790000000690 } from './1790000000690-add-traffic.ts';
import { AddRollouts1790000000700 } from './1790000000700-add-rollouts.ts';
import { AddEvidence1790000000710 } from './1790000000710-add-evidence.ts';
import { AddSplits1790000000720 } from './1790000000720-add-splits.ts';
import { AddWebhooks1790000000730 } from './1790000000730-add-webhooks.ts';
import { AddModules1790000000800 } from './1790000000800-add-modules.ts';
import { AddVersionProcessing1790000000810 } from './1790000000810-add-version-processing.ts';
import { AddPipelines1790000000820 } from './1790000000820-add-pipelines.ts';
import { WatchServers1790000000830 } from './1790000000830-watch-servers.ts';

/** Every change of the schema, oldest first. Add a new file; never edit one that has been released. */
export const migrations = [
  AddWork1790000000000,
  AddRegistry1790000000100,
  AddFleet1790000000200,
  AddEndpoints1790000000300,
  AddAccess1790000000400,
  AddVariants1790000000500,
  AddCapacity1790000000510,
  AddUses1790000000520,
  AddTruth1790000000530,
  AddExternal1790000000540,
  AddFileFacts1790000000550,
  AddScaleIndexes1790000000560,
  FillSpecDefaults1790000000600,
  AddTraffic1790000000690,
  AddRollouts1790000000700,
  AddEvidence1790000000710,
  AddSplits1790000000720,
  AddWebhooks1790000000730,
  AddModules1790000000800,
  AddVersionProcessing1790000000810,
  AddPipelines1790000000820,
  WatchServers1790000000830,
];
