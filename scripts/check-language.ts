/**
 * `node scripts/check-language.ts [PATH ...]` finds wording that hides the actor, as CONTRIBUTING.md describes.
 * It reads comments, names and pages below the paths (default: all files of Git), prints each line
 * that breaks a rule, and exits with 1 if there is one. `--count` prints the number of lines by room instead.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { unclearNames } from "./declared-names.ts";

const comment = /^\s*(?:\/\/|\/?\*+)\s*/;
const rules: readonly { readonly files: RegExp; readonly line: RegExp; readonly advice: string }[] = [
  {
    files: /\.tsx?$/,
    line: new RegExp(`${comment.source}(?:Who|Whoever|Whom|Whose|What|Whatever|Of|Those)\\b`),
    advice: "begin the sentence with its subject, and name the actor",
  },
  {
    // The title of a test in a group continues the group's subject.
    files: /\.(?:test|suite)\.ts$/,
    line: /^\w*[tT]est\w*(?:\.\w+(?:\(.*\))?)*\(["`](?:who|whoever|whom|whose|what|whatever|of|those)\b/i,
    advice: "begin the title with its subject, and name the actor",
  },
  {
    files: /\.(?:tsx?|md)$/,
    // Except the user of that name in a shell line or in /etc/passwd.
    line: /\b(?:some|no)body\b(?!:\S| &&)/i,
    advice: "name the actor: the caller, the worker, the reader",
  },
  {
    files: /\.(?:tsx?|md)$/,
    line: /\bgives? (?:its|the|his|their) word\b|\bwait(?:s|ing)? for (?:a|the) word\b/i,
    advice: "say approve, deny, decision",
  },
  {
    files: /\.tsx?$/,
    line: /\b(?:word|bring|told|keyed|calm|standAside|takeUp|takeIn|lookAround|makesRoom|lendStore|offerSlot|giveBack|untilGone|suspect|seal)\(|\b(?:WorkDesk|answerForKit|Dialect)\b/,
    advice: "use the field's verb: wait, create, validate, release, claim, resume, enqueue",
  },
];

const args = process.argv.slice(2);
const paths = args.filter((arg) => !arg.startsWith("--"));
const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "--", ...paths], {
  encoding: "utf8",
}).split("\n");
const found: { readonly room: string; readonly text: string }[] = [];
for (const file of listed) {
  if (
    /^(?:CHANGELOG\.md|scripts\/(?:check-language|declared-names(?:\.test)?)\.ts|tests\/security\/|api\/)/.test(
      file,
    )
  )
    continue;
  const applicable = rules.filter(({ files }) => files.test(file));
  if (applicable.length === 0) continue;
  const room = file.split("/").slice(0, 2).join("/");
  const text = readFileSync(file, "utf8");
  for (const [index, line] of text.split("\n").entries()) {
    for (const { line: pattern, advice } of applicable) {
      if (!pattern.test(line)) continue;
      found.push({ room, text: `${file}:${index + 1}: ${advice}\n  ${line.trim()}` });
    }
  }
  if (!/\.tsx?$/.test(file)) continue;
  for (const name of unclearNames(file, text))
    found.push({ room, text: `${file}: name \`${name}\` after what it holds or does` });
}
if (args.includes("--count")) {
  const rooms = Map.groupBy(found, ({ room }) => room);
  for (const [room, lines] of rooms) console.log(`${room} ${lines.length}`);
} else for (const { text } of found) console.error(text);
if (found.length > 0) process.exitCode = 1;
