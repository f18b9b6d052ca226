import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRandomText, type RandomText } from "./random-text.ts";
import * as texts from "./spec-texts.ts";

export interface GeneratedRepository {
  /** Spec and guideline files, relative to the root. */
  readonly sources: readonly string[];
  readonly bytes: number;
}

export interface GenerateOptions {
  readonly root: string;
  /** Spec and guideline files; each package has a hundred. */
  readonly files: number;
  readonly seed: number;
}

/** Files of one package, by what they are, in about the shares that real repositories have. */
const filesPerPackage = 100;

/**
 * Writes a repository of packages, each with specs and guidelines of every kind. Sizes and shares are
 * those of the corpus: about 7 kB and ten blocks per file, half of the files pure ASCII.
 */
export function generateRepository({ root, files, seed }: GenerateOptions): GeneratedRepository {
  const text = createRandomText(seed);
  const sources: string[] = [];
  let bytes = 0;
  const write = (path: string, content: string): void => {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  };
  const writeSource = (path: string, content: string): void => {
    write(path, content);
    sources.push(path);
    bytes += Buffer.byteLength(content);
  };
  write(".gitignore", "node_modules/\ndist/\n*.log\n.env\n");
  for (let index = 0; sources.length + filesPerPackage <= files; index += 1) {
    const folder = `packages/${text.oneWord()}-${index}`;
    const mentionable = writeCode(folder, { text, write });
    writePackage(folder, { text, write: writeSource, mentionable });
  }
  return { sources, bytes };
}

interface Writer {
  readonly text: RandomText;
  readonly write: (path: string, content: string) => void;
}

/** Code files, which are listed and mentioned, but not read. */
function writeCode(folder: string, { text, write }: Writer): texts.Mentionable {
  const code = Array.from({ length: 60 }, (_, index) => `src/${text.oneWord()}-${index}.ts`);
  const tests = Array.from({ length: 30 }, (_, index) => `tests/${text.oneWord()}-${index}.test.ts`);
  for (const path of [...code, ...tests]) write(`${folder}/${path}`, "export {};\n");
  return { code, tests };
}

function writePackage(
  folder: string,
  { text, write, mentionable }: Writer & { readonly mentionable: texts.Mentionable },
): void {
  const repeat = (times: number, make: (index: number) => void): void => {
    for (let index = 0; index < times; index += 1) make(index);
  };
  repeat(9, (index) => {
    const feature = `${folder}/.kiro/specs/${text.oneWord()}-${text.oneWord()}-${index}`;
    write(`${feature}/requirements.md`, texts.kiroRequirements(text));
    write(`${feature}/design.md`, texts.kiroDesign(text, mentionable));
    write(`${feature}/tasks.md`, texts.kiroTasks(text, mentionable));
  });
  repeat(5, (index) => {
    const feature = `${folder}/specs/${String(index + 1).padStart(3, "0")}-${text.oneWord()}-${text.oneWord()}`;
    write(`${feature}/spec.md`, texts.specKitSpec(text));
    write(`${feature}/plan.md`, texts.specKitPlan(text, mentionable));
    write(`${feature}/tasks.md`, texts.specKitTasks(text, mentionable));
  });
  repeat(14, (index) => {
    const glob = text.pick(["src/**/*.ts", "*.tsx,**/*.tsx", "tests/**", "**/*.md"]);
    const frontMatter = `description: ${text.words(6)}\nglobs: ${glob}\nalwaysApply: ${index % 5 === 0}`;
    write(`${folder}/.cursor/rules/${text.oneWord()}-${index}.mdc`, texts.ruleFile(text, frontMatter));
  });
  repeat(10, (index) => {
    const frontMatter =
      index % 2 === 0 ? "inclusion: always" : 'inclusion: fileMatch\nfileMatchPattern: "src/**/*.ts"';
    write(`${folder}/.kiro/steering/${text.oneWord()}-${index}.md`, texts.ruleFile(text, frontMatter));
  });
  repeat(8, (index) => {
    write(
      `${folder}/.claude/rules/${text.oneWord()}-${index}.md`,
      texts.ruleFile(text, 'paths:\n  - "src/**/*.ts"'),
    );
  });
  repeat(4, (index) => {
    const nested = index === 0 ? folder : `${folder}/src/part-${index}`;
    write(`${nested}/CLAUDE.md`, texts.sections(text, 9));
    write(`${nested}/AGENTS.md`, texts.sections(text, 12));
  });
  repeat(8, (index) => {
    write(`${folder}/docs/${text.oneWord()}-${index}.spec.md`, texts.tesslSpec(text, mentionable));
  });
  repeat(10, (index) => {
    write(`${folder}/openspec/specs/${text.oneWord()}-${index}/spec.md`, texts.openSpec(text));
  });
}
