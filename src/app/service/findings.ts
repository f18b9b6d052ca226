import { KitError } from "../../base/kit-error.ts";
import { thrownText } from "../../base/thrown.ts";
import { clusterStateOf } from "../../engine/cluster-state.ts";
import { createModelResolver, defaultModelName } from "../../models/create-model-resolver.ts";
import { isKnownProvider, knownProviders } from "../../models/provider-config.ts";
import type { Project } from "../../project/project.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { Finding } from "../../protocol/service.ts";
import type { KitConfig } from "../config/config-schema.ts";
import type { Environment } from "../config/environment.ts";
import { isolationOfConfig } from "../runtime/open-sandbox.ts";
import { webhooksWithoutSecret } from "../sources/webhooks-without-secret.ts";
import type { Service } from "./service.ts";

/** Returns the findings of a running server, in the form of `kit doctor`: errors, warnings and passed checks of the parts that are open. */
export async function findingsOf({
  project,
  service,
  config,
}: {
  readonly project: Project;
  readonly service?: Service | undefined;
  readonly config?: KitConfig | undefined;
}): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const problem = service?.problem();
  if (problem !== undefined)
    findings.push({ name: "store", status: "error", message: problem.message, ...hintOf(problem) });
  if (service !== undefined) findings.push(...(await serviceFindings(service)));
  if (config !== undefined) {
    findings.push(
      await checkModel({ config, environment: service?.app.env ?? {} }),
      await checkCommands(config),
    );
    if (config.store === "memory")
      findings.push({
        name: "store",
        status: "warning",
        message: "memory: sessions end with the process",
        hint: "Leave store and KIT_STORE out to keep sessions in .kit/sessions.db.",
      });
  }
  const index = project.indexProblem();
  if (index !== undefined)
    findings.push({
      name: "index",
      status: "warning",
      message: `not kept in .kit: ${index}`,
      hint: "Until this is fixed, every start reads all files again.",
    });
  findings.push(
    summarizeDiagnostics("spec problems", project.specs.diagnostics(), "kit specs validate"),
    summarizeDiagnostics(
      "guideline problems",
      [...project.guidelines.diagnostics(), ...project.guidelines.lint()],
      "kit guidelines lint",
    ),
  );
  const order = { error: 0, warning: 1, ok: 2 } as const;
  return findings.toSorted((finding, other) => order[finding.status] - order[other.status]);
}

async function serviceFindings({ app, engine }: Service): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const problems = app.problems();
  const agents = app.agents().length;
  if (problems.length === 0)
    findings.push({
      name: "agents",
      status: "ok",
      message: `${counted(agents, "agent")}, ${counted(app.workflows().length, "workflow")}`,
    });
  else
    findings.push({
      name: "agents",
      status: problems.every(({ isHarmless = false }) => isHarmless) ? "warning" : "error",
      message: `${problems.length} ${problems.length === 1 ? "file has a problem" : "files have problems"}`,
      hint: problems.map(({ path, message }) => `${path}: ${message}`).join("\n"),
    });
  const secretless = webhooksWithoutSecret(app.webhooks(), app.env);
  if (secretless.length > 0)
    findings.push({
      name: "webhooks",
      status: "warning",
      message: `No secret for ${secretless.map(({ path }) => path).join(", ")}: every delivery is refused.`,
      hint: "Set the environment variable that the file reads, for instance in a file named with --env.",
    });
  const { dead_letters, problems: faults } = await clusterStateOf(engine);
  if (dead_letters > 0)
    findings.push({
      name: "dispatches",
      status: "warning",
      message: `${dead_letters.toLocaleString("en")} failed permanently`,
      hint: "The screen Dispatches, or 'kit dispatches list --status failed', shows why; retry them once the cause is fixed.",
    });
  for (const { message, hint } of faults) findings.push({ name: "engine", status: "warning", message, hint });
  return findings;
}

function counted(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Returns a finding with the number of errors and warnings and the command that lists them. */
export function summarizeDiagnostics(
  name: string,
  diagnostics: readonly Diagnostic[],
  command: string,
): Finding {
  if (diagnostics.length === 0) return { name, status: "ok", message: "none" };
  const errors = diagnostics.filter(({ severity }) => severity === "error").length;
  const warnings = diagnostics.length - errors;
  const message = `${counted(errors, "error")}, ${counted(warnings, "warning")}`;
  // A warning, since the other files are still read; the named command exits with 1 for errors.
  return { name, status: "warning", message, hint: `'${command}' lists them.` };
}

/** Returns whether the machine isolates the commands of agents, and how to enable isolation. */
export async function checkCommands(config: KitConfig): Promise<Finding> {
  const name = "commands";
  const { wall, description, hint } = await isolationOfConfig(config);
  const mode = config.sandbox?.isolation ?? "auto";
  if (wall !== "none" || mode === "off") return { name, status: "ok", message: description };
  return {
    name,
    status: mode === "required" ? "error" : "warning",
    message: `${description}${mode === "required" ? " sandbox.isolation is required, so no command runs." : ""}`,
    hint: hint ?? "Without isolation, grant agents only commands that you would let a stranger run.",
  };
}

/** A configuration and its environment. */
interface Configured {
  readonly config: KitConfig;
  readonly environment: Environment;
}

/** Returns the model of agents that name none, with its key and package. Sends no request. */
export async function checkModel({ config, environment }: Configured): Promise<Finding> {
  const { providers } = config;
  const options = { env: environment, providers };
  const names = [config.agent?.model ?? defaultModelName(options)].flat();
  const resolve = createModelResolver(options);
  const usable: string[] = [];
  let failure: { readonly message: string; readonly hint: string } | undefined;
  for (const name of names) {
    try {
      await resolve(name);
      usable.push(`${name}: ${meansOf(name, { config, environment })}`);
    } catch (error) {
      const message = thrownText(error);
      const { hint = "Name another one with agent.model or KIT_MODEL." } = hintOf(error);
      failure ??= { message: `${name}: ${message}`, hint };
    }
  }
  const name = "model";
  if (failure === undefined) return { name, status: "ok", message: usable.join("; then ") };
  if (usable.length === 0) return { name, status: "error", message: failure.message, hint: failure.hint };
  // The other models answer instead.
  return {
    name,
    status: "warning",
    message: `${failure.message} ${usable.join("; then ")}`,
    hint: failure.hint,
  };
}

function hintOf(error: unknown): { readonly hint?: string } {
  return error instanceof KitError && error.hint !== undefined ? { hint: error.hint } : {};
}

function meansOf(name: string, { config, environment }: Configured): string {
  const provider = name.split(/[/:]/, 1)[0]?.toLowerCase() ?? "";
  if (provider === "offline") {
    return "kit's own, which looks things up and quotes them. A provider's key, such as ANTHROPIC_API_KEY, brings another";
  }
  const settings = Object.entries(config.providers ?? {}).find(
    ([key]) => key.toLowerCase() === provider,
  )?.[1];
  const knownProvider = isKnownProvider(provider) ? knownProviders[provider] : undefined;
  const variable = knownProvider?.keys.find((key) => Boolean(environment[key]));
  const key =
    settings?.api_key !== undefined
      ? "key of the configuration"
      : variable !== undefined
        ? `key ${variable}`
        : "no key";
  return `${key}, package ${knownProvider?.package ?? "@ai-sdk/openai-compatible"}`;
}
