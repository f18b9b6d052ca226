import { type Form, form, mentionOf, type PathMention } from "./form.ts";

const options =
  "-n -E -r -s -u -z -l=number --quiet --silent --regexp-extended --separate --unbuffered --null-data --line-length=number --posix --debug -e=message --expression=message --help --version";
// An operand before an option is a script to one sed and a file to another.
const readOptions = form({
  options,
  optionsFirst: true,
  operands: (operands) => operands.map((path) => ({ path, use: "entry" })),
});

/** sed with a script of a small grammar, and files that it only reads. */
export const sed: Form = (args) => {
  const parsed = readOptions(args);
  if (typeof parsed === "string") return parsed;
  const scripts = scriptOptions(args);
  // All options are known, so the other words are the operands, in their order.
  const operands = parsed.paths.map(({ path }) => path);
  const [first, ...others] = operands;
  if (scripts.length === 0 && first === undefined) {
    return args.some((word) => word === "--version" || word === "--help")
      ? { paths: [] }
      : "it needs a script";
  }
  const fragments = scripts.length > 0 ? scripts : [first ?? ""];
  const files = scripts.length > 0 ? operands : others;
  const reason =
    fragments.map(faultOfFragment).find((each) => each !== undefined) ?? faultOfScript(fragments);
  const paths: readonly PathMention[] = files.flatMap((path) => mentionOf(path, "read"));
  return reason ?? { paths };
};

/** The scripts in the options of a command whose options are all known. */
function scriptOptions(args: readonly string[]): readonly string[] {
  const scripts: string[] = [];
  for (let at = 0; at < args.length && args[at] !== "--"; at += 1) {
    const word = args[at] ?? "";
    const joined = /^(?:--expression=|-[nErsuz]*e(?=.))(.*)$/s.exec(word)?.[1];
    if (joined !== undefined) scripts.push(joined);
    else if (/^(--expression|-[nErsuz]*e)$/.test(word)) {
      at += 1;
      scripts.push(args[at] ?? "");
    } else if (/^(--line-length|-[nErsuz]*l)$/.test(word)) at += 1;
  }
  return scripts;
}

/** A final backslash would continue the command in the next fragment. */
function faultOfFragment(fragment: string): string | undefined {
  return fragment.endsWith("\\") ? `the script "${fragment}" ends in a backslash` : undefined;
}

const accepted =
  "addresses, { }, =, d, D, g, G, h, H, l, n, N, p, P, q, Q, x, z, b, t, T, :label, y/…/…/ and s/…/…/ with the flags g, i, I, m, M, p and a number";
const plain = "=dDFgGhHnNpPxz";

/** The reason if a script does not match the small grammar, which excludes whatever writes a file or runs a program. */
function faultOfScript(fragments: readonly string[]): string | undefined {
  const script = fragments.join("\n");
  const refuse = (at: number): string =>
    `"${script.slice(at, at + 20).trim() || script}" is nothing in a sed script that kit knows; known: ${accepted}`;
  let at = 0;
  let open = 0;
  const skip = (pattern: RegExp): void => {
    pattern.lastIndex = at;
    at += pattern.exec(script)?.[0].length ?? 0;
  };
  while (true) {
    skip(/[\s;]*/y);
    if (at >= script.length) return open === 0 ? undefined : refuse(at - 1);
    if (script[at] === "#") {
      skip(/[^\n]*/y);
      continue;
    }
    const begin = at;
    if (script[at] === "}") {
      open -= 1;
      if (open < 0) return refuse(at);
      at += 1;
    } else {
      const afterAddress = readAddresses(script, at);
      if (afterAddress === undefined) return refuse(begin);
      at = afterAddress;
      const command = script[at] ?? "";
      at += 1;
      if (command === "{") {
        open += 1;
        continue;
      }
      if (command === ":") skip(/ *\w+/y);
      else if (command === "b" || command === "t" || command === "T") skip(/ *\w*/y);
      else if (command === "q" || command === "Q" || command === "l") skip(/ *\d*/y);
      else if (command === "s" || command === "y") {
        const end = readSubstitution(script, at, command === "s");
        if (end === undefined) return refuse(begin);
        at = end;
      } else if (command === "" || !plain.includes(command)) return refuse(begin);
    }
    skip(/[ \t]*/y);
    const next = script[at];
    if (next !== undefined && !";\n}#".includes(next)) return refuse(begin);
  }
}

/** The position after the addresses of a command; `undefined` if they are invalid. */
function readAddresses(script: string, from: number): number | undefined {
  let at = from;
  for (let index = 0; index < 2; index += 1) {
    const rest = script.slice(at, at + 40);
    const number = /^(\d+(~\d+)?|\$|[+~]\d+)/.exec(rest)?.[0];
    if (number !== undefined) at += number.length;
    else if (rest.startsWith("/") || /^\\[^\n\\]/.test(rest)) {
      const delimiter = rest.startsWith("/") ? "/" : (rest[1] ?? "");
      const end = readPart(script, at + (delimiter === "/" && rest.startsWith("/") ? 1 : 2), {
        delimiter,
        isExpression: true,
      });
      if (end === undefined) return undefined;
      at = end;
      while (script[at] === "I" || script[at] === "M") at += 1;
    } else if (index === 1) return undefined;
    const comma = /^[ \t]*,[ \t]*/.exec(script.slice(at, at + 40))?.[0];
    if (index === 1 || comma === undefined || at === from) break;
    at += comma.length;
  }
  return at + (/^[ \t]*(![ \t]*)*/.exec(script.slice(at, at + 200))?.[0].length ?? 0);
}

/** The position after `s/…/…/flags` or `y/…/…/`, read from the delimiter on; `undefined` if it is invalid. */
function readSubstitution(script: string, from: number, isS: boolean): number | undefined {
  const delimiter = script[from] ?? "\n";
  if (/[\s\\\w;{}]/.test(delimiter)) return undefined;
  const middle = readPart(script, from + 1, { delimiter, isExpression: isS });
  const end = middle === undefined ? undefined : readPart(script, middle, { delimiter, isExpression: false });
  if (end === undefined || !isS) return end;
  return end + (/^[gipIMm\d]*/.exec(script.slice(end, end + 40))?.[0].length ?? 0);
}

/**
 * The position after the delimiter that ends a part; `undefined` if the part is invalid. A delimiter inside a bracket
 * expression ends the part in some versions of sed and not in others, so it makes the part invalid.
 */
function readPart(
  script: string,
  from: number,
  { delimiter, isExpression }: { readonly delimiter: string; readonly isExpression: boolean },
): number | undefined {
  let bracket = false;
  for (let at = from; at < script.length; at += 1) {
    const character = script[at] ?? "";
    if (character === "\\") {
      if (isExpression && script[at + 1] === "\n") return undefined;
      at += 1;
    } else if (character === "\n") return undefined;
    else if (character === delimiter) return bracket ? undefined : at + 1;
    else if (!isExpression) continue;
    else if (character === "[" && !bracket) {
      bracket = true;
      if (script[at + 1] === "^") at += 1;
      // A closing bracket at the start of the list is a character of the list.
      if (script[at + 1] === "]") at += 1;
    } else if (character === "[" && ":.=".includes(script[at + 1] ?? "!")) {
      const close = script.indexOf(`${script[at + 1]}]`, at + 2);
      if (close === -1) return undefined;
      at = close + 1;
    } else if (character === "]") bracket = false;
  }
  return undefined;
}
