import { suggest } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { cloudflare } from "./cloudflare.ts";
import { docker, fly, railway } from "./containers.ts";
import { githubActions, gitlabCi, render } from "./from-git.ts";
import { netlify } from "./netlify.ts";
import { node } from "./node.ts";
import type { Target } from "./target.ts";
import { vercel } from "./vercel.ts";

/** Every target that works. */
export const targets: readonly Target[] = [
  node,
  docker,
  githubActions,
  gitlabCi,
  railway,
  render,
  fly,
  vercel,
  netlify,
  cloudflare,
];

/** The target of a name. Throws `invalid_request` for an unknown one. */
export function findTarget(name: string): Target {
  const found = targets.find((target) => target.name === name.toLowerCase());
  if (found !== undefined) return found;
  const names = targets.map((target) => target.name);
  const near = suggest(name, names);
  throw new KitError({
    code: "invalid_request",
    message: `'${name}' is not a target.`,
    hint: `${near === undefined ? "" : `Did you mean ${near}? `}The targets are ${names.join(", ")}.`,
  });
}
