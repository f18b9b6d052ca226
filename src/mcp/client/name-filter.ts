/** Which of a server's tools are offered: those that `allow` names (all without it), but for those of `deny`. */
export function isWantedTool(
  name: string,
  filter: { readonly allow?: readonly string[] | undefined; readonly deny?: readonly string[] | undefined },
): boolean {
  if (filter.deny?.some((pattern) => matchesName(name, pattern))) return false;
  return filter.allow === undefined || filter.allow.some((pattern) => matchesName(name, pattern));
}

/** Whether a name is that of the pattern, in which `*` stands for any letters. */
export function matchesName(name: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return name === pattern;
  const last = rest.pop() ?? "";
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last))
    return false;
  let from = first.length;
  const end = name.length - last.length;
  for (const part of rest) {
    const found = name.indexOf(part, from);
    if (found < 0 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}
