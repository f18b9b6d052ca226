/** The most rules and specs to print; the answer says how many more there are. */
const mostRules = 12;
const mostSpecs = 6;
/** The longest text of a rule, in characters, and that of a spec's excerpt. */
const maxRule = 320;
const maxExcerpt = 160;

interface Rule {
  readonly title: string;
  readonly locations: readonly string[];
  readonly why: string;
  readonly content: string;
}

// As the tool `guidelines_for` writes a rule: a heading, then its place, reason and id in brackets.
const ruleHead = /^## (.+)\n\((\S+); (.+); id [0-9a-f]+\)$/gm;

/** The rules of `guidelines_for`: those for this file before those for all, those on request by name only. */
export function quoteRules(file: string, result: string): string | undefined {
  const heads = [...result.matchAll(ruleHead)];
  if (heads.length === 0) return undefined;
  const found = heads.map((head, index): Rule => {
    const [whole, title = "", place = "", why = ""] = head;
    const content = result.slice(head.index + whole.length, heads[index + 1]?.index).trim();
    return { title, locations: [place], why, content: content.split("\n\nNot applied here:\n")[0] ?? "" };
  });
  const isOnRequest = ({ why }: Rule): boolean => /^(only when asked for|when the task fits)/.test(why);
  const isForAll = ({ why }: Rule): boolean => /^(always|imported)/.test(why);
  const applied = joinSame(found.filter((rule) => !isOnRequest(rule)));
  const ordered = [...applied.filter((rule) => !isForAll(rule)), ...applied.filter(isForAll)];
  const onRequest = found.filter(isOnRequest);
  const names = onRequest.map(({ title, locations: [place] }) => `${title} (${place})`);
  const isSample = result.startsWith("This repository has no guidelines.");
  const head = isSample
    ? "This repository has no rules of its own. Samples from kit, which this team has not agreed on:"
    : `**${count(ordered.length, "rule applies", "rules apply")} to ${file}.**`;
  return [
    head,
    ordered.slice(0, mostRules).map(toRuleLine).join("\n"),
    ...(ordered.length > mostRules
      ? [`… and ${ordered.length - mostRules} more: kit guidelines explain ${file}`]
      : []),
    ...(names.length === 0 ? [] : [`${names.length} more on request: ${names.join(", ")}.`]),
  ].join("\n\n");
}

/** Joins rules with the same text: several tools often have one each. */
function joinSame(rules: readonly Rule[]): readonly Rule[] {
  const byText = new Map<string, Rule>();
  for (const rule of rules) {
    const key = `${rule.title}\n${rule.content}`;
    const before = byText.get(key);
    byText.set(
      key,
      before === undefined ? rule : { ...before, locations: [...before.locations, ...rule.locations] },
    );
  }
  return [...byText.values()];
}

function toRuleLine({ title, locations, content }: Rule): string {
  const text = shorten(content, maxRule);
  const isList = /^\s*(?:[-*]|\d+\.) /.test(text);
  const body = isList ? `\n  ${text.replaceAll("\n", "\n  ")}` : ` ${text.replace(/\s*\n\s*/g, " ")}`;
  return `- **${title}** (${locations.join(", ")}):${body}`;
}

// As `spec_impact` and `spec_search` write a spec.
const affectedLine = /^- \d\.\d\d (.+) \(([^;()\s]+); id \S+\)$/gm;
const foundLine = /^- (.+) \(\w+, ([^;()\s]+); id \S+\)\n {2}(.*)$/gm;

/** The specs of `spec_impact`, by title and place, and the tests to run. */
export function quoteImpact(files: string, result: string): string | undefined {
  const [, total = ""] = /^([\d,]+) spec blocks? (?:is|are) affected/.exec(result) ?? [];
  if (total === "") return undefined;
  const lines = [...result.matchAll(affectedLine)].map(([, title = "", place]) => `- ${title} (${place})`);
  const [, tests = ""] = /^Tests to run:\n((?:- .+\n?)+)/m.exec(result) ?? [];
  const head = `**A change of ${files} affects ${count(Number(total.replaceAll(",", "")), "spec", "specs")}.**`;
  return [
    [head, "", ...limit(lines, Number(total.replaceAll(",", "")))].join("\n"),
    ...(tests === "" ? [] : [`Tests to run:\n\n${limit(tests.trim().split("\n")).join("\n")}`]),
  ].join("\n\n");
}

/** The specs of `spec_search`, by title and place, each with the beginning of its text. */
export function quoteSearch(words: string, result: string): string | undefined {
  const [, total = ""] = /^([\d,]+) spec blocks?\./.exec(result) ?? [];
  const lines = [...result.matchAll(foundLine)].map(
    ([, title = "", place, excerpt = ""]) => `- **${title}** (${place}): ${shorten(excerpt, maxExcerpt)}`,
  );
  if (total === "" || lines.length === 0) return undefined;
  const all = Number(total.replaceAll(",", ""));
  return [`**${count(all, "spec speaks", "specs speak")} of "${words}".**`, "", ...limit(lines, all)].join(
    "\n",
  );
}

function limit(lines: readonly string[], all: number = lines.length): readonly string[] {
  const more = all - Math.min(lines.length, mostSpecs);
  return [...lines.slice(0, mostSpecs), ...(more > 0 ? [`- … and ${more} more`] : [])];
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** The beginning of a text, to the end of a line or a word. */
function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const part = text.slice(0, most);
  const end = Math.max(part.lastIndexOf("\n"), part.lastIndexOf(" "));
  return `${part.slice(0, end > most / 2 ? end : most).trimEnd()} …`;
}
