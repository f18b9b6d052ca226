import { realpathSync } from "node:fs";
import { basename, dirname, extname } from "node:path";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { AllowRules } from "../../agents/define/approval-rules.ts";
import { canonical } from "../../base/json-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { findPlace, type Place } from "../../files/find-place.ts";
import { readRegularFile, replaceFile } from "../../files/replace-file.ts";
import type { AllowChoices, AllowRule } from "../../protocol/approval.ts";
import type { AgentWrites } from "../sources/agent-writes.ts";
import { addTomlTable, parseToml, tomlTable, valueAt } from "./set-toml-key.ts";

const path = ["agent", "approvals", "allow"];
const maxBytes = 1_048_576;
const maxRules = 1_000;

export interface AllowRuleFileOptions {
  /** Absolute path of the loaded configuration file; undefined if there is none. */
  readonly file: string | undefined;
  /** The profile of the configuration; live agents check its rules. */
  readonly defaults: AgentProfile | undefined;
  readonly writes: Pick<AgentWrites, "check" | "accepted">;
}

/** Writes allow rules into the `kit.toml` of a project and applies them at once. */
export class AllowRuleFile {
  readonly #options: AllowRuleFileOptions;
  /** Undefined if the configuration requires no approval. */
  readonly #rules: AllowRules | undefined;
  /** Rules are written one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: AllowRuleFileOptions) {
    this.#options = options;
    const { approvals } = options.defaults ?? {};
    this.#rules =
      approvals !== undefined && "allow" in approvals && approvals.allow instanceof AllowRules
        ? approvals.allow
        : undefined;
  }

  /** Describes each rule and the lines that would be written; `problem` is the reason why no rule can be written. */
  describe(rules: readonly AllowRule[]): AllowChoices {
    const { file } = this.#options;
    const problem = this.#problem();
    return {
      choices: rules.map((rule) => ({ rule, summary: summaryOf(rule), toml: toLines(rule) })),
      ...(file === undefined ? {} : { file: basename(file) }),
      problem,
    };
  }

  /**
   * Adds a rule atomically. Returns the added lines; none if the file already has the rule. Throws `unavailable` if the
   * configuration is not a writable TOML file, `forbidden` if an agent has changed it, `conflict` if another program
   * changes it at the same time.
   */
  async write(rule: AllowRule): Promise<{ readonly file: string; readonly toml: string }> {
    const written = this.#last.then(() => this.#write(rule));
    this.#last = written.catch(() => undefined);
    return await written;
  }

  async #write(rule: AllowRule): Promise<{ readonly file: string; readonly toml: string }> {
    const { file, writes } = this.#options;
    const rules = this.#rules;
    const problem = this.#problem();
    if (file === undefined || rules === undefined || problem !== undefined) throw unavailable(problem ?? "");
    // Otherwise, accepting a person's rule would also accept an agent's earlier change of the file.
    writes.check(file);
    const name = basename(file);
    const place = await findPlace({ root: realpathSync(dirname(file)), path: name });
    try {
      const toml = place === undefined ? undefined : await addTo(place, rule);
      if (toml === undefined) throw unavailable(`kit found no place for it in ${name}: add it yourself.`);
      if (toml.content !== undefined) writes.accepted(file, toml.content);
      rules.add(rule);
      return { file: name, toml: toml.lines };
    } catch (error) {
      if (!isFileFault(error)) throw error;
      throw unavailable(`${name} cannot be written: ${error.code}.`);
    } finally {
      await place?.close();
    }
  }

  #problem(): string | undefined {
    const { file } = this.#options;
    const rules = this.#rules;
    if (file === undefined) return "The project has no kit.toml.";
    if (extname(file) !== ".toml")
      return `The configuration is code: add the rule to agent.approvals.allow of ${basename(file)} yourself.`;
    if (rules === undefined)
      return "The configuration requires no approvals, so a rule would have no effect.";
    return rules.rules.length >= maxRules
      ? `There are already ${maxRules} rules; remove some first.`
      : undefined;
  }
}

async function addTo(
  place: Place,
  rule: AllowRule,
): Promise<{ readonly lines: string; readonly content?: string } | undefined> {
  const before = await readRegularFile(place, maxBytes);
  if (before === undefined) return undefined;
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(before);
  const present = valueAt(parseToml(text), path);
  if (Array.isArray(present) && present.some((presentRule) => canonical(presentRule) === canonical(rule)))
    return { lines: "" };
  const content = addTomlTable(text, path, { ...rule });
  if (content === undefined) return undefined;
  await replaceFile(place, { content, expected: before, durable: true });
  return { lines: toLines(rule), content };
}

function toLines(rule: AllowRule): string {
  return tomlTable(path, { ...rule }).join("\n");
}

function unavailable(why: string): KitError {
  return new KitError({ code: "unavailable", message: `The rule was not written. ${why}` });
}

function isFileFault(error: unknown): error is Error & { readonly code: string } {
  return (
    !(error instanceof KitError) &&
    error instanceof Error &&
    "code" in error &&
    typeof error.code === "string"
  );
}

/** Describes the calls that a rule allows in a sentence. */
function summaryOf({ tool, agent, command, path: rulePath, args, cwd }: AllowRule): string {
  const byAgent = agent === undefined ? "" : ` by the agent ${agent}`;
  const where = cwd === undefined ? "" : ` in ${cwd}`;
  if (command !== undefined) return `${commandSummary(command)}${where},${byAgent}`;
  if (rulePath !== undefined)
    return rulePath.endsWith("/")
      ? `${tool} for every file below ${rulePath},${byAgent}`
      : `${tool} for the file ${rulePath}, whatever the content,${byAgent}`;
  if (args !== undefined) return `${tool} with exactly these arguments${where},${byAgent}`;
  return `Every call of ${tool}, whatever its arguments,${byAgent}`;
}

function commandSummary(command: string): string {
  if (command.endsWith(" *")) return `Commands that begin with "${command.slice(0, -2)}"`;
  if (command === "git") return "Read-only git commands";
  return `"${command}" with other arguments, as long as kit knows what they do and they stay in the workspace`;
}
