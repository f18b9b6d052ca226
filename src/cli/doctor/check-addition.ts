import { existsSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import { valueAt } from "../../app/config/set-toml-key.ts";
import { checkModel } from "../../app/service/findings.ts";
import { attempt } from "../../base/attempt.ts";
import { type Addition, additions } from "../add/additions.ts";
import { installedVersion, peerOf, satisfies } from "../add/peer-versions.ts";
import { checkStore } from "./check-models.ts";
import type { Check } from "./checks.ts";

/** The project in which an addition is checked. */
export interface AddedTo {
  readonly root: string;
  /** The folder of the package.json that lists its packages. */
  readonly folder: string;
  readonly loaded: LoadedConfig;
}

/** Checks that an addition has its packages, configuration keys and variable, and works. */
export async function checkAddition(addition: Addition, project: AddedTo): Promise<readonly Check[]> {
  const { loaded, root } = project;
  const packages = checkPackages(addition, project.folder);
  const variable = checkVariable(addition, loaded);
  const checks = variable === undefined ? [packages] : [packages, variable];
  if (packages.status === "error" || variable?.status === "warning") return checks;
  const model = addition.configuration?.["agent.model"];
  if (model !== undefined) {
    const { agent } = loaded.config;
    checks.push(await checkModel({ ...loaded, config: { ...loaded.config, agent: { ...agent, model } } }));
  }
  if (addition.kind === "store") checks.push(await checkStore(root, loaded));
  return checks;
}

/** Checks the sandbox and the backend that a configuration names; models and stores are always checked. */
export async function checkAdditions(project: AddedTo): Promise<readonly Check[]> {
  const used = additions.filter(
    ({ kind, configuration = {} }) =>
      (kind === "sandbox" || kind === "backend") &&
      Object.entries(configuration).every(
        ([key, value]) => valueAt(project.loaded.config, key.split(".")) === value,
      ),
  );
  return (await Promise.all(used.map((addition) => checkAddition(addition, project)))).flat();
}

function checkPackages({ name, packages }: Addition, folder: string): Check {
  const installed: string[] = [];
  for (const peer of packages.map(peerOf)) {
    const version = installedVersion(peer.name, folder);
    const hint = `Run: kit add ${name}`;
    if (version === undefined && !isBesideKit(peer.name))
      return { name, status: "error", message: `The package ${peer.name} is not installed.`, hint };
    if (version !== undefined && !satisfies(version, peer.range)) {
      const message = `${peer.name} ${version} is installed, and this kit takes ${peer.range}.`;
      return { name, status: "error", message, hint };
    }
    installed.push(version === undefined ? `${peer.name} beside kit` : `${peer.name} ${version}`);
  }
  return { name, status: "ok", message: installed.join(", ") };
}

function isBesideKit(name: string): boolean {
  return attempt(() => findPackageJSON(name, import.meta.url) !== undefined, false);
}

function checkVariable(addition: Addition, { config, environment }: LoadedConfig): Check | undefined {
  const { name, kind, variables = [], variableExample, needsAllVariables = false, keyFile } = addition;
  if (variables.length === 0) return undefined;
  const set = variables.filter((variable) => Boolean(environment[variable]));
  const missing = variables.filter((variable) => !set.includes(variable));
  if (needsAllVariables ? missing.length === 0 : set.length > 0) {
    const listed = needsAllVariables ? set : set.slice(0, 1);
    return { name, status: "ok", message: `${listed.join(" and ")} ${listed.length > 1 ? "are" : "is"} set` };
  }
  if (kind === "model" && config.providers?.[name]?.api_key !== undefined)
    return { name, status: "ok", message: "the key of the configuration" };
  if (keyFile !== undefined && set.length === 0 && existsSync(join(environment.HOME ?? homedir(), keyFile)))
    return { name, status: "ok", message: `the key of ~/${keyFile}` };
  const example = variableExample === undefined ? "" : `, such as ${variableExample}`;
  const missingNames = needsAllVariables ? missing.join(" and ") : variables[0];
  return {
    name,
    status: "warning",
    message: needsAllVariables
      ? `${missingNames} ${missing.length > 1 ? "are" : "is"} not set.`
      : `${variables.join(" or ")} is not set.`,
    hint: `Set ${missingNames}${example}, in the environment or in a .env that Git ignores.`,
  };
}
