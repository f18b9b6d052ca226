import { frameworkInfos } from "../../specs/frameworks.ts";

/** For somebody whose repository has no spec that kit can read. */
export function noSpecsHint(): string {
  const sources = frameworkInfos.map(({ label, sources }) => `  ${label.padEnd(12)} ${sources}`);
  return ["No specs here. kit reads, at the root of the repository:", ...sources].join("\n");
}
