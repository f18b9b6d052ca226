import { attempt } from "../base/attempt.ts";
import { isRecord } from "../base/record.ts";
import type { Diagnostic, DiagnosticRule } from "../protocol/diagnostic.ts";
import { frameworks, lifecycles, priorities, specTypes } from "../protocol/enums.ts";
import type { SpecBlock } from "../protocol/spec-block.ts";
import type { DraftId, ParsedSpecs, SpecAdapter, SpecDraft, SpecSource } from "./adapter.ts";
import { claudeAdapter } from "./adapters/claude/claude-adapter.ts";
import { cursorAdapter } from "./adapters/cursor/cursor-adapter.ts";
import { type CustomSource, createCustomAdapter } from "./adapters/custom/custom-adapter.ts";
import { kiroAdapter } from "./adapters/kiro/kiro-adapter.ts";
import { openspecAdapter } from "./adapters/openspec/openspec-adapter.ts";
import { speckitAdapter } from "./adapters/speckit/speckit-adapter.ts";
import { tesslAdapter } from "./adapters/tessl/tessl-adapter.ts";
import { atMost } from "./data/read-data-file.ts";
import { frameworkLabel } from "./frameworks.ts";
import { describeValue, isText, kindOf } from "./model/validate.ts";

/** The adapters of a project, by precedence. */
export interface SpecRegistry {
  readonly adapters: readonly SpecAdapter[];
  /** The first adapter that reads the file at a path, by the path alone. */
  adapterFor(path: string): SpecAdapter | undefined;
}

export interface SpecRegistryOptions {
  /** The user's adapters, which take precedence over the built-in ones. */
  readonly adapters?: readonly SpecAdapter[];
  /** The user's files with blocks; used for files that match no built-in adapter except Tessl's. */
  readonly custom?: readonly CustomSource[];
}

const builtIn: readonly SpecAdapter[] = [
  kiroAdapter,
  openspecAdapter,
  speckitAdapter,
  cursorAdapter,
  claudeAdapter,
];

const labelled = builtIn.flatMap(({ label, framework, folders = [] }) =>
  label === undefined ? [] : [{ label, framework, folders }],
);

/**
 * The name that people know the tool of a spec file or feature by: the label of its framework, or of the adapter that reads files
 * of `path` for the framework `custom`.
 *
 * @example
 * ```ts
 * import { toolLabel } from "kit/specs";
 *
 * console.log(toolLabel({ framework: "custom", path: "openspec/specs/cart/spec.md" })); // OpenSpec
 * ```
 */
export function toolLabel({ framework, path }: Pick<SpecBlock, "framework" | "path">): string {
  const adapter = labelled.find(
    (each) => each.framework === framework && each.folders.some((name) => `/${path}/`.includes(`/${name}/`)),
  );
  return adapter?.label ?? frameworkLabel(framework);
}

/**
 * Creates the registry of a project. An adapter that has the name of a built-in one replaces it.
 *
 * @example
 * ```ts
 * import { createSpecRegistry } from "kit/specs";
 *
 * const adapter = createSpecRegistry().adapterFor(".kiro/specs/returns/requirements.md");
 * console.log(adapter?.name);
 * ```
 */
export function createSpecRegistry(options: SpecRegistryOptions = {}): SpecRegistry {
  const userAdapters = options.adapters ?? [];
  const custom = options.custom ?? [];
  const names = new Set(userAdapters.map((adapter) => adapter.name));
  // Tessl comes last, because it has to read every `*.spec.md`, also files of other tools.
  const others = [...builtIn, ...(custom.length === 0 ? [] : [createCustomAdapter(custom)]), tesslAdapter];
  const adapters = [...userAdapters, ...others.filter((adapter) => !names.has(adapter.name))];
  return { adapters, adapterFor: (path) => adapters.find((adapter) => adapter.matches(path)) };
}

type Untrusted = Readonly<Record<string, unknown>>;
interface Fault {
  readonly rule: DiagnosticRule;
  readonly field: string;
  readonly message: string;
}

/**
 * Wraps a user's adapter and checks its drafts, because the types of its code can be unchecked: a draft without an id, title or
 * content, or with a value outside its enum, becomes a diagnostic that names the file and the adapter. Missing optional fields
 * get their default.
 */
export function checkedAdapter(adapter: SpecAdapter): SpecAdapter {
  const { name, framework, label, folders, keys, write } = adapter;
  return {
    name,
    framework,
    ...(label !== undefined && { label }),
    ...(folders !== undefined && { folders }),
    ...(keys !== undefined && { keys }),
    // Calls the method on the adapter, because it can be an instance of a class.
    matches: (path) => adapter.matches(path),
    parse: (source) => parse(adapter, source),
    ...(write !== undefined && { write: (blocks) => write.call(adapter, blocks) }),
  };
}

function parse(adapter: SpecAdapter, source: SpecSource): ParsedSpecs {
  const toDiagnostic = (fault: Fault, line?: number): Diagnostic => ({
    severity: "error",
    rule: fault.rule,
    code: "adapter_draft",
    message: `The adapter "${adapter.name}": ${fault.message}`,
    path: source.path,
    ...(line !== undefined && { line }),
    field: fault.field,
  });
  const parsed: unknown = adapter.parse(source);
  if (!isRecord(parsed) || !Array.isArray(parsed.drafts)) {
    const message = "parse must return { drafts, diagnostics } at once, not a promise or another value.";
    return { drafts: [], diagnostics: [toDiagnostic({ rule: "structure", field: "drafts", message })] };
  }
  const reported: readonly unknown[] = Array.isArray(parsed.diagnostics) ? parsed.diagnostics : [];
  const diagnostics: Diagnostic[] = reported.filter(isDiagnostic);
  const faults: Diagnostic[] = [];
  const drafts: SpecDraft[] = [];
  for (const [index, draft] of parsed.drafts.entries()) {
    const { checked, found } = checkDraft(draft, index);
    for (const fault of found) faults.push(toDiagnostic(fault, lineOf(draft)));
    if (checked !== undefined) drafts.push(checked);
  }
  return { drafts, diagnostics: [...diagnostics, ...atMost(faults, source.path)] };
}

function checkDraft(
  draft: unknown,
  index: number,
): { readonly checked?: SpecDraft; readonly found: readonly Fault[] } {
  const name = `draft ${index + 1}`;
  if (!isRecord(draft)) {
    const message = `${name} must be an object, not ${kindOf(draft)}.`;
    return { found: [{ rule: "structure", field: "drafts", message }] };
  }
  const essential: Fault[] = [];
  const other: Fault[] = [];
  const titled = isText(draft.title) ? `${name} (${describeValue(draft.title)})` : name;
  if (!isDraftId(draft.id)) {
    const message = `${titled} has no id: { kind: "base" | "declared", value } or { kind: "sequence", prefix }.`;
    essential.push({ rule: "required-field", field: "id", message });
  }
  for (const field of ["title", "content"] as const) {
    if (isText(draft[field])) continue;
    essential.push({ rule: "required-field", field, message: `${titled} has no ${field}.` });
  }
  const choose = (field: string, values: readonly string[], into: Fault[]): void => {
    const value = draft[field];
    if (typeof value === "string" && values.includes(value)) return;
    const message = `${titled}: "${field}" must be one of ${values.join(", ")}, not ${describeValue(value)}.`;
    into.push({ rule: "enum", field, message });
  };
  choose("framework", frameworks, essential);
  choose("spec_type", specTypes, essential);
  if (draft.lifecycle !== undefined) choose("lifecycle", lifecycles, other);
  if (draft.priority !== undefined) choose("priority", priorities, other);
  const expect = (field: string, isRight: boolean, kind: string): void => {
    if (draft[field] === undefined || isRight) return;
    const message = `${titled}: "${field}" must be ${kind}, not ${kindOf(draft[field])}.`;
    other.push({ rule: "structure", field, message });
  };
  const { summary, tags, metadata, span, links, mentions, feature } = draft;
  expect("summary", typeof summary === "string", "a text");
  expect(
    "tags",
    isListOf(tags, (tag) => typeof tag === "string"),
    "a list of texts",
  );
  expect(
    "metadata",
    isRecord(metadata) && attempt(() => JSON.stringify(metadata) !== undefined, false),
    "an object that JSON can hold",
  );
  expect("span", isSpan(span), "{ start_line, end_line } in whole numbers from 1");
  expect(
    "links",
    isListOf(links, (link) => isRecord(link) && isText(link.target)),
    "a list of links",
  );
  expect(
    "mentions",
    isListOf(mentions, (one) => isRecord(one) && isText(one.path)),
    "a list of mentions",
  );
  expect("feature", typeof feature === "string", "a text");
  const found = [...essential, ...other];
  if (essential.length > 0) return { found };
  const wrong = new Set(other.map(({ field }) => field));
  const right = Object.fromEntries(Object.entries(draft).filter(([key]) => !wrong.has(key)));
  return { checked: withDefaults(right), found };
}

/** Missing and invalid fields get the default of the record. */
function withDefaults(draft: Untrusted): SpecDraft {
  const defined = Object.fromEntries(Object.entries(draft).filter(([, value]) => value !== undefined));
  const defaults = {
    tags: [],
    lifecycle: "active",
    priority: "medium",
    metadata: {},
    span: { start_line: 1, end_line: 1 },
    links: [],
    mentions: [],
  };
  // Checked field by field above.
  return { ...defaults, ...defined } as unknown as SpecDraft;
}

function isDraftId(id: unknown): id is DraftId {
  if (!isRecord(id)) return false;
  if (id.kind === "sequence") return isText(id.prefix);
  return (id.kind === "base" || id.kind === "declared") && isText(id.value);
}

function isSpan(span: unknown): boolean {
  if (!isRecord(span)) return false;
  const isLine = (line: unknown): line is number => Number.isSafeInteger(line) && Number(line) >= 1;
  return isLine(span.start_line) && isLine(span.end_line) && span.end_line >= span.start_line;
}

function isDiagnostic(value: unknown): value is Diagnostic {
  return isRecord(value) && isText(value.message) && isText(value.path) && isText(value.rule);
}

function isListOf(value: unknown, isRight: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isRight);
}

function lineOf(draft: unknown): number | undefined {
  return isRecord(draft) && isRecord(draft.span) && isSpan(draft.span)
    ? Number(draft.span.start_line)
    : undefined;
}
