import { RE2JS } from "re2js";
import { isRecord } from "../base/record.ts";
import { hasProperty, propertiesOf, valueKeywords } from "./check-keywords.ts";
import { type JsonObject, own, type SchemaDocument } from "./schema-document.ts";

/** A place where the value does not match the schema. */
export interface JsonIssue {
  /** Names and indices from the root. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** Maximum of schema evaluations for one value, and of their nesting depth. */
const maxSteps = 1_000_000;
const maxLenientSteps = 100_000;
const maxDepth = 500;
/** Maximum cost of all patterns: characters times instructions. */
const maxPatternSteps = 20_000_000;

/** Thrown if the check cannot decide; the check then refuses the value, unless it is lenient. */
class Uncheckable extends Error {}

/** The parts that the schemas of one place have checked, for `unevaluatedProperties` and `unevaluatedItems`. */
class Seen {
  readonly names: Set<string> | undefined;
  readonly indices: Set<number> | undefined;
  allNames = false;
  allItems = false;

  /** `isAsked`: few schemas have keywords that need this record. */
  constructor(isAsked: boolean) {
    this.names = isAsked ? new Set() : undefined;
    this.indices = isAsked ? new Set() : undefined;
  }

  add(other: Seen): void {
    for (const name of other.names ?? []) this.names?.add(name);
    for (const index of other.indices ?? []) this.indices?.add(index);
    this.allNames ||= other.allNames;
    this.allItems ||= other.allItems;
  }
}

/** The record of all schemas of a document that never asks for it. */
const unrecorded = new Seen(false);

type Path = JsonIssue["path"];

export interface CheckOptions {
  /**
   * Refuses only values that certainly do not match, for schemas whose owner checks again: the owner checks formats,
   * patterns that RE2 does not accept, and undecidable cases. Default: the check refuses undecidable cases.
   */
  readonly isLenient?: boolean;
}

/**
 * Checks a value with a JSON Schema (2020-12, and `definitions`, tuples and `dependencies` of older drafts).
 * Takes bounded time for any schema and value: patterns match in linear time, and a schema that refers to itself
 * endlessly, or too often, is an issue. `constructor` and `__proto__` are ordinary names.
 */
export function checkJson(
  document: SchemaDocument,
  value: unknown,
  { isLenient = false }: CheckOptions = {},
): readonly JsonIssue[] {
  const check = new Check(document, isLenient);
  try {
    check.schema(document.root, value, []);
    return check.issues;
  } catch (error) {
    if (isLenient && (error instanceof Uncheckable || error instanceof RangeError)) return [];
    if (error instanceof Uncheckable) return [{ path: [], message: error.message }];
    // The value is too deep for the stack.
    if (error instanceof RangeError)
      return [{ path: [], message: "cannot be checked: it is nested too deeply" }];
    throw error;
  }
}

/** The keywords that apply schemas to the value itself. */
const applicators: ReadonlySet<string> = new Set([
  "$ref",
  "$dynamicRef",
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
]);

const dependents = ["dependentSchemas", "dependencies"];

class Check {
  issues: JsonIssue[] = [];
  readonly #document: SchemaDocument;
  #steps = 0;
  #depth = 0;
  #patternSteps = 0;
  readonly #isLenient: boolean;
  /** Number of enclosing schemas in which a match refuses the value. */
  #inverted = 0;

  constructor(document: SchemaDocument, isLenient: boolean) {
    this.#document = document;
    this.#isLenient = isLenient;
  }

  /** Checks a value and records its issues. Returns the evaluated parts if the value matches. */
  schema(schema: unknown, value: unknown, path: Path): Seen | undefined {
    this.#steps += 1;
    if (this.#steps > (this.#isLenient ? maxLenientSteps : maxSteps))
      throw new Uncheckable("cannot be checked: its schema takes too many steps");
    if (this.#depth >= maxDepth) throw new Uncheckable("cannot be checked: its schema is nested without end");
    if (schema === false) return this.#refuse(path, "must not be there");
    const seen = this.#document.hasUnevaluated ? new Seen(true) : unrecorded;
    if (!isRecord(schema)) return seen;
    this.#depth += 1;
    const before = this.issues.length;
    if (this.#values(schema, value, path)) this.#applicators(schema, value, { path, seen });
    if (isRecord(value)) this.#properties(schema, value, { path, seen });
    if (Array.isArray(value)) this.#items(schema, value, { path, seen });
    if (this.#document.hasUnevaluated) this.#unevaluated(schema, value, { path, seen });
    this.#depth -= 1;
    return this.issues.length === before ? seen : undefined;
  }

  /** Returns whether a value matches, without recording issues. */
  #fits(schema: unknown, value: unknown, path: Path): Seen | undefined {
    const { issues } = this;
    this.issues = [];
    const seen = this.schema(schema, value, path);
    this.issues = issues;
    return seen;
  }

  /** The same for schemas in which a match can refuse the value: the check cannot leave these to the owner. */
  #surelyFits(schema: unknown, value: unknown, path: Path): Seen | undefined {
    this.#inverted += 1;
    const seen = this.#fits(schema, value, path);
    this.#inverted -= 1;
    return seen;
  }

  #refuse(path: Path, message: string): undefined {
    this.issues.push({ path, message });
  }

  readonly #matching = (pattern: string, text: string): boolean | undefined => this.#matches(pattern, text);

  /** Returns undefined if only the schema's owner can decide. */
  #matches(pattern: string, text: string): boolean | undefined {
    const compiled = linearPattern(pattern);
    if (compiled === undefined && this.#isLenient && this.#inverted === 0) return undefined;
    if (compiled === undefined)
      throw new Uncheckable(
        `cannot be checked: the pattern ${JSON.stringify(pattern.slice(0, 100))} of its schema is not a regular expression that is matched in linear time (RE2: no look-around, no back-references)`,
      );
    this.#patternSteps += compiled.size * text.length;
    if (this.#patternSteps > maxPatternSteps)
      throw new Uncheckable("cannot be checked: it is too long for the patterns of its schema");
    return compiled.matches(text);
  }

  /** Checks the keywords without subschemas. Returns whether the schema has others that apply schemas to the same value. */
  #values(schema: JsonObject, value: unknown, path: Path): boolean {
    let applies = false;
    for (const keyword of Object.keys(schema)) {
      applies ||= applicators.has(keyword);
      if (this.#isLenient && keyword === "format") continue;
      const message = valueKeywords.get(keyword)?.({
        value,
        rule: schema[keyword],
        schema,
        matches: this.#matching,
      });
      if (message !== undefined) this.#refuse(path, message);
    }
    return applies;
  }

  #applicators(schema: JsonObject, value: unknown, { path, seen }: { path: Path; seen: Seen }): void {
    const take = (part: Seen | undefined): boolean => {
      if (part !== undefined) seen.add(part);
      return part !== undefined;
    };
    for (const keyword of ["$ref", "$dynamicRef"] as const) {
      const reference = own(schema, keyword);
      if (typeof reference !== "string") continue;
      const target = this.#document.find(reference, schema, keyword);
      if (target === undefined) throw noTarget(reference);
      take(this.schema(target, value, path));
    }
    for (const part of listOf(own(schema, "allOf"))) take(this.schema(part, value, path));
    const any = own(schema, "anyOf");
    // Check all of them: the properties that they evaluate can matter.
    if (Array.isArray(any) && any.map((part) => take(this.#fits(part, value, path))).every((fits) => !fits))
      this.#refuseAll(any, { value, path });
    const oneOf = own(schema, "oneOf");
    if (Array.isArray(oneOf)) {
      const fitting = oneOf
        .map((part) => this.#surelyFits(part, value, path))
        .filter((found) => found !== undefined);
      if (fitting.length === 1) take(fitting[0]);
      else if (fitting.length === 0) this.#refuseAll(oneOf, { value, path });
      else this.#refuse(path, `fits ${fitting.length} of the alternatives, and may fit one only`);
    }
    const not = own(schema, "not");
    if (not !== undefined && this.#surelyFits(not, value, path) !== undefined)
      this.#refuse(path, "fits what its schema excludes");
    const condition = own(schema, "if");
    if (condition !== undefined) {
      const branch = take(this.#surelyFits(condition, value, path)) ? "then" : "else";
      const chosen = own(schema, branch);
      if (chosen !== undefined) take(this.schema(chosen, value, path));
    }
  }

  /** Records the issues of a single alternative, or that none of several matches. */
  #refuseAll(parts: readonly unknown[], { value, path }: { value: unknown; path: Path }): void {
    if (parts.length === 1) this.schema(parts[0], value, path);
    else this.#refuse(path, "fits none of the alternatives");
  }

  #properties(schema: JsonObject, value: JsonObject, { path, seen }: { path: Path; seen: Seen }): void {
    const names = propertiesOf(value);
    const additional = own(schema, "additionalProperties");
    const checkedNames = additional === undefined && seen.names === undefined ? undefined : new Set<string>();
    const checkProperty = (part: unknown, name: string): void => {
      checkedNames?.add(name);
      this.schema(part, value[name], [...path, name]);
    };
    const properties = own(schema, "properties");
    if (isRecord(properties)) {
      for (const name of names) if (Object.hasOwn(properties, name)) checkProperty(properties[name], name);
    }
    const patterns = own(schema, "patternProperties");
    if (isRecord(patterns)) {
      for (const [pattern, part] of Object.entries(patterns))
        for (const name of names) {
          const isMatch = this.#matches(pattern, name);
          if (isMatch === true) checkProperty(part, name);
          // The property need not be additional.
          else if (isMatch === undefined) checkedNames?.add(name);
        }
    }
    if (additional !== undefined) {
      for (const name of names.filter((one) => checkedNames?.has(one) !== true)) {
        if (additional === false) this.#refuse(path, `"${name}" is not known`);
        else checkProperty(additional, name);
      }
      seen.allNames = true;
    }
    if (seen.names !== undefined) for (const name of checkedNames ?? []) seen.names.add(name);
    const propertyNames = own(schema, "propertyNames");
    if (propertyNames !== undefined)
      for (const name of names)
        if (this.#fits(propertyNames, name, path) === undefined)
          this.#refuse(path, `"${name}" is not a name that a field may have`);
    for (const keyword of dependents) {
      const dependent = own(schema, keyword);
      if (!isRecord(dependent)) continue;
      for (const [name, part] of Object.entries(dependent)) {
        if (!hasProperty(value, name)) continue;
        const result = this.schema(Array.isArray(part) ? { required: part } : part, value, path);
        if (result !== undefined) seen.add(result);
      }
    }
  }

  #items(schema: JsonObject, value: readonly unknown[], { path, seen }: { path: Path; seen: Seen }): void {
    const items = own(schema, "items");
    // Tuples of older drafts: a list of items, then `additionalItems`.
    const isTuple = Array.isArray(items);
    const prefix = isTuple ? items : listOf(own(schema, "prefixItems"));
    const rest = isTuple ? own(schema, "additionalItems") : items;
    for (const [index, item] of value.entries()) {
      const part = index < prefix.length ? prefix[index] : rest;
      if (part === undefined) continue;
      this.schema(part, item, [...path, index]);
      seen.indices?.add(index);
    }
    if (rest !== undefined) seen.allItems = true;
    const contains = own(schema, "contains");
    if (contains === undefined) return;
    let count = 0;
    for (const [index, item] of value.entries()) {
      if (this.#surelyFits(contains, item, [...path, index]) === undefined) continue;
      seen.indices?.add(index);
      count += 1;
    }
    const { min, max } = { min: own(schema, "minContains") ?? 1, max: own(schema, "maxContains") };
    if (count < Number(min))
      this.#refuse(path, `must hold at least ${min} of the items that its schema names`);
    if (max !== undefined && count > Number(max))
      this.#refuse(path, `must hold at most ${max} of the items that its schema names`);
  }

  #unevaluated(schema: JsonObject, value: unknown, { path, seen }: { path: Path; seen: Seen }): void {
    const names = own(schema, "unevaluatedProperties");
    if (names !== undefined && isRecord(value) && !seen.allNames) {
      for (const name of propertiesOf(value).filter((one) => seen.names?.has(one) !== true)) {
        if (names === false) this.#refuse(path, `"${name}" is not known`);
        else this.schema(names, value[name], [...path, name]);
      }
      seen.allNames = true;
    }
    const items = own(schema, "unevaluatedItems");
    if (items !== undefined && Array.isArray(value) && !seen.allItems) {
      for (const [index, item] of value.entries())
        if (seen.indices?.has(index) !== true) this.schema(items, item, [...path, index]);
      seen.allItems = true;
    }
  }
}

function noTarget(reference: string): Uncheckable {
  const excerpt = JSON.stringify(reference.slice(0, 100));
  return new Uncheckable(`cannot be checked: its schema refers to ${excerpt}, which it does not hold`);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A regular expression that matches in linear time. */
export interface LinearPattern {
  /** Instructions of the program: each can cost a step for every character. */
  readonly size: number;
  matches(text: string): boolean;
}

const maxSize = 5_000;
const maxCached = 1_000;
const compiled = new Map<string, LinearPattern | undefined>();

/**
 * Compiles a JSON Schema pattern, which matches anywhere in a text. Returns undefined for an invalid pattern and for one
 * that no linear engine accepts: look-around, back-references, enormous repetitions.
 */
function linearPattern(pattern: string): LinearPattern | undefined {
  if (compiled.has(pattern)) return compiled.get(pattern);
  if (compiled.size >= maxCached) compiled.clear();
  const linear = compile(pattern);
  compiled.set(pattern, linear);
  return linear;
}

function compile(pattern: string): LinearPattern | undefined {
  // The engine would read a named back-reference as a letter.
  if (pattern.length > maxSize || pattern.includes("\\k<")) return undefined;
  try {
    const expression = RE2JS.compile(RE2JS.translateRegExp(withShortClasses(pattern)));
    const size = expression.programSize();
    return size > maxSize ? undefined : { size, matches: (text) => expression.test(text) };
  } catch {
    return undefined;
  }
}

/** The long names of Unicode's general categories; RE2 knows only their short ones. */
const categories: Readonly<Record<string, string>> = {
  Letter: "L",
  Cased_Letter: "LC",
  Uppercase_Letter: "Lu",
  Lowercase_Letter: "Ll",
  Titlecase_Letter: "Lt",
  Modifier_Letter: "Lm",
  Other_Letter: "Lo",
  Mark: "M",
  Nonspacing_Mark: "Mn",
  Spacing_Mark: "Mc",
  Enclosing_Mark: "Me",
  Number: "N",
  Decimal_Number: "Nd",
  Letter_Number: "Nl",
  Other_Number: "No",
  Punctuation: "P",
  Connector_Punctuation: "Pc",
  Dash_Punctuation: "Pd",
  Open_Punctuation: "Ps",
  Close_Punctuation: "Pe",
  Initial_Punctuation: "Pi",
  Final_Punctuation: "Pf",
  Other_Punctuation: "Po",
  Symbol: "S",
  Math_Symbol: "Sm",
  Currency_Symbol: "Sc",
  Modifier_Symbol: "Sk",
  Other_Symbol: "So",
  Separator: "Z",
  Space_Separator: "Zs",
  Line_Separator: "Zl",
  Paragraph_Separator: "Zp",
  Other: "C",
  Control: "Cc",
  Format: "Cf",
  Surrogate: "Cs",
  Private_Use: "Co",
  Unassigned: "Cn",
};

/** Writes `\p{Letter}` and `\p{Script=Greek}` of JavaScript as `\p{L}` and `\p{Greek}` of RE2. */
function withShortClasses(pattern: string): string {
  return pattern.replaceAll(
    /\\(?:(p)\{(?:(?:General_Category|gc|Script|sc)=)?(\w+)\}|.)/gis,
    (text, sign: string | undefined, name: string | undefined) =>
      sign === undefined || name === undefined ? text : `\\${sign}{${categories[name] ?? name}}`,
  );
}
