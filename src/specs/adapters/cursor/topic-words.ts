/**
 * The words that give a rule without a heading its topic. The topic of the first word of a rule that
 * stands here is taken; without any, the topic is "general".
 *
 * @see docs/specs.md, "Topics of rules"
 */
const topicWords: Readonly<Record<string, readonly string[]>> = {
  testing: ["test", "tests", "tested", "testing", "coverage", "mock", "mocks", "vitest", "jest", "pytest"],
  security: [
    "security",
    "secret",
    "secrets",
    "password",
    "passwords",
    "credentials",
    "auth",
    "authentication",
  ],
  errors: ["error", "errors", "exception", "exceptions", "throw", "catch", "retry"],
  documentation: [
    "document",
    "documentation",
    "docs",
    "comment",
    "comments",
    "docstring",
    "docstrings",
    "readme",
  ],
  git: ["git", "commit", "commits", "branch", "branches", "rebase", "pull request", "pull requests"],
  types: ["type", "types", "typed", "typing", "interface", "interfaces", "generics"],
  style: [
    "format",
    "formatting",
    "lint",
    "indent",
    "indentation",
    "tabs",
    "semicolons",
    "prettier",
    "eslint",
  ],
  naming: ["name", "names", "naming", "camelcase", "snake_case", "kebab-case", "pascalcase"],
  performance: ["performance", "cache", "caching", "memoize", "optimize", "latency"],
  accessibility: ["accessibility", "accessible", "a11y", "aria"],
  database: ["database", "sql", "query", "queries", "migration", "migrations", "orm"],
  api: ["api", "apis", "endpoint", "endpoints", "rest", "graphql", "http"],
  ui: ["ui", "component", "components", "css", "layout", "tailwind"],
  validation: ["validate", "validation", "validated", "sanitize", "zod"],
  logging: ["log", "logs", "logging", "logger", "metrics", "tracing"],
  dependencies: [
    "dependency",
    "dependencies",
    "package",
    "packages",
    "npm",
    "pnpm",
    "yarn",
    "import",
    "imports",
  ],
  build: ["build", "ci", "deploy", "deployment", "docker", "pipeline"],
  structure: [
    "folder",
    "folders",
    "directory",
    "directories",
    "module",
    "modules",
    "architecture",
    "structure",
  ],
};

const topics = new Map(
  Object.entries(topicWords).flatMap(([topic, words]) => words.map((word) => [word, topic] as const)),
);

/** The topic of a sentence by the first of its words that is in the table. */
export function topicOf(text: string): string | undefined {
  const words = text.toLowerCase().match(/[a-z0-9_-]+/g) ?? [];
  for (const [index, word] of words.entries()) {
    const topic = topics.get(`${word} ${words[index + 1] ?? ""}`) ?? topics.get(word);
    if (topic !== undefined) return topic;
  }
  return undefined;
}
