const identifier = /^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]{0,127}$/u;

const keywords: ReadonlySet<string> = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from
  global if import in is lambda nonlocal not or pass raise return try while with yield`.split(/\s+/),
);

/** Names that kit's own parts of a program take. */
export const ownPrefix = "__kit_";

/** Whether Python code can use it as a name of its own. */
export function isPythonName(name: string): boolean {
  return identifier.test(name) && !keywords.has(name) && !name.startsWith(ownPrefix);
}
