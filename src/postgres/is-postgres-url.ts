export type PostgresUrl = `postgres://${string}` | `postgresql://${string}`;

/** The part of the rule that a pattern can state: no `@` in the path, which would be a piece of the password. */
export const postgresUrlPattern = /^postgres(?:ql)?:\/\/[^/?#]*(?:\/[^@?#]*)?(?:\?[^#]*)?$/;

/**
 * Whether a text is the address of a Postgres database: `postgres://user:password@host:5432/name`. False if the password
 * contains a `/`, `?` or `#` that is not percent-encoded: parsers would read the user as the host, and the password as a
 * name that messages show.
 */
export function isPostgresUrl(text: string): text is PostgresUrl {
  if (!/^postgres(ql)?:\/\//.test(text)) return false;
  const url = URL.parse(text);
  if (url === null || url.pathname.includes("@") || url.hash !== "") return false;
  return !(url.pathname === "" && url.username === "" && url.search.includes("@"));
}
