import type { EndpointSpec, WhyStep } from '@perch/contracts';
import { defaultMaxVersions, selectVersions, type VersionFacts } from '../resolve/version.plan.ts';
import { okStep, splitNaming, type WhyFacts } from './why-facts.ts';

const quoted = (tags: readonly string[]) => tags.join(', ');

/** Which part of the rule a complete version does not fulfil; undefined: all by itself it would. */
function unfulfilled(model: EndpointSpec['model'], { number, state, tags }: VersionFacts, endpoint: string) {
  const { tags: wanted, tagMatch, published } = model.select ?? { tags: [], tagMatch: 'all', published: true };
  const name = `${model.project}/${model.name}`;
  const named = model.select?.versions;
  if (named && !named.includes(number))
    return {
      message: `the rule names versions ${named.join(', ')}`,
      whatToDo: `change the rule: "perch endpoint update ${endpoint}"`,
    };
  if (published && state !== 'published')
    return {
      message: `version ${number} is a draft, and the rule wants published versions`,
      whatToDo: `"perch model publish ${name}@${number}"`,
    };
  const missing = wanted.filter((tag) => !tags.includes(tag));
  const fits = tagMatch === 'any' ? missing.length < wanted.length : missing.length === 0;
  if (wanted.length === 0 || fits) return undefined;
  const has = tags.length > 0 ? `it has ${quoted(tags)}` : 'it has no tags';
  return {
    message: `version ${number} lacks the ${tagMatch === 'any' ? 'tags, any one of' : 'tags'} ${quoted(missing)} that the rule wants; ${has}`,
    whatToDo: `"perch model tag ${name}@${number} --add ${missing[0]}", or change the rule: "perch endpoint update ${endpoint}"`,
  };
}

/** Whether the endpoint's rule wants this version, and if not, because of what. */
export function ruleStep(facts: WhyFacts, version: number): WhyStep {
  const { spec, versions, name } = facts;
  const { model } = spec!;
  const no = (message: string, whatToDo: string): WhyStep => ({
    step: 'rule',
    state: 'failed',
    message,
    since: null,
    whatToDo,
  });
  if (model.version !== undefined && model.version !== version)
    return no(
      `the endpoint serves version ${model.version} alone`,
      `"perch endpoint update ${name} --model ${model.project}/${model.name}@${version}"`,
    );
  const wanted = selectVersions(model, versions);
  if (wanted.includes(version))
    return okStep('rule', model.version === undefined ? 'the rule wants it' : 'the endpoint names it');
  const split = splitNaming(facts, version);
  if (split) return okStep('rule', `split ${split.name} names it, so it is served whatever the rule says`);
  const fault = unfulfilled(model, versions.find(({ number }) => number === version)!, name);
  if (fault) return no(fault.message, fault.whatToDo);
  const most = model.maxVersions ?? defaultMaxVersions;
  return no(
    `the endpoint keeps the newest ${most === 1 ? 'version' : `${most} versions`} that match (${wanted.join(', ')}), and version ${version} is older`,
    `"perch endpoint update ${name} --max-versions ${most + 1}", or name it: --model ${model.project}/${model.name}@${version}`,
  );
}
