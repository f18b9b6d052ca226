import { canonical } from "../../base/json-text.ts";
import type { AllowRule } from "../../protocol/approval.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AgentPolicy } from "../define/agent-profile.ts";
import { builtInToolNames } from "../define/profile-settings.ts";

/** A call that is compared with rules. */
export interface AllowedCall {
  readonly agent: string;
  readonly tool: string;
  /** The arguments that the tool gets: after hooks, not masked. */
  readonly args: unknown;
  readonly policy: AgentPolicy;
  sandbox(): Promise<Sandbox>;
}

/** Whether a rule matches the call. A call that cannot be evaluated matches no rule. */
export async function isAllowed(rules: readonly AllowRule[], call: AllowedCall): Promise<boolean> {
  for (const rule of rules) {
    if (rule.tool !== call.tool || (rule.agent !== undefined && rule.agent !== call.agent)) continue;
    // Throws for a path that leads out of the workspace, and for a rule whose arguments are not JSON.
    if (await fits(rule, call).catch(() => false)) return true;
  }
  return false;
}

async function fits(rule: AllowRule, call: AllowedCall): Promise<boolean> {
  const { command, path, args } = rule;
  if (path !== undefined && !(await fitsPath(path, call))) return false;
  if (args !== undefined && !isSame(call.args, JSON.parse(args))) return false;
  if (command !== undefined && !(await fitsCommand(command, call))) return false;
  const hasFolder = worksInFolder(call.tool) && (command !== undefined || args !== undefined);
  return !hasFolder || (await folderOf(call)) === (rule.cwd ?? "");
}

function isSame(args: unknown, written: unknown): boolean {
  return isPlainJson(args) && canonical(args) === canonical(written);
}

/** Whether JSON can represent the value: it has no number for `Infinity`, which `1e999` parses to. */
function isPlainJson(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value !== "object" || value === null || Object.values(value).every(isPlainJson);
}

/** Whether the paths and commands of a tool are relative to a working folder, as those of built-in tools are. */
function worksInFolder(tool: string): boolean {
  return builtInToolNames.has(tool) && tool !== "task";
}

/** The working folder of the call, relative to the root of the workspace. */
async function folderOf(call: AllowedCall): Promise<string> {
  const files = await call.sandbox();
  const cwd = call.tool === "bash" ? textIn(call.args, "cwd") : undefined;
  return cwd === undefined ? files.cwd : await files.resolve(cwd);
}

async function fitsCommand(entry: string, { tool, args, policy }: AllowedCall): Promise<boolean> {
  const line = textIn(args, "command");
  if (tool !== "bash" || line === undefined) return false;
  const { checkCommand } = await import("../policy/check-command.ts");
  const { allowWrite } = policy;
  const decision = checkCommand(line, { allowShell: true, allowWrite, allowedCommands: [entry] });
  if (!decision.allowed || !("commands" in decision)) return false;
  // An isolated command runs without a later check of its paths, so they are checked here.
  return decision.commands.every(({ known }) =>
    [...(known?.paths ?? []), { path: known?.git?.folder ?? "" }].every(
      ({ path }) => !isOutside(path.split("/")),
    ),
  );
}

/** Tools that use only the file or folder at their `path`. */
const pathTools: ReadonlySet<string> = new Set(["read", "write", "edit", "mkdir", "rm", "stat", "exists"]);

/** The rule must cover both the path as written and the target of its links. */
async function fitsPath(rule: string, { tool, args, sandbox }: AllowedCall): Promise<boolean> {
  const path = textIn(args, "path");
  if (!pathTools.has(tool) || path === undefined) return false;
  const files = await sandbox();
  const written = pathFromRoot(path, files.cwd);
  const target = await files.resolve(path, { keepLink: tool === "rm" });
  return written !== undefined && covers(rule, written) && covers(rule, target);
}

/** The path relative to the root of the workspace; `undefined` if its spelling could hide its target. */
function pathFromRoot(path: string, cwd: string): string | undefined {
  const parts = path.replace(/^\.\//, "").split("/");
  if (path.includes("\\") || parts.includes("") || parts.includes(".") || isOutside(parts)) return undefined;
  return cwd === "" ? parts.join("/") : `${cwd}/${parts.join("/")}`;
}

function isOutside(parts: readonly string[]): boolean {
  return parts.includes("..") || (parts.length > 1 && parts[0] === "") || parts[0]?.startsWith("~") === true;
}

/** `src/cart/` covers everything below that folder, `src/cart/total.ts` only that file. Neither is a pattern. */
function covers(rule: string, path: string): boolean {
  return rule.endsWith("/") ? path.startsWith(rule) && path.length > rule.length : path === rule;
}

type RuleFields = Readonly<Partial<Record<"command" | "path" | "args" | "cwd", string>>>;

/** Longest field of an offered rule, in characters: a person must be able to read it. */
const maxArgs = 2_000;

/**
 * The rules that would allow a call, the narrowest first; or the reason if there is none: the agent's policy denies
 * the call, or its arguments are too long for a person to read.
 */
export async function allowChoices(call: AllowedCall): Promise<readonly AllowRule[] | string> {
  const { agent, tool, args } = call;
  const json = JSON.stringify(args ?? {});
  const denied = await deniedBecause(call);
  if (denied !== undefined) return `The agent's policy denies this call: ${denied}.`;
  const cwd = worksInFolder(tool) ? await folderOf(call).catch(() => undefined) : "";
  if (cwd === undefined) return "The call leads out of the workspace.";
  const folder = cwd === "" ? {} : { cwd };
  const exact: readonly RuleFields[] = json.length > maxArgs ? [] : [{ args: json, ...folder }];
  const line = textIn(args, "command");
  const path = textIn(args, "path");
  let wider: readonly RuleFields[] = [];
  if (tool === "bash") wider = (await commandsLike(line ?? "")).map((command) => ({ command, ...folder }));
  else if (pathTools.has(tool) && path !== undefined)
    wider = pathsLike(pathFromRoot(path, (await call.sandbox()).cwd)).map((path) => ({ path }));
  else if (!builtInToolNames.has(tool) && tool !== "mcp_execute") wider = [{}];
  // A rule with the exact content of a file would hardly match again, so file tools get rules for paths only.
  const offered = pathTools.has(tool) ? wider : [...exact, ...wider];
  const rules: AllowRule[] = [];
  for (const fields of offered) {
    const rule = { tool, agent, ...fields };
    const texts: readonly string[] = Object.values(rule);
    const isShort = texts.every((text) => text.length <= maxArgs && text.isWellFormed());
    if (isShort && (await isAllowed([rule], call))) rules.push(rule);
  }
  return rules.length > 0 ? rules : "Its arguments are too long, or lead out of the workspace.";
}

async function deniedBecause({ tool, args, policy }: AllowedCall): Promise<string | undefined> {
  if (tool !== "bash") return undefined;
  const { checkCommand } = await import("../policy/check-command.ts");
  // Assume isolation: only the run itself determines whether the sandbox has it, and without it the policy denies more.
  const decision = checkCommand(textIn(args, "command") ?? "", policy, true);
  return decision.allowed ? undefined : decision.reason;
}

/** Programs that run a script by its name and pass arguments to it. */
const runners: ReadonlySet<string> = new Set(["npm", "pnpm", "yarn", "bun"]);
const plainWord = /^[A-Za-z0-9][A-Za-z0-9_.:-]*$/;

/** Entries of a command list that match a command: first its subcommand, then its program. */
async function commandsLike(line: string): Promise<readonly string[]> {
  const [{ parseCommand }, { isGit }, { isSubcommandOfGit }, programs] = await Promise.all([
    import("../policy/parse-command.ts"),
    import("../policy/command-list.ts"),
    import("../policy/forms/git-form.ts"),
    import("../policy/forms/programs.ts"),
  ]);
  const parsed = parseCommand(line);
  const [first, second] = parsed.ok ? parsed.commands : [];
  if (first === undefined || second !== undefined) return [];
  const [program = "", subcommand = "", name = ""] = first.words;
  if (!plainWord.test(program) || programs.isLauncher(program)) return [];
  if (isGit(program)) return isSubcommandOfGit(subcommand) ? [`git ${subcommand}`, "git"] : ["git"];
  if (runners.has(program)) {
    if (subcommand === "run") return plainWord.test(name) ? [`${program} run ${name} *`] : [];
    return subcommand === "test" ? [`${program} test *`] : [];
  }
  if (programs.interpreterOf(program) !== undefined) return [];
  if (programs.knownProgram(program) !== undefined) return [program];
  return plainWord.test(subcommand) ? [`${program} ${subcommand} *`] : [];
}

/** The path of a file, then that of its folder. */
function pathsLike(path: string | undefined): readonly string[] {
  if (path === undefined) return [];
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  return folder === "" ? [path] : [path, folder];
}

function textIn(args: unknown, name: string): string | undefined {
  const value: unknown =
    typeof args === "object" && args !== null && Object.hasOwn(args, name)
      ? Reflect.get(args, name)
      : undefined;
  return typeof value === "string" ? value : undefined;
}
