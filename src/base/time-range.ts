/** The ISO 8601 times of a filter, in ms since 1970. */
export function toTimes({
  since,
  until,
}: {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}): { readonly since: number | undefined; readonly until: number | undefined } {
  return {
    since: since === undefined ? undefined : Date.parse(since),
    until: until === undefined ? undefined : Date.parse(until),
  };
}
