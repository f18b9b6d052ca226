import { parseSync } from "@swc/core";
import { walk } from "./declarations.ts";

/** Names from which a reader cannot tell what the code does. */
const unclear = new RegExp(
  "^(?:told|tell|say|says|look|looked|looks|bring|brings|brought|keyed|calm|takeUp|takeIn|standAside|lookAround|makesRoom|full|named|" +
    "places|goesOn|goesOnLater|giveBack|untilGone|suspect|seal|sealed|asks|keep|keeps|wanted|wants|heard|hear|hears|who|whose|anew|house|desk|shown|" +
    "lendStore|offerSlot|answerForKit|WorkDesk|(?:told|tell|say|says|looks|bring|asks|wants|hear|shown)[A-Z]\\w*)$",
);

/** Stored records keep the names with which they have been stored. */
const stored: Readonly<Record<string, readonly string[]>> = {
  "src/agents/prompt/system-prompt.ts": ["told"],
  "src/backends/graph/log-saver.ts": ["keep", "heard"],
};

type Node = Record<string, unknown>;

/** Returns the unclear names among those that a TypeScript source declares. */
export function unclearNames(file: string, text: string): readonly string[] {
  const found = new Set<string>();
  const add = (name: unknown): void => {
    if (typeof name === "string" && unclear.test(name) && stored[file]?.includes(name) !== true)
      found.add(name);
  };
  walk(parseSync(text, { syntax: "typescript", tsx: file.endsWith("x"), target: "es2024" }), (node) => {
    for (const name of declaredBy(node)) add(name);
  });
  return [...found];
}

function declaredBy(node: Node): readonly unknown[] {
  switch (node.type) {
    case "VariableDeclarator":
      return namesIn(node.id);
    case "Parameter":
      return namesIn(node.pat);
    case "ArrowFunctionExpression":
      return Array.isArray(node.params) ? node.params.flatMap(namesIn) : [];
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ClassDeclaration":
      return namesIn(node.identifier);
    case "TsInterfaceDeclaration":
    case "TsTypeAliasDeclaration":
      return namesIn(node.id);
    case "ClassMethod":
    case "ClassProperty":
    case "PrivateMethod":
    case "PrivateProperty":
    case "TsPropertySignature":
    case "TsMethodSignature":
    case "MethodProperty":
      return namesIn(node.key);
    default:
      return [];
  }
}

/** Returns the names that a pattern binds: `{ a, b: [c], d = 1 }` binds a, c and d. */
function namesIn(pattern: unknown): readonly unknown[] {
  if (typeof pattern !== "object" || pattern === null) return [];
  const node = Object.fromEntries(Object.entries(pattern));
  switch (node.type) {
    case "Identifier":
      return [node.value];
    case "PrivateName":
      return [typeof node.value === "string" ? node.value : nameOf(node.id)];
    case "AssignmentPattern":
      return namesIn(node.left);
    case "RestElement":
      return namesIn(node.argument);
    case "ArrayPattern":
      return Array.isArray(node.elements) ? node.elements.flatMap(namesIn) : [];
    case "ObjectPattern":
      return Array.isArray(node.properties) ? node.properties.flatMap(namesIn) : [];
    case "KeyValuePatternProperty":
      return namesIn(node.value);
    case "AssignmentPatternProperty":
      return namesIn(node.key);
    default:
      return [];
  }
}

function nameOf(node: unknown): unknown {
  return typeof node === "object" && node !== null ? Reflect.get(node, "value") : undefined;
}
