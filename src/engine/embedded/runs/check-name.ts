/** Whether a journal can hold a name as it is. */
export function isName(name: unknown): boolean {
  if (typeof name !== "string" || name === "" || name.length > 256) return false;
  // A lone half of a surrogate pair, or a NUL, would come back from the database as something else.
  return name.isWellFormed() && !name.includes("\0");
}
