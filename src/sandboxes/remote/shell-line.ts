/** A script with its arguments as one line for a shell. */
export function shellLine(script: string, args: readonly string[]): string {
  return `exec sh -c ${quote(script)} kit ${args.map(quote).join(" ")}`;
}

/** A word that a shell takes as it is. */
export const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
