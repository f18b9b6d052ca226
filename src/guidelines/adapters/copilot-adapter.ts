import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { FrontMatter } from "../../specs/markdown/front-matter.ts";
import type { GuidelineAdapter } from "../adapter.ts";
import { holderOf } from "../guideline-record.ts";
import { anyOf, frontMatterKeys, keyWarning, unknownKeys } from "./front-matter-keys.ts";
import { type Declared, declaredGlobs, parseSectionedFile, parseWholeFile } from "./whole-file.ts";

const instructions = /(?:^|\/)\.github\/copilot-instructions\.md$/;
const scoped = /(?:^|\/)\.github\/instructions\/(?:.*\/)?[^/]+\.instructions\.md$/s;

/** GitHub Copilot: the instructions of a repository, and those for some of its files, one guideline each. */
export const copilotAdapter: GuidelineAdapter = {
  name: "copilot",
  source_type: "copilot",
  folders: [".github/instructions"],
  keys: frontMatterKeys.copilot,
  matches: (path) => instructions.test(path) || scoped.test(path),
  parse(source) {
    const scope = holderOf(source.path, ".github");
    const kind = { source_type: "copilot", tool: "copilot", scope, imports: "none" } as const;
    return scoped.test(source.path)
      ? parseWholeFile(source, kind, (frontMatter) => ({
          ...declaredByCopilot(frontMatter.data),
          diagnostics: faultsOfCopilot({ path: source.path, frontMatter }),
        }))
      : parseSectionedFile(source, kind);
  },
};

/** The agents of GitHub that instructions can leave out. */
const agents: readonly string[] = frontMatterKeys.copilot.excludeAgent;

function faultsOfCopilot(checked: {
  readonly path: string;
  readonly frontMatter: FrontMatter;
}): Diagnostic[] {
  const { excludeAgent } = checked.frontMatter.data;
  const faults = unknownKeys("copilot", checked);
  const names = Array.isArray(excludeAgent) ? excludeAgent : [excludeAgent];
  if (excludeAgent !== undefined && names.some((name) => !agents.includes(String(name)))) {
    const message = `excludeAgent must be ${anyOf(agents)}.`;
    faults.push(keyWarning(checked, "excludeAgent", { code: "agent_unknown", message }));
  }
  return faults;
}

/** Without `applyTo`, a person adds the instructions, or Copilot does by their description. */
function declaredByCopilot(data: Readonly<Record<string, unknown>>): Declared {
  const globs = declaredGlobs(data.applyTo, "copilot");
  // To Copilot, a single asterisk means every file, like `**` and `**/*`.
  if (globs.includes("*")) return { inclusion: "always", globs, tags: ["always"] };
  if (globs.length > 0) return { inclusion: "pattern", globs, tags: ["fileMatch"] };
  const { description } = data;
  return typeof description === "string" && description.trim() !== ""
    ? { inclusion: "auto", globs, tags: ["auto", "manual"] }
    : { inclusion: "manual", globs, tags: ["manual"] };
}
